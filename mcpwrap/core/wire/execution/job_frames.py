"""Protocol between the worker and the supervisor of a run slot. Standard library only.

    worker → supervisor   one request: its length as 8 bytes (network order), then JSON, over a unix
                          stream; with the first byte, one descriptor: a pipe for the frames
    supervisor → worker   frames through that pipe: kind (1 byte), length (4 bytes, network order),
                          content

After the request the worker sends nothing. It ends the run by closing the connection: the kernel
then kills the supervisor (fcntl(2), F_SETSIG), and PID 1 the rest of the unit. The supervisor
shares its UID with the code that it runs, so the worker checks each frame again.

The request is an object with these keys:

    run        ID of the run, hexadecimal
    code       source text
    files      content by name, in base64, for /in
    packages   name of a folder below /packages, or ""
    seconds    time limit of the run
    output     bytes of standard output and error together after which the run is ended
    cpus       number of threads for numeric libraries

The last frame is `END`, JSON of `core/wire/execution/execute_api.JobEnd`. `VALUE` is the repr of
the last expression. `FILE` is one file of /out: its name in UTF-8, NUL, and its content.
"""

import struct

STDOUT, STDERR, VALUE, FILE, END = b"o", b"e", b"v", b"f", b"r"
LENGTH = struct.Struct("!Q")
HEAD = struct.Struct("!cI")
MAX_REQUEST_BYTES = 24 * 1024**2
MAX_FRAME_BYTES = 8 * 1024**2 + 1024  # of one file, and its name

MAX_FILES_IN = 32
MAX_IN_BYTES = 8 * 1024**2  # of all files of a request together
MAX_FILES_OUT = 32
MAX_FILE_BYTES = 8 * 1024**2  # of one file of /out; a longer one is only listed
MAX_OUT_BYTES = 16 * 1024**2  # of all of them together
MAX_VALUE_BYTES = 16 * 1024
MAX_FILE_NAME_BYTES = 255


def frame(kind: bytes, content: bytes) -> bytes:
    """Return the frame with this content."""
    return HEAD.pack(kind, len(content)) + content


def is_file_name(name: str) -> bool:
    """Return whether this can be the name of a file in /in or /out: one plain path component."""
    return (
        0 < len(name.encode("utf-8", "replace")) <= MAX_FILE_NAME_BYTES
        and not name.startswith(".")
        and "/" not in name
        and name.isprintable()
    )

"""Request and answer of `mcpwrap-next`, which starts the next version of a server once.

root → mcpwrap-next   one line of JSON, a `NextVersionRequest`. The pipe stays open as long as
                      root's program waits for the answer.
mcpwrap-next → root   JSON, a `NextVersionAnswer`, which root passes on and does not parse.
"""

import msgspec

from mcpwrap.core.wire.server_files import ServerSpec

FOLDER = "/run/mcpwrap/next"  # at the machine the pipes; in the unit an empty folder
MAX_REQUEST_BYTES = 1024 * 1024  # fits into a pipe: fcntl(2), F_SETPIPE_SZ
MAX_PAGES_BYTES = 16 * 1024 * 1024
MAX_STDERR_BYTES = 4096
MAX_ANSWER_BYTES = MAX_PAGES_BYTES + 256 * 1024


class NextVersionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Program to start, in the server's place, and values for the secrets of its variables."""

    spec: ServerSpec
    value_by_key: dict[str, str]


class NextVersionPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Result of one request: of the handshake, or a page of a list."""

    method: str
    result: msgspec.Raw


class NextVersionAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Results in the order in which they were received."""

    pages: tuple[NextVersionPage, ...] = ()
    problem: str = ""  # why they are not all that the program lists
    stderr: str = ""  # the last that it wrote there


def encode_request(request: NextVersionRequest) -> bytes:
    """Return the line of a request."""
    return msgspec.json.encode(request) + b"\n"


def decode_request(line: bytes) -> NextVersionRequest:
    """Parse the request of root's program.

    Raises:
        msgspec.MsgspecError: it is incomplete, or of another version.
    """
    return msgspec.json.decode(line, type=NextVersionRequest)


def encode_answer(answer: NextVersionAnswer) -> bytes:
    """Return the bytes of an answer."""
    return msgspec.json.encode(answer)


def decode_answer(untrusted: bytes) -> NextVersionAnswer:
    """Parse an answer, which a program that no person has accepted may have written.

    Raises:
        msgspec.MsgspecError: it is not an answer.
    """
    try:
        return msgspec.json.decode(untrusted, type=NextVersionAnswer)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error

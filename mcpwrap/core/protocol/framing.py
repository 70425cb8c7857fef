"""Line framing of a byte stream, with a bound on the length of a line."""

# A file of 48 MB as base64 inside one line; a longer line is not a message. Newline included.
MAX_LINE_BYTES = 64 * 1024 * 1024 + 1


class LineTooLongError(ValueError):
    """Line longer than the bound, so the stream cannot be followed any further."""


class LineBuffer:
    """Buffer that takes bytes as they arrive and returns whole lines, newline included."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        # One array, however small the pieces are: an object for each would take 30 times as much.
        self._partial = bytearray()

    def feed(self, chunk: bytes) -> bytes | bytearray:
        """Return all lines that `chunk` completes, as one block; keep the rest.

        Raises:
            LineTooLongError: a line is over the bound, finished or not.
        """
        if not self._partial and len(chunk) <= self._max_line_bytes and chunk.endswith(b"\n"):
            return chunk  # the usual case
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return b""
        self._check(len(self._partial) + chunk.find(b"\n") + 1)
        if end > self._max_line_bytes:
            self._check(max(map(len, chunk[:end].split(b"\n"))) + 1)
        if not self._partial:
            self._keep(chunk[end:])
            return chunk[:end]
        # Handed over, not copied: it may be most of the memory that the process may use.
        whole, self._partial = self._partial, bytearray(chunk[end:])
        whole += chunk[:end]
        self._check(len(self._partial))
        return whole

    def rest(self) -> bytes:
        """Return the bytes after the last newline, once the stream has ended."""
        return bytes(self._partial)

    def _keep(self, rest: bytes) -> None:
        self._partial += rest
        self._check(len(self._partial))

    def _check(self, line_bytes: int) -> None:
        if line_bytes > self._max_line_bytes:
            raise LineTooLongError(f"a line of over {self._max_line_bytes} bytes")

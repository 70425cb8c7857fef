"""Cutting a stream into whole lines, with a bound on what one may cost."""

# Screenshots travel as base64 inside one line; past this it is a file, not a message.
MAX_LINE_BYTES = 16 * 1024 * 1024


class LineTooLongError(ValueError):
    """A line is longer than the bound, so the stream cannot be followed any further."""


class LineBuffer:
    """Takes bytes as they arrive and gives back whole lines, newline included."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        # One array, however small the pieces are: an object for each would cost thirty times that.
        self._partial = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """Return all lines that `chunk` completes, as one block; keep the rest.

        Raises:
            LineTooLongError: a line is over the bound, finished or not.
        """
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return b""
        self._check(len(self._partial) + chunk.find(b"\n") + 1)
        if end > self._max_line_bytes:
            self._check(max(map(len, chunk[:end].split(b"\n"))) + 1)
        whole = bytes(self._partial) + chunk[:end]
        self._partial.clear()
        self._keep(chunk[end:])
        return whole

    def rest(self) -> bytes:
        """Return what came after the last newline, once the stream has ended."""
        return bytes(self._partial)

    def _keep(self, rest: bytes) -> None:
        self._partial += rest
        self._check(len(self._partial))

    def _check(self, line_bytes: int) -> None:
        if line_bytes > self._max_line_bytes:
            raise LineTooLongError(f"a line of over {self._max_line_bytes} bytes")

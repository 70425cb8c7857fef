"""Capped buffer of a run's output: its head, its tail, and the number of bytes between them."""

import codecs

_HEAD_SHARE = 4  # a quarter of the limit: the end has the traceback, the head what led to it
_CONTINUATION = range(0x80, 0xC0)  # bytes within a UTF-8 character; it has at most three
_MAX_CONTINUATIONS = 3


class OutputWindow:
    """Window on one output stream. It holds at most twice its limit in memory."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._head_bytes = limit_bytes // _HEAD_SHARE
        self._tail_bytes = limit_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0  # of the stream so far

    def feed(self, untrusted: bytes) -> None:
        """Append a piece of the stream; a piece may end within a character."""
        self.total_bytes += len(untrusted)
        room = self._head_bytes - len(self._head)
        self._head += untrusted[:room]
        self._tail += untrusted[room:]
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: len(self._tail) - self._tail_bytes]

    @property
    def is_cut(self) -> bool:
        """Return whether the middle of the stream is missing."""
        return self.total_bytes > self._limit_bytes

    def text(self) -> str:
        """Return the stream, with the line `[N bytes left out]` in place of its middle.

        Bytes that are not UTF-8 become U+FFFD. A character that the cut divides is left out whole.
        """
        if not self.is_cut:
            return (self._head + self._tail).decode(errors="replace")
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        head = decoder.decode(bytes(self._head))
        divided, _ = decoder.getstate()
        tail = _from_character(bytes(self._tail[len(self._tail) - self._tail_bytes :]))
        left_out = self.total_bytes - (len(self._head) - len(divided)) - len(tail)
        newline = "\n" if head and not head.endswith("\n") else ""
        return f"{head}{newline}[{left_out} bytes left out]\n{tail.decode(errors='replace')}"


class RecentOutput:
    """The last bytes of all output of a run, in the order of their arrival."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = bytearray()
        self._is_cut = False

    def feed(self, untrusted: bytes) -> None:
        """Append a piece, and drop what is before the limit."""
        self._bytes += untrusted
        if len(self._bytes) > self._limit_bytes:
            del self._bytes[: len(self._bytes) - self._limit_bytes]
            self._is_cut = True

    def text(self) -> str:
        """Return them as text, from the first whole character on."""
        whole = bytes(self._bytes)
        return (_from_character(whole) if self._is_cut else whole).decode(errors="replace")


def _from_character(text: bytes) -> bytes:
    """Return the bytes after the rest of a character that was cut."""
    at = 0
    while at < min(len(text), _MAX_CONTINUATIONS) and text[at] in _CONTINUATION:
        at += 1
    return text[at:]

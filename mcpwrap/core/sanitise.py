"""Making a server's stderr harmless to the terminal that shows it."""

import codecs
import re

# C0 but tab and newline, DEL, C1 (8-bit escape sequences), and the characters that reorder text or
# hide it. Source: ECMA-48; Unicode TR 9 and CVE-2021-42574.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


class Sanitiser:
    """Takes a stream of bytes in pieces; a character cut in two is put together again."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._held = ""  # a carriage return at the end: what follows says what it is

    def feed(self, untrusted: bytes) -> bytes:
        r"""Return the text with unsafe characters written out, as `\x1b` for an escape."""
        text = self._held + self._decoder.decode(untrusted)
        self._held = "\r" if text.endswith("\r") else ""
        return self._visible(text.removesuffix(self._held))

    def rest(self) -> bytes:
        """Return what is left of a character that the end of the stream cut off."""
        return self._visible(self._held + self._decoder.decode(b"", final=True))

    @staticmethod
    def _visible(text: str) -> bytes:
        # Carriage returns before a newline are how some programs end lines; alone they overwrite.
        text = text.replace("\r\n", "\n")
        return _UNSAFE.sub(lambda m: m[0].encode("unicode_escape").decode(), text).encode()

"""Terminal sanitiser: escapes control and invisible characters of stderr and of other text."""

import codecs
import re
from codecs import unicode_escape_encode

# C0 but tab and newline, DEL, C1 (8-bit escape sequences), and the characters that reorder text or
# are invisible. Source: ECMA-48; Unicode TR 9, CVE-2021-42574; Default_Ignorable_Code_Point.
_UNSAFE_CHARS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(f"[{_UNSAFE_CHARS}]")
# Drawn as nothing or as a space, though symbols, letters or marks: joiner of Tifinagh, blank of
# Braille, stand-in for an object, joiner of Brahmi numbers, two blanks of Egyptian hieroglyphs,
# filler of Khitan, selector of Duployan, note without a head. Source: UnicodeData.txt, by names;
# their General_Category is So, Lo or Mn, so that Python calls them printable.
_UNSEEN = re.compile(
    f"[{_UNSAFE_CHARS}\u2d7f\u2800\ufffc\U0001107f\U00013441\U00013442\U00016fe4\U0001bc9d\U0001d159]"
)
# These include all that Python does not call printable, whatever its version of Unicode.
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n\t]")


class Sanitiser:
    """Stream filter of bytes; a character that two chunks divide is put together again."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._held = ""  # a carriage return at the end: its meaning depends on what follows

    def feed(self, untrusted: bytes) -> bytes:
        r"""Return the text with unsafe characters escaped, as `\x1b` for an escape."""
        text = self._held + self._decoder.decode(untrusted)
        self._held = "\r" if text.endswith("\r") else ""
        return self._visible(text.removesuffix(self._held))

    def rest(self) -> bytes:
        """Return the rest of a character that the end of the stream cut off."""
        return self._visible(self._held + self._decoder.decode(b"", final=True))

    @staticmethod
    def _visible(text: str) -> bytes:
        # Carriage returns before a newline are how some programs end lines; alone they overwrite.
        text = text.replace("\r\n", "\n")
        return _UNSAFE.sub(_escaped, text).encode()


def visible(text: str) -> str:
    r"""Return a text for a person who decides by it; newlines and tabs stay.

    Beside unsafe characters, all that look like nothing or like a space are escaped, as `\xa0`.
    """
    text = _UNSEEN.sub(_escaped, text)
    return text if text.isprintable() else _UNPRINTABLE.sub(_if_unseen, text)


def one_line(text: str) -> str:
    r"""Return the same on one line and in one column: newlines and tabs are `\n` and `\t`."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _if_unseen(char: re.Match[str]) -> str:
    return char[0] if char[0].isprintable() else _escaped(char)


def _escaped(char: re.Match[str]) -> str:
    # Not by the codec's name: its first use opens a file, which a session's process must not do.
    return codecs.unicode_escape_encode(char[0])[0].decode()


_MAX_SHOWN_CHARS = 80


def shown(untrusted: str, max_chars: int = _MAX_SHOWN_CHARS) -> str:
    r"""Return a text as printable ASCII, cut to `max_chars`; `\x1b` is an escape."""
    # Not by the codec's name: its first use opens a file, which a session's process must not do.
    text = unicode_escape_encode(untrusted[:max_chars])[0].decode()
    is_cut = len(untrusted) > max_chars or len(text) > max_chars
    return f"{text[:max_chars]}..." if is_cut else text


def harmless(why: str) -> str:
    """Return a wrapper's reason without characters that a terminal obeys."""
    return Sanitiser().feed(why.encode()).decode()

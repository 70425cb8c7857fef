"""Characters that hide text from a person, or that change how other text is shown."""

import unicodedata
from dataclasses import dataclass

from mcpwrap.core.text.sanitise import visible

_LINE = "\t\n\r"
_BIDI_FORMATTING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BIDI_MARKS = frozenset("\u061c\u200e\u200f")  # ordinary in a text with right-to-left letters
_RIGHT_TO_LEFT = frozenset({"R", "AL"})
_EMOJI_SELECTORS = frozenset("\ufe0e\ufe0f")
_JOINERS = frozenset("\u200c\u200d")
_KEYCAPS = frozenset("0123456789#*\u2139\u203c\u2049")  # that a selector may follow, beside symbols
_SYMBOLS = frozenset({"So", "Sm", "Sk"})
# From Arabic to Mongolian: scripts whose words have joiners. Source: Unicode, chapters 9 to 16.
_FIRST_JOINED, _LAST_JOINED = "\u0600", "\u18af"
_TAGS = range(0xE0000, 0xE1000)
# Cyrillic and Greek letters that look like Latin ones. Source: Unicode TR 39, confusables.txt.
_LOOK_ALIKES = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03bf\u03bd\u03b9\u03c1"
)
_MAX_STACKED_MARKS = 2  # of one text: some languages have a few
_BLANK_RUNS = (" " * 100, "\t" * 20, "\n" * 20)  # wider or higher than most windows


@dataclass(frozen=True, slots=True)
class HiddenCharacter:
    """Character that hides or changes text, and the place of it."""

    at: int  # index in the text
    reason: str


def invisible_character(text: str) -> HiddenCharacter | None:
    """Return the first character that is not visible, or is a look-alike; None without one.

    Selectors and joiners of emoji, and joiners of Arabic and Indic words, are ordinary.
    """
    if text.isascii():
        return None
    suspects = frozenset(filter(_is_invisible, set(text)))
    if suspects:
        for at, char in enumerate(text):
            if char in suspects and not _is_joined(text, at):
                return HiddenCharacter(at, f"U+{ord(char):04X} is not visible.")
    return _stacked_mark(text) or _look_alike(text)


def bidi_control(text: str) -> HiddenCharacter | None:
    """Return the first character that changes the order in which text is shown."""
    if text.isascii():
        return None
    marks = _BIDI_MARKS
    if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in set(text) - marks):
        marks = frozenset()
    for at, char in enumerate(text):
        if char in _BIDI_FORMATTING or char in marks:
            return HiddenCharacter(at, f"U+{ord(char):04X} changes the order of what is shown.")
    return None


def control_character(text: str) -> HiddenCharacter | None:
    """Return the first character that a terminal obeys."""
    if text.isprintable():
        return None
    for at, char in enumerate(text):
        if unicodedata.category(char) == "Cc" and char not in _LINE:
            return HiddenCharacter(at, f"U+{ord(char):04X} is an order to a terminal.")
    return None


def text_behind_blanks(text: str) -> HiddenCharacter | None:
    """Return the beginning of text that stands so far right or below that a person may miss it."""
    for run in _BLANK_RUNS:
        at = text.find(run)
        if at >= 0 and (rest := text[at:].lstrip()):
            return HiddenCharacter(len(text) - len(rest), "It stands behind blanks, out of sight.")
    return None


def _is_invisible(char: str) -> bool:
    if char in _BIDI_FORMATTING or char in _BIDI_MARKS or visible(char) == char:
        return False
    category = unicodedata.category(char)
    # A character that this version of Unicode does not know is most often a new emoji.
    return category not in {"Cc", "Zs"} and (category != "Cn" or ord(char) in _TAGS)


def _is_joined(text: str, at: int) -> bool:
    """Return whether a selector or joiner follows what it may follow."""
    before = text[at - 1] if at else ""
    if text[at] in _EMOJI_SELECTORS:
        return before in _KEYCAPS or _is_symbol(before)
    if text[at] in _JOINERS:
        is_letter = _FIRST_JOINED <= before <= _LAST_JOINED
        return is_letter or before in _EMOJI_SELECTORS or _is_symbol(before)
    return False


def _is_symbol(char: str) -> bool:
    return char != "" and not char.isascii() and unicodedata.category(char) in _SYMBOLS


def _stacked_mark(text: str) -> HiddenCharacter | None:
    """Return the last of several marks on Latin letters that no letter of Unicode has."""
    composed = unicodedata.normalize("NFC", text)
    marks = [
        at
        for at, char in enumerate(composed)
        if unicodedata.category(char) in {"Mn", "Me"} and at and composed[at - 1].isascii()
        if composed[at - 1].isalpha()
    ]
    if len(marks) <= _MAX_STACKED_MARKS:
        return None
    return HiddenCharacter(marks[0], "Its letters have marks that disguise the words.")


def _look_alike(text: str) -> HiddenCharacter | None:
    """Return the first letter that looks like a Latin one and stands beside a Latin one."""
    for at, char in enumerate(text):
        if char in _LOOK_ALIKES and any(
            near.isascii() and near.isalpha() for near in text[max(at - 1, 0) : at + 2]
        ):
            return HiddenCharacter(at, f"U+{ord(char):04X} looks like a Latin letter.")
    return None

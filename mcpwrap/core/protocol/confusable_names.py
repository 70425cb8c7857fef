"""Deceptive names of tools and prompts: mixed scripts, invisible characters, look-alikes."""

import json
import unicodedata
from codecs import unicode_escape_encode

from mcpwrap.core.protocol.json_keys import has_control_characters
from mcpwrap.core.text.sanitise import visible

# Scripts that one word may mix. Source: Unicode TR 39 section 5.2, "Highly Restrictive".
_MIXES = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
_EMOJI_SELECTORS = "\ufe0e\ufe0f\u200d"
# First words of character names that are not a script: letters and digits of several scripts.
_COMMON = frozenset({"DIGIT", "EXTENDED", "IDEOGRAPHIC", "MICRO", "MODIFIER"})
# NFKC decomposes them or makes them a Greek letter, and keyboards type no other form: the Thai and
# Lao vowel AM, and the micro sign.
_AS_TYPED = str.maketrans("", "", "\u0e33\u0eb3\u00b5")


def why_deceptive(name: str) -> str:
    """Return why people or servers can mistake a name for another; "" if they cannot.

    Each word is judged by itself: a Cyrillic one may stand beside a Latin one.
    """
    if name.isascii() and name.isprintable() and name == name.strip():
        return ""
    if has_control_characters(name):
        return "a control character"
    if name != name.strip():
        return "a leading or trailing space"
    seen = _without_emoji_selectors(name)
    if visible(seen) != seen or not seen.isprintable():
        return "an invisible character"
    words = "".join(char if _is_of_a_word(char) else " " for char in name)
    letters = words.translate(_AS_TYPED)
    if (
        not unicodedata.is_normalized("NFC", name)
        or unicodedata.normalize("NFKC", letters) != letters
    ):
        return "a character that is equivalent to another (NFKC)"
    return "" if all(map(_is_one_script, words.split())) else "letters of two scripts"


def told_apart(name: str) -> str:
    r"""Return a name for people, on one line; one that is not ASCII is followed by its escapes.

    They distinguish Cyrillic U+0441 U+043E U+0440 U+0443 from `copy`:
    `… (\u0441\u043e\u0440\u0443)`.
    """
    line = visible(json.dumps(name, ensure_ascii=False)[1:-1])
    if name.isascii():
        return line
    # Not by the codec's name: its first use opens a file, which a session's process must not do.
    return f"{line} ({unicode_escape_encode(name)[0].decode()})"


def _without_emoji_selectors(name: str) -> str:
    """Return a name without the selectors and joiners that follow a symbol, as in emoji."""
    kept: list[str] = []
    for char in name:
        is_selector = char in _EMOJI_SELECTORS and kept
        if not (is_selector and unicodedata.category(kept[-1]) == "So"):
            kept.append(char)
    return "".join(kept)


def _is_of_a_word(char: str) -> bool:
    is_letter = char.isalpha() or char.isdecimal()
    return is_letter or unicodedata.category(char) in {"Mc", "Me", "Mn", "Nl"}


def _is_one_script(word: str) -> bool:
    scripts = {_script(char) for char in word if char.isalpha() or char.isdecimal()} - _COMMON
    return len(scripts) <= 1 or any(scripts <= mix for mix in _MIXES)


def _script(letter: str) -> str:
    # Python has no names of Tangut's letters.
    return unicodedata.name(letter, "TANGUT").replace("-", " ").split(" ", 1)[0]

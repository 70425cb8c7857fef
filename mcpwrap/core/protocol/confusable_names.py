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
# First words of character names that are not a script: letters and digits of several scripts.
_EMOJI_SELECTORS = "\ufe0e\ufe0f\u200d"
_COMMON = frozenset({"DIGIT", "EXTENDED", "IDEOGRAPHIC", "MICRO", "MODIFIER"})
# NFKC takes them apart or for a Greek letter, and keyboards write no other: the Thai and Lao vowel
# AM, and the micro sign.
_AS_TYPED = str.maketrans("", "", "\u0e33\u0eb3\u00b5")


def why_deceptive(name: str) -> str:
    """Return why a name can be taken for another, by people or by servers; "" if it cannot.

    Words are judged each by itself: one in Cyrillic may stand beside one in Latin.
    """
    if name.isascii() and name.isprintable() and name == name.strip():
        return ""
    if has_control_characters(name):
        return "a control character"
    if name != name.strip():
        return "a space at an end"
    seen = _without_emoji_selectors(name)
    if visible(seen) != seen or not seen.isprintable():
        return "a character that is not seen"
    words = "".join(char if _is_of_a_word(char) else " " for char in name)
    letters = words.translate(_AS_TYPED)
    if (
        not unicodedata.is_normalized("NFC", name)
        or unicodedata.normalize("NFKC", letters) != letters
    ):
        return "a character that stands for another (NFKC)"
    return "" if all(map(_is_one_script, words.split())) else "letters of two scripts"


def told_apart(name: str) -> str:
    r"""Return a name for people, on one line; one that is not ASCII is followed by its escapes.

    So Cyrillic U+0441 U+043E U+0440 U+0443 is told from `copy`: `… (\u0441\u043e\u0440\u0443)`.
    """
    line = visible(json.dumps(name, ensure_ascii=False)[1:-1])
    if name.isascii():
        return line
    # Not by the codec's name: the first use of that opens a file, which a session may not.
    return f"{line} ({unicode_escape_encode(name)[0].decode()})"


def _without_emoji_selectors(name: str) -> str:
    """Return a name without the selectors and joiners that stand behind a symbol, as in emoji."""
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
    # Python does not know the names of Tangut's letters.
    return unicodedata.name(letter, "TANGUT").replace("-", " ").split(" ", 1)[0]

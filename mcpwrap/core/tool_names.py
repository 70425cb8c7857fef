"""Tool and prompt names that people take for another name."""

import json
import unicodedata
from codecs import unicode_escape_encode

from mcpwrap.core.sanitise import visible

# Scripts that one name may mix. Source: Unicode TR 39 section 5.2, "Highly Restrictive".
_MIXES = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
# First words of character names that are not a script: letters and digits of several scripts.
_COMMON = frozenset({"DIGIT", "EXTENDED", "IDEOGRAPHIC", "MODIFIER"})


def is_deceptive(name: str) -> bool:
    """Return whether the name can look like another, or has parts that are not seen.

    So are control characters, space at either end, invisible and blank characters, characters
    that NFKC replaces (fullwidth letters, ligatures), and letters of two scripts, other than Latin
    with those of Chinese, Japanese or Korean.
    """
    return bool(why_deceptive(name))


def why_deceptive(name: str) -> str:
    """Return what is deceptive about the name; "" if nothing is."""
    is_plain = name.isprintable() and name == name.strip()
    if is_plain and name.isascii():
        return ""
    if not is_plain:
        return "a control character or a space"
    if visible(name) != name:
        return "a character that is not seen"
    if not unicodedata.is_normalized("NFKC", name):
        return "a character that stands for another (NFKC)"
    return "" if _is_one_script(name) else "letters of two scripts"


def told_apart(name: str) -> str:
    r"""Return a name for people, on one line; one that is not ASCII is followed by its escapes.

    So Cyrillic U+0441 U+043E U+0440 U+0443 is told from `copy`: `… (\u0441\u043e\u0440\u0443)`.
    """
    line = visible(json.dumps(name, ensure_ascii=False)[1:-1])
    if name.isascii():
        return line
    # Not by the codec's name: the first use of that opens a file, which a session may not.
    return f"{line} ({unicode_escape_encode(name)[0].decode()})"


def _is_one_script(name: str) -> bool:
    scripts = {_script(char) for char in name if char.isalpha() or char.isdecimal()} - _COMMON
    return len(scripts) <= 1 or any(scripts <= mix for mix in _MIXES)


def _script(letter: str) -> str:
    # Python does not know the names of Tangut's letters.
    return unicodedata.name(letter, "TANGUT").replace("-", " ").split(" ", 1)[0]

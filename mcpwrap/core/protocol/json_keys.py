"""Ambiguous JSON keys, which a server may take for another key than the one that was judged.

A parser ends a C string at NUL (json-c), ignores case (encoding/json of Go), fills a field by its
name as well as by its alias (Pydantic: `task_id` for `taskId`), trims, or normalises to NFKC.

A key that has a meaning in a language or a parser is refused in an agent's message: `__proto__`
sets what an object inherits (ECMA-262 section B.2.2.1), `__class__` and its relatives lead out of a
Python object, `json_class` names the class of which JSON.load of Ruby makes an object, and
serde_json, if built with `raw_value`, parses the value of its private key as JSON again.
"""

import re
from collections.abc import Iterator
from unicodedata import category, normalize

from mcpwrap.core.text.sanitise import visible

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BACKSLASH, _DEL, _C1, _UNDERSCORE, _DOLLAR = b"\\\x7f\xc2_$"  # of C1 the first byte in UTF-8
_OF_LANGUAGES = re.compile(
    rb'"(?:__(?:proto|class|init|dict|globals|builtins)__|json_class|\$serde_json::private::[^"]*)":'
)
_ASCII_SEPARATORS = dict.fromkeys(map(ord, "_-" + "".join(map(chr, (*range(33), 127)))))
_SEPARATORS = frozenset({"Cc", "Cf", "Pc", "Pd", "Zl", "Zp", "Zs"})  # general categories
# Longer ones take quadratic time, and no key of MCP or of a policy is as long.
_MAX_FOLDED_CHARS = 256
ANY = "\0any"  # folded form of a key that may equal any other
_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_CHARS = 128


def flaw(value: object, encoded: bytes) -> str:
    """Return why the keys of a value must not be forwarded; "" if they may be.

    `encoded` is the value as `strict_json.encode` writes it, in which `":` ends only keys. A search
    in bytes is fastest for one byte, given as a number, and much faster for up to 5 than for more.
    """
    # There a control character is an escape, is DEL, or begins with the first byte of C1's.
    may_have_control = _BACKSLASH in encoded or _DEL in encoded or _C1 in encoded
    if may_have_control and _has_a_control_character(value):
        return "a key has a control character"
    may_be_of_language = (
        b'tor":' in encoded
        or (_UNDERSCORE in encoded and (b'__":' in encoded or b'ass":' in encoded))
        or (_DOLLAR in encoded and b"$serde_json" in encoded)
    )
    if may_be_of_language and _has_a_key_of_a_language(value, encoded):
        return "a key has a special meaning in a programming language"
    return ""


def has_control_characters(text: str) -> bool:
    """Return whether a text has a character of C0 or C1, or DEL."""
    return not text.isprintable() and _CONTROL.search(text) is not None


def _has_a_control_character(value: object) -> bool:
    return any(has_control_characters("".join(keys)) for keys in _objects_in(value))


def _objects_in(value: object) -> Iterator[dict[str, object]]:
    rest = [value]
    while rest:
        inner = rest.pop()
        if isinstance(inner, dict):
            yield inner
            inner = inner.values()
        elif not isinstance(inner, list):
            continue
        rest += [below for below in inner if isinstance(below, (dict, list))]


def _has_a_key_of_a_language(value: object, encoded: bytes) -> bool:
    if _OF_LANGUAGES.search(encoded):
        return True
    return b'"constructor":{' in encoded and any(map(_leads_to_a_prototype, _objects_in(value)))


def _leads_to_a_prototype(inner: dict[str, object]) -> bool:
    """Return whether a merge of this object into another one changes what all objects inherit."""
    constructor = inner.get("constructor")
    return isinstance(constructor, dict) and "prototype" in constructor


def _fold(key: str) -> str:
    if key.isascii():
        bare = key.lower().translate(_ASCII_SEPARATORS)
        return bare or key
    if len(key) > _MAX_FOLDED_CHARS:
        return ANY
    # To some readers U+0130 is an i in another case; to Python it is one with a dot above.
    text = normalize("NFKC", key.replace("\u0130", "i")).upper().casefold()
    text = normalize("NFKC", text).replace("i\u0307", "i")
    bare = "".join(c for c in text if category(c) not in _SEPARATORS and visible(c) == c)
    return bare or text


class _Folded(dict[str, str]):
    """Cache of folded keys, by key. A dict, because each judgement looks up every key anew."""

    def __missing__(self, key: str) -> str:
        """Fold a key; clear a full cache, since an agent can invent any number of keys."""
        form = _fold(key)
        if len(key) <= _MAX_REMEMBERED_CHARS:
            if len(self) >= _MAX_REMEMBERED:
                self.clear()
            self[key] = form
        return form


# The form that all spellings share which some parser takes for this key: case, compatibility forms,
# space, `_`, `-` and invisible characters make no difference.
folded = _Folded().__getitem__

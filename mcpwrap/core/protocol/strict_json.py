"""Strict JSON parser: accepts only text in which no other parser finds another value.

msgspec refuses bytes that are not UTF-8, a byte order mark, lone surrogates, NaN and numbers out of
range. What it accepts is bounded here in depth, and searched for repeated keys.
"""

import re
from json import JSONDecoder

import msgspec

from mcpwrap.core.protocol.json_value import Json

MAX_DEPTH = 64  # of arrays and objects, the message's own included; real messages have ten
_SMALL_BYTES = 4096  # up to here counting brackets costs less than visiting the values
_MANY_ELEMENTS = 100  # from here on too, in a line of any length

_DECODER = msgspec.json.Decoder()
_MEMBERS_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS_DECODER = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODER = msgspec.json.Encoder()
_SORTING_ENCODER = msgspec.json.Encoder(order="sorted")
_NO_OPENER = bytes(set(range(256)) - set(b"[{"))
_NO_QUOTE = bytes(set(range(256)) - set(b'"'))
_NO_SHAPE = bytes(set(range(256)) - set(b'"[]{}'))
_ONE_SHAPE = bytes.maketrans(b"{}", b"[]")
_ALL_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_HUGE = 2**1024 - 2**970  # from here on integers round to a double that is infinite
_HUGE_DIGITS = b"0" * len(str(_HUGE))
_DIGIT = re.compile(rb"[0-9]")


class NotJsonError(ValueError):
    """Bytes that are not JSON in UTF-8, or hold a number that not every parser can represent."""


class TooDeepError(ValueError):
    """Arrays and objects nested deeper than `MAX_DEPTH`."""


def encode(value: Json) -> bytes:
    """Return a value as JSON on one line, without a newline."""
    return _ENCODER.encode(value)


def on_one_line(encoded: bytes) -> bytes:
    """Escape the characters in JSON of `encode` that end a line for some readers: Node's readline.

    Only for output: the check for repeated keys needs the text as `encode` writes it.
    """
    if encoded.isascii():
        return encoded
    return encoded.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")


def encode_sorted(value: Json) -> bytes:
    """Return the value as JSON with sorted keys: the same text, whatever their order was."""
    return _SORTING_ENCODER.encode(value)


def decode(line: bytes) -> Json:
    """Return the one value in these bytes.

    Raises:
        NotJsonError: the bytes are not strict JSON.
        TooDeepError: the value is nested too deep.
    """
    try:
        value: Json = _DECODER.decode(line)
    except RecursionError as error:
        raise TooDeepError from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJsonError from error
    if _has_many_digits(line) and _has_a_huge_integer(value):
        raise NotJsonError
    if not _is_shallow(line, value):
        raise TooDeepError
    return value


def salvage(line: bytes) -> Json:
    """Parse a line that `decode` refuses, leniently; return None if that fails too.

    Only to find the request that the line concerns: the value itself must not be forwarded.
    """
    try:
        text = line.decode("utf-8", errors="replace").removeprefix("\ufeff")
        value: Json = JSONDecoder().decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def repeats_a_key(line: bytes, encoded: bytes) -> bool:
    """Return whether an object anywhere in `line` has a key twice; `encoded` is its value, encoded.

    Decoding drops the earlier value of a repeated key, and with it at least one string: the key. So
    the two have as many strings, however these are written, if and only if none is lost.
    """
    return not _is_same(line, encoded) and _quotes(line) != _quotes(encoded)


def repeats_a_top_key(line: bytes, encoded: bytes) -> bool:
    """Return the same for the outermost object alone, or for each object in the outermost array."""
    if _is_same(line, encoded):
        return False
    if encoded.startswith(b"["):
        return any(_repeats_one_of_its_own(bytes(raw)) for raw in _ELEMENTS_DECODER.decode(line))
    return _repeats_one_of_its_own(line.strip())


def _repeats_one_of_its_own(json: bytes) -> bool:
    """Return whether a value is an object, and has a key twice at its own level.

    Its members are sliced out as received, with any repetition further down: strings that are
    missing in the sum are missing at this level. An object that equals its members, joined as most
    programs write them, needs no counting.
    """
    if not json.startswith(b"{"):
        return False
    raw_by_key = {key: bytes(raw) for key, raw in _MEMBERS_DECODER.decode(json).items()}
    for comma, colon in ((b", ", b": "), (b",", b":")):
        members = [encode(key) + colon + raw for key, raw in raw_by_key.items()]
        if json == b"{" + comma.join(members) + b"}":
            return False
    return _quotes(json) != 2 * len(raw_by_key) + sum(map(_quotes, raw_by_key.values()))


def _is_same(line: bytes, encoded: bytes) -> bool:
    """Return whether a line is as `encode` writes it, but for space at its end, without a copy."""
    return line.startswith(encoded) and not line[len(encoded) :].strip()


def _quotes(json: bytes) -> int:
    r"""Count the quotes that begin or end a string: two for each, and `\"` is not counted."""
    return len(_without_escapes(json).translate(None, _NO_QUOTE))


def _without_escapes(json: bytes) -> bytes:
    r"""Return JSON without any `\"`; other escapes are treated as text."""
    if b"\\" not in json:
        return json
    return json.replace(b"\\\\", b"").replace(b'\\"', b"")


def _has_many_digits(line: bytes) -> bool:
    """Return whether as many digits stand in a row as a huge integer has.

    The sample has one byte of each such row, and half of the row is on one side of that byte.
    """
    size = len(_HUGE_DIGITS)
    if len(line) < size:
        return False
    half = size // 2
    for found in _DIGIT.finditer(line[::size]):
        at = found.start() * size
        if line[at : at + half].isdigit() or line[max(0, at - half) : at].isdigit():
            around = line[max(0, at - size) : at + size]
            if _HUGE_DIGITS in around.translate(_ALL_ZEROS):
                return True
    return False


def _has_a_huge_integer(value: Json) -> bool:
    """Return whether there is an integer that a reader of doubles makes infinite, as 1e400."""
    rest = [value]
    while rest:
        inner = rest.pop()
        if isinstance(inner, dict):
            rest.extend(inner.values())
        elif isinstance(inner, list):
            rest.extend(inner)
        elif isinstance(inner, int) and abs(inner) >= _HUGE:
            return True
    return False


def _is_shallow(line: bytes, value: Json) -> bool:
    """Return whether a value is nested no deeper than `MAX_DEPTH`.

    It is if the line has no more opening brackets than that, which settles most lines.
    """
    if len(line) <= _SMALL_BYTES and len(line.translate(None, _NO_OPENER)) <= MAX_DEPTH:
        return True
    level = [value] if isinstance(value, (dict, list)) else []
    has_counted = False
    for _ in range(MAX_DEPTH):
        if not has_counted and sum(map(len, level)) > _MANY_ELEMENTS:
            if _has_shallow_brackets(line):
                return True
            has_counted = True  # the deep part was lost with a repeated key, or is in the value
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return True
    return False


def _has_shallow_brackets(line: bytes) -> bool:
    """Return the same for a line of JSON, by its brackets: each round removes the innermost pairs.

    Two adjacent quotes do not change which brackets are in a string.
    """
    shape = _without_escapes(line).translate(_ONE_SHAPE, _NO_SHAPE).replace(b'""', b"")
    if b'"' in shape:
        shape = b"".join(shape.split(b'"')[::2])
    for _ in range(MAX_DEPTH):
        shape = shape.replace(b"[]", b"")
        if not shape:
            return True
    return False

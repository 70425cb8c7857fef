"""Strict JSON: text that two parsers could read differently is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import (
    MAX_DEPTH,
    NotJsonError,
    TooDeepError,
    decode,
    encode,
    encode_sorted,
    repeats_a_key,
    repeats_a_top_key,
    salvage,
)

HUGE = 2**1024 - 2**970
VALUES: list[tuple[bytes, Json]] = [
    (b"1", 1),
    (b"-0", 0),
    (b"1.0", 1.0),
    (b"9007199254740993", 2**53 + 1),  # kept, though JavaScript would not
    (b"1" * 300, int("1" * 300)),
    (b"%d" % (HUGE - 1), HUGE - 1),
    (b'["%s",true]' % (b"1" * 400), ["1" * 400, True]),
    (b"1e308", 1e308),
    (b"1e-400", 0.0),  # as all read it
    (b' "a"\r\n', "a"),
    (rb'"\u0061\/\ud83d\ude00\u0000"', "a/😀\0"),
    ('"\u2028\x7f"'.encode(), "\u2028\x7f"),
    (b'{"a":{"A":[]}}', {"a": {"A": []}}),
]


@pytest.mark.parametrize(("line", "value"), VALUES)
def test_a_value_is_read(line: bytes, value: Json) -> None:
    assert decode(line) == value
    assert type(decode(line)) is type(value)


NO_VALUES = [
    b"",
    b"1 2",
    b"[1,]",
    b"01",
    b"'a'",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e400",
    b"-1e999",
    b"%d" % HUGE,  # which a reader of doubles makes infinite
    b'{"x":[1.5,null,-%d]}' % HUGE,
    b'["' + b"a" * 65_500 + b'",%d]' % HUGE,  # wherever the samples are in the line
    b"1" * 5000,  # Python's own reader refuses it too: CVE-2020-10735
    b'"\t"',
    b'"\0"',
    b'"\x1f"',
    b'"\xff"',
    b'"\xc0\xaf"',  # overlong
    b'"\xed\xa0\x80"',  # a surrogate in UTF-8
    rb'"\ud800"',
    rb'"\udc00"',
    rb'"\ud800a"',
    rb'"\ud800\u0061"',
    rb'{"\udc00":1}',
    b"\xef\xbb\xbf{}",  # a byte order mark
    '{"a":1}'.encode("utf-16"),
    '{"a":1}'.encode("utf-16-le"),
    '{"a":1}'.encode("utf-32"),
    b"Content-Length: 7\r",
    b'{"a":1}\x0c',
    b"/**/{}",
]


@pytest.mark.parametrize("line", NO_VALUES)
def test_no_value_is_refused(line: bytes) -> None:
    with pytest.raises(NotJsonError):
        decode(line)


def nested(depth: int, *, opener: bytes = b"[", closer: bytes = b"]") -> bytes:
    return opener * depth + (b"1" if opener != b"[" else b"") + closer * depth


@pytest.mark.parametrize("padding", [b"", b" " * 5000])  # a line is long or it is not
@pytest.mark.parametrize(("opener", "closer"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_has_a_bound(opener: bytes, closer: bytes, padding: bytes) -> None:
    decode(nested(MAX_DEPTH, opener=opener, closer=closer) + padding)
    for depth in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(TooDeepError):
            decode(nested(depth, opener=opener, closer=closer) + padding)


@pytest.mark.parametrize("line", [b"[" + b"[]," * 500 + b"{}]", b'["' + b"[{" * 500 + b'"]'])
def test_many_brackets_are_not_deep(line: bytes) -> None:
    assert isinstance(decode(line), list)
    assert isinstance(decode(line + b" " * 5000), list)


def test_what_was_deep_and_is_lost_with_a_key_that_came_again_is_not_deep() -> None:
    line = b'["[",' + b"[]," * 500 + b'{"a":' + nested(70) + b',"a":1}]'
    assert encode(decode(line)).endswith(b',{"a":1}]')


REPEATED = [
    (b'{"a":1,"a":1}', True),
    (b'{"a":1,"b":{"a":1,"c":[{"d":1,"d":2}]}}', True),
    (rb'{"a":1,"\u0061":2}', True),  # one key, written twice
    (b'{"a":"x","a":"x"}', True),
    (b'{"":1,"":2}', True),
    (rb'{"\\":1,"\\":2}', True),
    (rb'{"\"":1,"\"":2}', True),
    (rb'{"\\\"":1,"\\\u0022":2}', True),
    (b'{"a":1,"A":1}', False),
    (b'{ "a" : "b\\"c" , "d" : "\\\\" }', False),
    (rb'{"\u0022":"\u005c"}', False),
    (b'{"a":["a","a","a"],"b":{"a":"a"}}', False),
    (b'{"a": "{\\"a\\":1,\\"a\\":2}"}', False),
    (b'[{"a":1},{"a":1}]', False),
    (b'[{"a":1},{"a":1, "a":2}]', True),
]


@pytest.mark.parametrize(("line", "repeats"), REPEATED)
def test_a_key_that_comes_twice_is_found(line: bytes, repeats: bool) -> None:  # noqa: FBT001
    assert repeats_a_key(line, encode(decode(line))) == repeats


REPEATED_ON_TOP = [
    (b'{"id":1,"result":1,"id":2}', True),
    (b'{"id": 1, "result": 1, "id": 2}\n', True),
    (b'{"id":1,"result":{"a":1,"a":1,"id":1}}', False),
    (b'{"id": 1, "result": {"a": 1, "a": 1}}\n', False),
    (b' {"id" :1,"result":{"a":1,"a":1}} ', False),
    (b' {"id" :1,"result":{"a":1,"a":1},"\\u0069d":1} ', True),
    (b'[{"id":1},{"id":1,"x":{"a":1,"a":1}},7,"id"]', False),
    (b'[{"id":1}, {"id":1,"id":2}]', True),
    (b'["a", "a"]', False),
    (b'"a" ', False),
    (b' "\\u0061"', False),
]


@pytest.mark.parametrize(("line", "repeats"), REPEATED_ON_TOP)
def test_a_key_that_comes_twice_on_top_is_found(line: bytes, repeats: bool) -> None:  # noqa: FBT001
    assert repeats_a_top_key(line, encode(decode(line))) == repeats


def has_repeated(line: str) -> tuple[bool, bool]:
    """Return whether the standard library finds a repeated key: anywhere, and at the top."""
    found: list[bool] = []

    def look(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    json.JSONDecoder(object_pairs_hook=look).decode(line)
    return any(found), bool(found) and found[-1]


KEYS = st.sampled_from(["a", "b", "", '"', "\\", "\\\\", 'a"', "é", "{", '":'])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), KEYS)


@st.composite
def written_objects(draw: st.DrawFn, depth: int = 2) -> str:
    """Return an object as some program might write it, with repeated keys."""
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")]))
    members = []
    for key in draw(st.lists(KEYS, max_size=3)):
        is_ascii = draw(st.booleans())
        inner = written_objects(depth - 1) if depth else SCALARS.map(json.dumps)
        value = draw(st.one_of(SCALARS.map(json.dumps), inner))
        members.append(json.dumps(key, ensure_ascii=is_ascii) + colon + value)
    return "{" + comma.join(members) + "}"


@given(written_objects())
def test_it_is_found_where_the_standard_library_finds_it(text: str) -> None:
    line = text.encode()
    encoded = encode(decode(line))
    assert (repeats_a_key(line, encoded), repeats_a_top_key(line, encoded)) == has_repeated(text)


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_a_value_comes_out_as_it_went_in(value: Json, is_ascii: bool) -> None:  # noqa: FBT001
    line = json.dumps(value, ensure_ascii=is_ascii).encode()
    assert repr(decode(line)) == repr(value)  # 1 is not 1.0, -0.0 not 0.0
    again = encode(decode(line))
    assert b"\n" not in again
    assert repr(json.JSONDecoder().decode(again.decode())) == repr(value)
    assert not repeats_a_key(line, again)
    assert not repeats_a_top_key(line, again)


def test_the_order_of_keys_is_kept_or_sorted() -> None:
    assert encode({"b": 1, "a": [{"d": 1, "c": 2}]}) == b'{"b":1,"a":[{"d":1,"c":2}]}'
    assert encode_sorted({"b": 1, "a": [{"d": 1, "c": 2}]}) == b'{"a":[{"c":2,"d":1}],"b":1}'


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"id":1,"x":NaN}', 1),
        (b'{"id":1,"x":"\xff"}', 1),
        (rb'{"id":1,"x":"\ud800"}', 1),
        (b'{"id":1,"x":1e999}', 1),
        (b'{"id":1,"x":' + b"1" * 5000 + b"}", None),
        (b'{"id":1,"x":' + b"[" * 100_000, None),
        (b"\xef\xbb\xbf" + b'{"id":1}', 1),  # its sender waits for a response too
        (b"hello", None),
    ],
)
def test_of_what_is_refused_the_id_is_saved_where_it_can(line: bytes, value: Json) -> None:
    found = salvage(line)
    assert (found["id"] if isinstance(found, dict) else found) == value

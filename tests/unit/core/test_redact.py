"""A secret that a server writes reaches nobody by accident, however it is written or cut."""

import base64
import json
import re
import tracemalloc
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.redact import Redactor, is_redactable

TOKEN = "ghp_wJalrXUtnFEMIK7MDENG"
ODD = 'p@ss/w "rd"\\é€😀\x7f%20+~!*'  # something of all that is written in several ways
BODY = ["MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "AQC7VJTUt9Us8cKjMSzf"]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *BODY, "-----END PRIVATE KEY-----", ""])
MARKER = b"[redacted KEY]"


def redacted(value_by_key: Mapping[str, str], *chunks: bytes) -> bytes:
    redactor = Redactor(value_by_key)
    return b"".join(map(redactor.feed, chunks)) + redactor.rest()


def piecemeal(raw: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in raw]


def in_json(text: str) -> list[str]:
    usual = [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
    return usual + [form.replace("/", "\\/") for form in usual]


def in_url(text: str) -> list[str]:
    upper = [quote(text, safe=""), quote(text), quote(text, safe="!'()*"), quote_plus(text)]
    return upper + [re.sub("%..", lambda digits: digits[0].lower(), form) for form in upper]


def forms(value: str) -> list[str]:
    """Return how programs write a value as a whole, each form once."""
    twice = [form for once in in_json(value) for form in in_json(once)]
    hexes = [value.encode().hex(), value.encode().hex().upper()]
    return list(dict.fromkeys([value, *in_json(value), *twice, *hexes, *in_url(value)]))


@pytest.mark.parametrize(("value", "form"), [(v, form) for v in (TOKEN, ODD) for form in forms(v)])
def test_every_form_is_replaced_as_a_whole(value: str, form: str) -> None:
    raw = f'["{form}"]\n'.encode()
    assert redacted({"KEY": value}, raw) == b'["' + MARKER + b'"]\n'
    assert redacted({"KEY": value}, *piecemeal(raw)) == b'["' + MARKER + b'"]\n'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a<b>c&defgh", r"a\u003cb\u003ec\u0026defgh"),  # by Go
        ("a<b>c&defgh", r"a\\u003cb\\u003ec\\u0026defgh"),
        ("a'b=c<d>efgh", r"a\u0027b\u003dc\u003cd\u003eefgh"),  # by Gson
        ("a+b'c`d\"éf", r"a\u002Bb\u0027c\u0060d\u0022\u00E9f"),  # by .NET
        (f"  {TOKEN}\r\n", TOKEN),  # set with `echo`, from a file of another system
        ("éééé", "éééé"),  # eight bytes
        ("a\0\x1f\b\f\n\r\tbc", r"a\u0000\u001f\b\f\n\r\tbc"),
    ],
)
def test_a_value_is_found_however_it_was_set(value: str, written: str) -> None:
    assert redacted({"KEY": value}, f"<{written}>\n".encode()) == b"<" + MARKER + b">\n"


@pytest.mark.parametrize("value", [TOKEN, ODD, "12-45678", "??>>~~??>>~~"])
@pytest.mark.parametrize("before", ["", "u", "u:", "me:", "user:"])
@pytest.mark.parametrize("after", ["", "\n", "@h", "@h.", "@host"])
def test_base64_with_the_value_in_it_is_found(value: str, before: str, after: str) -> None:
    standard = base64.b64encode((before + value + after).encode())
    url_safe = standard.translate(bytes.maketrans(b"+/", b"-_"))
    for written in (standard, url_safe, standard.replace(b"/", b"\\/")):
        head, found, tail = redacted({"KEY": value}, written).partition(MARKER)
        # What stays holds bits of what is around the value, or is the padding.
        assert (found, written[: len(head)]) == (MARKER, head)
        assert written.endswith(tail)
        assert len(head) <= -(-8 * len(before) // 6)
        assert len(tail) <= -(-8 * len(after) // 6) + 3


def test_a_value_of_several_lines_is_one_secret() -> None:
    encoded = base64.b64encode(PEM.encode()).decode()
    for written in (encoded, *(form for form in forms(PEM) if "\n" not in form)):
        head, found, tail = redacted({"KEY": PEM}, f'"{written}"'.encode()).partition(MARKER)
        assert (head, found) == (b'"', MARKER)
        assert len(tail) <= len('Cg=="')  # the newline at its end is no secret


def test_with_raw_newlines_it_is_found_line_by_line() -> None:
    for value in (PEM, PEM.replace("\n", "\r\n")):
        assert redacted({"KEY": value}, PEM.encode()) == (MARKER + b"\n") * 5
        assert redacted({"KEY": PEM}, value.encode()).count(MARKER) == 5


def test_one_line_of_it_is_found_alone() -> None:
    for form in [form for line in BODY for form in forms(line)]:
        assert redacted({"KEY": PEM}, form.encode()) == MARKER


TWINS = {
    TOKEN: [TOKEN[:-1], TOKEN[1:], TOKEN.swapcase(), TOKEN[:9] + "\n" + TOKEN[9:]],
    ODD: [ODD.replace("/", "//"), ODD.encode().hex()[1:], quote(ODD)[:-1]],
    "1234": ["1234 and 1234"],  # too short to be looked for
    "1234567890": ['{"chat": 1234567890}'],  # with a marker it would be no JSON
    " 1234567 ": [" 1234567 "],
    "short\nlines\nonly": ["short\nlines\nonly"],  # raw newlines, and no line long enough
    "x" * 19 + "\n" + "y" * 20: ["x" * 19, "y" * 19],
}


@pytest.mark.parametrize(("value", "text"), [(v, text) for v in TWINS for text in TWINS[v]])
def test_what_resembles_a_secret_stays(value: str, text: str) -> None:
    assert redacted({"KEY": value}, text.encode()) == text.encode()
    assert redacted({"KEY": value}, *piecemeal(text.encode())) == text.encode()


def test_only_a_value_of_some_length_can_be_redacted() -> None:
    assert all(map(is_redactable, ["1234567x", "éééé", " x2345678\n"]))
    assert not any(map(is_redactable, ["", "abcdefg", "ééé", " abcdefg\n", "1234567890"]))


@pytest.mark.parametrize(
    ("value_by_key", "text", "shown"),
    [
        ({"A": "abcdefgh", "B": "abcdefgh-ijk"}, b"abcdefgh-ijk", b"[redacted B]"),
        ({"A": "abcdefgh", "B": "abcdefgh-ijk"}, b"abcdefgh-ij", b"[redacted A]-ij"),
        # Not a tail of B, nor a second marker for what one stands for already.
        ({"A": "abcdefgh", "B": "ghijklmn"}, b"-abcdefghijklmn-", b"-[redacted A]-"),
        ({"A": "abababab"}, b"-abababababab-", b"-[redacted A]-"),
        ({"A": "abcdefgh"}, b"abcdefghabcdefgh", b"[redacted A][redacted A]"),
        ({"A": "abcdefgh", "B": "abcdefgh"}, b"abcdefgh", b"[redacted A]"),
        ({}, b"abc\ndef", b"abc\ndef"),
    ],
)
def test_secrets_that_meet_leave_nothing_of_each_other(
    value_by_key: dict[str, str], text: bytes, shown: bytes
) -> None:
    assert redacted(value_by_key, text) == shown
    assert redacted(value_by_key, *piecemeal(text)) == shown


def test_a_message_with_a_secret_is_still_json() -> None:
    for value in (TOKEN, ODD, PEM):
        message = json.dumps({"a": f"x {value} y", "b": json.dumps([value])}).encode()
        assert json.loads(redacted({"KEY": value}, message))["a"].startswith("x [redacted KEY]")


@pytest.mark.parametrize(
    ("chunk", "passed_on"),
    [
        (b"one\ntwo\nprompt: ", b"one\ntwo\nprompt: "),  # could not be the start of a secret
        (b"one\nkey=ghp_wJ", b"one\nkey="),
        (b"key=" + TOKEN.encode(), b"key=[redacted KEY]"),
        (b"ghp_wJ\n", b"ghp_wJ\n"),  # nothing goes on after a newline
        (b"-----BEGIN PRIVATE KEY-----\n", b"[redacted PEM]\n"),
    ],
)
def test_only_what_may_become_a_secret_is_held_back(chunk: bytes, passed_on: bytes) -> None:
    assert Redactor({"KEY": TOKEN, "PEM": PEM}).feed(chunk) == passed_on


TEXTS = st.text("ab/\"\\é&\n %+<'", max_size=40)


@given(st.lists(TEXTS, max_size=3), st.data())
def test_every_cut_shows_the_same_and_no_secret(values: list[str], data: st.DataObject) -> None:
    value_by_key = {f"KEY{number}": value for number, value in enumerate(values)}
    written = [form for value in values if value.strip() for form in forms(value.strip())]
    pieces = TEXTS | st.sampled_from(written) if written else TEXTS
    raw = "".join(data.draw(st.lists(pieces, max_size=6))).encode()
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    redactor = Redactor(value_by_key)
    shown = b""
    for start, end in pairwise([0, *sorted(cuts), len(raw)]):
        shown += redactor.feed(raw[start:end])
        whole_lines = raw[: raw[:end].rfind(b"\n") + 1]
        assert shown.startswith(Redactor(value_by_key).feed(whole_lines))
    shown += redactor.rest()
    assert shown == redacted(value_by_key, raw)
    assert shown == redacted(value_by_key, *piecemeal(raw))
    every = [form for value in filter(is_redactable, values) for form in forms(value.strip())]
    assert not any(form.encode() in shown for form in every if "\n" not in form)


def test_an_endless_line_costs_no_more_than_a_piece_of_it() -> None:
    redactor = Redactor({"KEY": TOKEN, "PEM": PEM})
    longest_bytes = max(map(len, redactor._marker_by_form))
    chunk = (b"x" * 1000 + TOKEN[:-1].encode()) * 64
    passed_on = 0
    tracemalloc.start()
    for fed in range(1, 101):
        passed_on += len(redactor.feed(chunk))
        assert fed * len(chunk) - passed_on < longest_bytes
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 10 * len(chunk)

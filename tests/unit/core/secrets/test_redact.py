"""Redaction of secrets in a server's output, in every encoding and in chunks of any size."""

import base64
import json
import re
import tracemalloc
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.secrets.redact import Redactor, is_redactable

TOKEN = "ghp_wJalrXUtnFEMIK7MDENG"
ODD = 'p@ss/w "rd"\\é€😀\x7f%20+~!*'  # characters with several encodings
BODY = ["MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "AQC7VJTUt9Us8cKjMSzf"]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *BODY, "-----END PRIVATE KEY-----", ""])
MARKER = b"[redacted KEY]"


@lru_cache(maxsize=8)
def made(*value_by_key: tuple[str, str]) -> Redactor:
    """Return a redactor that is reused after its stream has ended: it takes long to make."""
    return Redactor(dict(value_by_key))


def redacted(value_by_key: Mapping[str, str], *chunks: bytes) -> bytes:
    redactor = made(*value_by_key.items())
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
    """Return the forms in which programs write a value, each form once."""
    twice = [form for once in in_json(value) for form in in_json(once)]
    raw = value.encode()
    hexes = [raw.hex(), raw.hex().upper()]
    return list(dict.fromkeys([value, *in_json(value), *twice, *hexes, *in_url(value)]))


@pytest.mark.parametrize(("value", "form"), [(v, form) for v in (TOKEN, ODD) for form in forms(v)])
def test_every_form_is_replaced_as_a_whole(value: str, form: str) -> None:
    raw = f'["{form}"]\n'.encode()
    assert redacted({"KEY": value}, raw) == b'["' + MARKER + b'"]\n'
    assert redacted({"KEY": value}, *piecemeal(raw)) == b'["' + MARKER + b'"]\n'


def more_forms(value: str) -> list[str]:
    """Return the further forms of a whole value, each form once."""
    raw = value.encode()
    pairs = [raw.hex(" "), raw.hex(":"), ", ".join(map(hex, raw)), ",".join(map(hex, raw))]
    assert min(raw) > 0xF  # or hex() would leave a digit out
    pairs += [pair.upper().replace("0X", "0x") for pair in pairs]
    twice = [again for once in in_url(value) for again in in_url(once)]
    cases = [form for other in (value.upper(), value.lower()) for form in in_json(other)]
    return list(dict.fromkeys([*pairs, *twice, *cases]))


@pytest.mark.parametrize(
    ("value", "form"), [(v, form) for v in (TOKEN, ODD) for form in more_forms(v)]
)
def test_every_form_of_a_whole_value_is_replaced(value: str, form: str) -> None:
    raw = f'["{form}"]\n'.encode()
    assert redacted({"KEY": value}, raw) == b'["' + MARKER + b'"]\n'
    assert redacted({"KEY": value}, *piecemeal(raw)) == b'["' + MARKER + b'"]\n'


def wrapped(raw: bytes, columns: int, end: str) -> bytes:
    digits = base64.b64encode(raw).decode()
    lines = [digits[at : at + columns] for at in range(0, len(digits), columns)]
    return "".join(line + end for line in lines).encode()


LONG = "eyJ" + base64.b64encode(bytes(range(1, 200))).decode()
OTHER = "Authorization: Bearer and more words around it, of which nothing is a secret at all. "


@pytest.mark.parametrize(
    "value", [TOKEN, ODD, LONG, "a-secret"], ids=["token", "odd", "long", "short"]
)
@pytest.mark.parametrize("columns", [64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\\r\\n"])
def test_base64_in_lines_is_found_wherever_it_is_wrapped(
    value: str, columns: int, end: str
) -> None:
    """At most three digits before the end of a line stay, which hold two bytes."""
    for before in range(80):
        text = (OTHER[:before] + value + OTHER).encode()
        raw = wrapped(text, columns, end)
        shown = redacted({"KEY": value}, raw)
        assert shown.count(MARKER) == 1, before
        half = len(raw) // 2
        assert redacted({"KEY": value}, raw[:half], raw[half:]) == shown
        rest = re.sub(rb"\\r|\\n|\s", b"", shown.replace(MARKER, b""))
        left = len(rest) - len(base64.b64encode(text)) + len(value.encode()) * 4 / 3
        assert left <= 2 + 3, before  # digits that also encode other bits, and digits that may stay


def test_base64_of_base64_is_found() -> None:
    for before in ("", "u", "u:", "user:"):
        inner = base64.b64encode(f"{before}{TOKEN}@h".encode())
        for outer in (b"", b"x", b"xy"):
            shown = redacted({"KEY": TOKEN}, base64.b64encode(outer + inner))
            assert shown.count(MARKER) == 1
            assert len(shown.replace(MARKER, b"")) <= 24


def test_a_line_with_an_end_like_base64_is_passed_on_at_once() -> None:
    redactor = Redactor({"KEY": TOKEN})
    start = base64.b64encode(TOKEN.encode())[:10]
    for line in (b"{}\n", b"done\n", b"x " + start[:3] + b"\n"):
        assert redactor.feed(line) == line
    assert (
        redactor.feed(start + b"\n") == b""
    )  # the twin: base64 that may continue in the next line
    assert redactor.feed(b"!") == start + b"\n!"


@pytest.mark.parametrize(
    ("value_by_key", "text"),
    [
        ({"A": "1234567x" * n}, f"{'y' * shift}{'1234567x' * n}")
        for n in (1, 2, 4, 9)
        for shift in range(17)
    ],
)
def test_a_value_is_found_wherever_it_begins(value_by_key: dict[str, str], text: str) -> None:
    """Only some words of a text are compared."""
    shown = redacted(value_by_key, text.encode())
    assert shown == text.partition("1")[0].encode() + b"[redacted A]"


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
        # The digits that stay also encode bits around the value, or are the padding.
        assert (found, written[: len(head)]) == (MARKER, head)
        assert written.endswith(tail)
        assert len(head) <= -(-8 * len(before) // 6)
        assert len(tail) <= -(-8 * len(after) // 6) + 3


def test_a_value_of_several_lines_is_one_secret() -> None:
    encoded = base64.b64encode(PEM.encode()).decode()
    for written in (encoded, *(form for form in forms(PEM) if "\n" not in form)):
        head, found, tail = redacted({"KEY": PEM}, f'"{written}"'.encode()).partition(MARKER)
        assert (head, found) == (b'"', MARKER)
        assert len(tail) <= len('Cg=="')  # the newline at its end is not secret


def test_with_raw_newlines_it_is_found_line_by_line() -> None:
    for value in (PEM, PEM.replace("\n", "\r\n")):
        assert redacted({"KEY": value}, PEM.encode()) == (MARKER + b"\n") * 5
        assert redacted({"KEY": PEM}, value.encode()).count(MARKER) == 5


def test_one_line_of_it_is_found_alone() -> None:
    for form in [form for line in BODY for form in forms(line)]:
        assert redacted({"KEY": PEM}, form.encode()) == MARKER


TWINS = {
    TOKEN: [
        TOKEN[:-1],
        TOKEN[1:],
        TOKEN.swapcase(),
        TOKEN[:9] + "\n" + TOKEN[9:],
        TOKEN.lower()[1:],
        TOKEN.encode().hex("-"),
        TOKEN.encode().hex(" ", 2),
        base64.b64encode(TOKEN.encode()).decode()[:16] + "\n\n" + TOKEN[16:],
    ],
    "tuesday-morning": ["Tuesday-Morning TUESDAY-MORNING"],  # without a digit it may be a word
    ODD: [ODD.replace("/", "//"), ODD.encode().hex()[1:], quote(ODD)[:-1]],
    "1234": ["1234 and 1234"],  # too short to be redacted
    "1234567890": ['{"chat": 1234567890}'],  # with a marker it would not be JSON
    " 1234567 ": [" 1234567 "],
    "short\nlines\nonly": ["short\nlines\nonly"],  # raw newlines, and no line long enough
    "x" * 19 + "\n" + "y" * 20: ["x" * 19, "y" * 19],
}


@pytest.mark.parametrize(("value", "text"), [(v, text) for v in TWINS for text in TWINS[v]])
def test_a_text_that_resembles_a_secret_stays(value: str, text: str) -> None:
    assert redacted({"KEY": value}, text.encode()) == text.encode()
    assert redacted({"KEY": value}, *piecemeal(text.encode())) == text.encode()


REDACTABLE = ["1234567x", "éééé", " x2345678\n", "1234567e9", "1.2.3.4.5", "-1234567-"]
NOT_REDACTABLE = ["", "abcdefg", "ééé", " abcdefg\n", "1234567890", "-12345678", "1234567.89"]


def test_only_a_long_value_that_is_not_a_number_can_be_redacted() -> None:
    assert [value for value in REDACTABLE + NOT_REDACTABLE if is_redactable(value)] == REDACTABLE


@pytest.mark.parametrize(
    ("value_by_key", "text", "shown"),
    [
        ({"A": "abcdefgh", "B": "abcdefgh-ijk"}, b"abcdefgh-ijk", b"[redacted B]"),
        ({"A": "abcdefgh", "B": "abcdefgh-ijk"}, b"abcdefgh-ij", b"[redacted A]-ij"),
        # Neither a tail of B, nor a second marker for replaced bytes.
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
        (b"ghp_wJ\n", b"ghp_wJ\n"),  # a newline ends the form
        (b"-----BEGIN PRIVATE KEY-----\n", b"[redacted PEM]\n"),
    ],
)
def test_only_the_beginning_of_a_form_is_held_back(chunk: bytes, passed_on: bytes) -> None:
    assert Redactor({"KEY": TOKEN, "PEM": PEM}).feed(chunk) == passed_on


TEXTS = st.text("ab/\"\\é&\n %+<'", max_size=40)


@given(st.lists(TEXTS, max_size=3), st.data())
def test_the_output_does_not_depend_on_the_chunks(values: list[str], data: st.DataObject) -> None:
    value_by_key = {f"KEY{number}": value for number, value in enumerate(values)}
    written = [form for value in values if value.strip() for form in forms(value.strip())]
    for value in values:
        lines = wrapped(value.strip().encode(), 64, data.draw(st.sampled_from(["\n", "\r\n"])))
        written.append(lines.decode())
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

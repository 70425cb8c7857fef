"""Egress requests of a server, merged from three logs; a server can neither hide nor forge one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.egress.access_log import (
    EgressEvent,
    EgressRow,
    from_front,
    from_kernel,
    from_squid,
    row_of,
    summary,
)
from mcpwrap.core.wire import sni_front_log
from mcpwrap.core.wire.sni_front_log import FrontEvent, FrontEventKind

# As Squid 5.7 wrote them.
ENDED = (
    b'{"t":1795326279.511,"server":"probe","verdict":"ok","rule":"allowed","method":"CONNECT",'
    b'"host":"api.good.test","port":"443","url":"api.good.test:443","sni":"api.good.test",'
    b'"status":200,"address":"198.51.100.10","in":741,"out":1737,"ms":10,"squid":"TCP_TUNNEL",'
    b'"error":"-"}\n'
)
OPENED = (
    b'{"t":1795326279.995,"server":"probe","verdict":"ok","rule":"allowed","method":"CONNECT",'
    b'"host":"api.good.test","port":"443","url":"api.good.test:443","sni":"api.good.test",'
    b'"status":200,"address":"-","in":63,"out":0,"ms":1,"squid":"NONE_NONE","error":"-"}\n'
)
NOT_ALLOWED = (
    b'{"t":1795326279.589,"server":"probe","verdict":"deny","rule":"host-not-allowed",'
    b'"method":"CONNECT","host":"other.test","port":"443","url":"other.test:443","sni":"-",'
    b'"status":403,"address":"-","in":35,"out":0,"ms":3,"squid":"NONE_NONE",'
    b'"error":"ERR_FORWARDING_DENIED"}\n'
)
PLAIN = (
    b'{"t":1795326279.668,"server":"probe","verdict":"deny","rule":"plain-http","method":"GET",'
    b'"host":"api.good.test","port":"80","url":"http://api.good.test/small","sni":"-",'
    b'"status":403,"address":"-","in":142,"out":430,"ms":0,"squid":"TCP_DENIED",'
    b'"error":"ERR_ACCESS_DENIED"}\n'
)
FIELDS = {
    "t": 5.0, "server": "git", "verdict": "deny", "rule": "host-not-allowed", "method": "GET",
    "host": "a.test", "port": "443", "url": "https://a.test/", "sni": "-", "status": 403,
    "address": "-", "in": 0, "out": 0, "ms": 0, "squid": "TCP_DENIED", "error": "-",
}  # fmt: skip


def line(**fields: str | bytes) -> bytes:
    """Return a line as Squid escapes it: log_quoted_string() of its Format.cc."""
    texts = []
    for key, value in (FIELDS | fields).items():
        raw = value if isinstance(value, bytes) else str(value).encode()
        for plain, escaped in ((b"\\", rb"\\"), (b'"', rb"\""), (b"\r", rb"\r"), (b"\n", rb"\n")):
            raw = raw.replace(plain, escaped)
        raw = raw.replace(b"\t", rb"\t")
        texts.append(b'"%s":%s' % (key.encode(), raw if key == "t" else b'"%s"' % raw))
    return b"{%s}\n" % b",".join(texts)


def squid(**fields: str | bytes) -> EgressEvent:
    note = from_squid(line(**fields))
    assert note is not None
    return note


def test_lines_of_squid_are_read() -> None:
    for raw, at, place, rule in (
        (ENDED, 1795326279.511, "api.good.test:443", "allowed"),
        (OPENED, 1795326279.995, "api.good.test:443", "opened"),
        (NOT_ALLOWED, 1795326279.589, "other.test:443", "host-not-allowed"),
        (PLAIN, 1795326279.668, "api.good.test:80", "plain-http"),
    ):
        assert from_squid(raw) == EgressEvent(at=at, server="probe", destination=place, rule=rule)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        ENDED[20:],  # the end of a line that began before the log was opened
        NOT_ALLOWED[:60],  # and its host
        line(server="-"),
        line(host="-", port="-", url="error:transaction-end-before-headers"),
        line(host="-", port="0", url="error:invalid-request"),
        line(t="soon"),
    ],
)
def test_a_line_without_a_request_is_left_out(raw: bytes) -> None:
    assert from_squid(raw) is None


ASKED_FOR = [
    ({"verdict": "ok", "error": "ERR_NONE"}, "allowed", ""),
    ({"verdict": "ok", "error": "ERR_CONNECT_FAIL"}, "no-answer", "ERR_CONNECT_FAIL"),
    # A tunnel that was never opened has only one line.
    (
        {"verdict": "ok", "error": "ERR_DNS_FAIL", "squid": "NONE_NONE"},
        "no-answer",
        "ERR_DNS_FAIL",
    ),
    ({"rule": "sni-not-allowed", "sni": "b.test"}, "sni-not-allowed", "b.test"),
    ({"rule": "sni-not-allowed"}, "sni-not-allowed", ""),
    ({"rule": "private-address", "address": "10.0.0.5"}, "private-address", "10.0.0.5"),
    ({"rule": "private-address"}, "private-address", ""),
    ({"rule": "plain-http", "address": "10.0.0.5"}, "plain-http", ""),
    ({"verdict": "-", "rule": "-", "error": "ERR_X"}, "not-served", "ERR_X"),
    ({"verdict": "-", "rule": "-"}, "not-served", ""),
]
REQUESTS = [
    ("https://a.test/v1/x", "GET a.test/v1/x"),
    ("https://a.test/v1/x?", "GET a.test/v1/x"),  # strip_query_terms keeps the question mark
    ("https://a.test/?u=https://b.test/", "GET a.test/"),
    ("https://a.test", "GET a.test/"),
    ("https://a.test/https://b.test/", "GET a.test/https://b.test/"),
    ('https://a.test/"]', 'GET a.test/"]'),
    ("https://a.test/\n[x]", r"GET a.test/\x0a[x]"),
    ("https://a.test/\\x0a", r"GET a.test/\x5cx0a"),  # two different texts are shown differently
    (b"https://a.test/\xff\x01\x7f", r"GET a.test/\xff\x01\x7f"),
    ("https://a.test/ü", r"GET a.test/\xc3\xbc"),
]


@pytest.mark.parametrize(("fields", "rule", "detail"), ASKED_FOR)
def test_the_detail_of_each_rule(fields: dict[str, str], rule: str, detail: str) -> None:
    note = squid(**fields)
    assert (note.rule, note.detail) == (rule, detail)


@pytest.mark.parametrize(("url", "detail"), REQUESTS)
def test_a_request_is_its_method_host_and_path(url: str | bytes, detail: str) -> None:
    assert squid(rule="no-request-rule", url=url).detail == detail


HOSTS = [
    ("-", "-:443"),  # a host with this name is not a missing host
    ("[2001:db8::1]", "[2001:db8::1]:443"),
    ('a"b', 'a"b:443'),
    ("a\\", r"a\x5c:443"),
    ("\x1b[2J", r"\x1b[2J:443"),
    ("a\r\nb\tc", r"a\x0d\x0ab\x09c:443"),
    (b"\xff\xfe", r"\xff\xfe:443"),
    (b"\xed\xa0\x80", r"\xed\xa0\x80:443"),
    (b"\x00\x07", r"\x00\x07:443"),
    ("a\u202eb", r"a\xe2\x80\xaeb:443"),
    ("{0}%s", "{0}%s:443"),
    ('","server":"time', '","server":"time:443'),
    ("a" * 256, "a" * 250 + "...:443"),
]


@pytest.mark.parametrize(("host", "place"), HOSTS)
def test_a_host_is_shown_whatever_is_in_it(host: str | bytes, place: str) -> None:
    note = squid(host=host, url=b"x")
    assert (note.server, note.destination) == ("git", place)


@pytest.mark.parametrize("size", [1, 100, 8000])
def test_a_url_too_long_for_the_log_hides_no_request(size: int) -> None:
    url = "https://a.test/" + "a" * 8000
    note = from_squid(line(rule="no-request-rule", url=url)[: 200 + size])
    assert note is not None
    assert (note.server, note.destination) == ("git", "a.test:443")
    assert note.rule == "no-request-rule"
    assert row_of(note).allows == ""  # an entry with a truncated path would allow others too


@given(st.binary(), st.binary(), st.binary(), st.integers(0, 400))
def test_no_server_hides_or_steers(host: bytes, url: bytes, sni: bytes, cut: int) -> None:
    note = from_squid(line(host=host, url=url, sni=sni, rule="sni-not-allowed"))
    assert note is not None
    assert note.server == "git"
    assert f"{note.destination}{note.detail}".isascii()
    assert f"{note.destination}{note.detail}".isprintable()
    from_squid(line(host=host, url=url, sni=sni)[cut:])
    from_squid(line(host=host, url=url, sni=sni)[:cut])


@given(st.binary())
def test_no_line_breaks_a_reader(raw: bytes) -> None:
    from_squid(raw)
    from_front(raw)


def front(kind: FrontEventKind, host: str = "", detail: str = "") -> EgressEvent | None:
    return from_front(
        sni_front_log.encode(FrontEvent(t=7, server="git", event=kind, host=host, detail=detail))
    )


EVENTS: list[tuple[FrontEventKind, str, str, tuple[str, str, str] | None]] = [
    ("asked", "a.test", "", ("a.test", "asked", "")),
    ("asked", r"a\x00b", "no name of a host", (r"a\x00b", "asked", "no name of a host")),
    ("no-sni", "", "names no host", ("port 443", "no-sni", "")),
    ("no-sni", "192.0.2.1", "names an invalid host", ("192.0.2.1", "no-sni", "")),
    ("not-tls", "", "begins with 'G', which does not", ("port 443", "not-tls", "")),
    ("too-many", "", "", ("port 443", "too-many", "")),
    ("more", "", "9 more", None),
    ("refused", "a.test", "403 Forbidden", None),  # Squid's own log has the rule
    (
        "refused",
        "a.test",
        "the proxy cannot be asked: Connection refused",  # so Squid has no line
        ("a.test:443", "no-proxy", "the proxy cannot be asked: Connection refused"),
    ),
    (
        "closed-early",
        "",
        "before its ClientHello was whole",
        ("port 443", "closed-early", "before its ClientHello was whole"),
    ),
    ("closed-early", "a.test", "by the host", ("a.test:443", "closed-early", "by the host")),
    # The front escapes these; if it ever did not, they would still be harmless.
    ("asked", "\x1b[2J\n\u202e", "", (r"\x1b[2J\x0a?", "asked", "")),
    ("asked", "a" * 300, "", ("a" * 250 + "...", "asked", "")),
]


@pytest.mark.parametrize(("kind", "host", "detail", "expected"), EVENTS)
def test_events_of_the_front_are_read(
    kind: FrontEventKind, host: str, detail: str, expected: tuple[str, str, str] | None
) -> None:
    note = front(kind, host, detail)
    assert (note and (note.destination, note.rule, note.detail)) == expected
    assert note is None or (note.at, note.server) == (7, "git")


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", b'{"t":1,"server":"git","event":"new"}'])
def test_a_malformed_event_is_left_out(raw: bytes) -> None:
    assert from_front(raw) is None


@pytest.mark.parametrize(
    ("address", "protocol", "port", "destination", "rule", "allows"),
    [
        ("10.0.0.5", "tcp", 5432, "10.0.0.5:5432/tcp", "past-squid", "direct 10.0.0.5:5432"),
        ("fd00::5", "tcp", 22, "[fd00::5]:22/tcp", "past-squid", "direct [fd00::5]:22"),
        ("8.8.8.8", "udp", 53, "8.8.8.8:53/udp", "dns", ""),
        ("8.8.8.8", "tcp", 53, "8.8.8.8:53/tcp", "dns", ""),
        ("8.8.8.8", "udp", 443, "8.8.8.8:443/udp", "not-tcp", ""),
        ("8.8.8.8", "132", 9, "8.8.8.8:9/132", "not-tcp", ""),
        ("127.77.0.9", "tcp", 3128, "127.77.0.9:3128/tcp", "past-squid", ""),
    ],
)
def test_counts_of_the_kernel_are_read(
    address: str, protocol: str, port: int, destination: str, rule: str, allows: str
) -> None:
    row = row_of(from_kernel("git", address, protocol, port, 4))
    assert (row.destination, row.rule, row.allows) == (destination, rule, allows)
    assert (row.is_refused, row.times, row.last) == (True, 4, 0)


def rows(*notes: EgressEvent | None) -> list[tuple[str, str, int, float]]:
    found = summary(note for note in notes if note)
    return [(row.destination, row.rule, row.times, row.last) for row in found]


def note(destination: str, rule: str, at: float = 1, detail: str = "") -> EgressEvent:
    return EgressEvent(at=at, server="git", destination=destination, rule=rule, detail=detail)


def test_equal_requests_are_one_row_and_the_latest_is_last() -> None:
    assert rows(*map(from_squid, (PLAIN, ENDED, OPENED, ENDED, NOT_ALLOWED))) == [
        ("api.good.test:443", "allowed", 2, 1795326279.511),
        ("other.test:443", "host-not-allowed", 1, 1795326279.589),
        ("api.good.test:80", "plain-http", 1, 1795326279.668),
    ]
    assert rows(note("b:1", "x", 3), note("a:1", "x", 2), note("b:1", "x", 1)) == [
        ("a:1", "x", 1, 2),
        ("b:1", "x", 2, 3),
    ]
    assert rows() == []


def test_different_requests_are_different_rows() -> None:
    assert len(rows(note("a:1", "x", detail="GET a/"), note("a:1", "x", detail="GET a/b"))) == 2


REACHED = [
    ([("a.test", "asked")], ["asked"]),
    ([("a.test", "asked"), ("a.test:443", "allowed")], ["allowed"]),
    ([("a.test:8443", "port-not-allowed"), ("a.test", "asked")], ["port-not-allowed"]),
    ([("a.test", "asked"), ("a.test:443", "opened")], ["opened"]),  # a stream lasts for days
    ([("a.test:443", "opened"), ("a.test:443", "sni-not-allowed")], ["sni-not-allowed"]),
    ([("a.test:443", "opened"), ("a.test:8443", "allowed")], ["allowed", "opened"]),
    ([("a.test", "asked"), ("b.a.test:443", "allowed")], ["allowed", "asked"]),
    ([("2001", "asked"), ("[2001:db8::1]:443", "host-not-allowed")], ["asked", "host-not-allowed"]),
]


@pytest.mark.parametrize(("noted", "left"), REACHED)
def test_a_lookup_that_a_connection_followed_has_no_row(
    noted: list[tuple[str, str]], left: list[str]
) -> None:
    assert sorted(row.rule for row in summary(note(*each) for each in noted)) == left


@pytest.mark.parametrize(
    ("rule", "is_refused"),
    [
        ("allowed", False),
        ("opened", False),
        ("no-answer", False),
        ("asked", False),
        ("host-not-allowed", True),
        ("no-proxy", True),
        ("-", True),  # no rule matched, and last.conf refused it
    ],
)
def test_which_rules_are_refusals(rule: str, is_refused: bool) -> None:  # noqa: FBT001
    assert row_of(note("a.test:443", rule)).is_refused is is_refused


def test_a_row_as_json() -> None:
    row = row_of(note("a.test:443", "host-not-allowed", 5))
    assert row == EgressRow(
        destination="a.test:443",
        rule="host-not-allowed",
        is_refused=True,
        times=1,
        last=5,
        why="the host is not in `egress`",
        fix="add it to `egress`",
        allows="egress a.test",
    )

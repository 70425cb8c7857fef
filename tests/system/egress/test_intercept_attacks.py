"""TLS interception: a hostile server sends only the requests that its rules name."""

import pytest

from tests.shared import pace
from tests.system.bed.roots import TESTING
from tests.system.egress import battlefield
from tests.system.egress.battlefield import Battlefield, quiet_s, reread
from tests.system.guest import proxy_attacks
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = battlefield.booted
INTERCEPT = "/var/lib/mcpwrap/squid/intercept-1.conf"
HOST = "api.good.test"

Arrived = list[tuple[str, str, str]]


def arrivals(field: Battlefield) -> tuple[Arrived, set[str]]:
    """Return the requests that reached the host, and other names that were resolved."""
    seen = field.seen()
    assert seen.hosts() <= {HOST}
    return seen.requests, seen.names - {HOST}


def asked(field: Battlefield, *requests: str) -> tuple[list[str], Arrived, set[str]]:
    """Send each in a tunnel of its own; return the first lines, and the requests of each host."""
    told = field.run("look", proxy_attacks.ask_inside, HOST, requests)
    return told, *arrivals(field)


def asked_for_more(
    field: Battlefield, *requests: str, more: int, wait_s: float
) -> tuple[Arrived, set[str]]:
    """Send each so, and wait for as many responses after the first, or until none comes."""
    field.run("look", proxy_attacks.ask_more_inside, HOST, requests, more, wait_s)
    return arrivals(field)


def request(line: str, *headers: str, host: str = "api.good.test", body: str = "") -> str:
    return "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", *headers, "", body])


def status(line: str) -> str:
    return line.split()[1] if line.startswith("HTTP/") else line


REFUSED_PATHS = [
    "/admin", "/v1", "/V1/x", "//v1/x", "/v1//admin",
    "/v1/../admin", "/v1/x/..", "/v1/..?x", "/v1/%2e%2e/admin", "/v1/.%2e/admin",
    "/v1/%2E%2E;/admin",
    "/v1/..;/admin", "/v1/..;x=1/admin", "/v1/..%3b/admin", "/v1/.;/admin", "/v1/;/../admin",
    "/v1/..%2fadmin", "/v1/..\\admin", "/v1/..%5cadmin", "/v1/%252e%252e/admin",
    "/v1/..%00/admin", "/v1/.%00./admin", "/v1/..\t/admin", "/v1/.. /admin", "/v1/#/../../admin",
    "/v1/..\x7f/admin", "/v1/..\x01/admin", "/v1/\xff/admin",
    "/v1/%3f/../../admin", "/v1/x%3Fy", "/v1/%40scope%2fname", "/v1/a\\b", "/v1/a%5Cb",
    "/v1/%25%32%65%25%32%65/admin", "/v1/%%32%65%%32%65/admin", "/v1/%u002e%u002e/admin", "/v1/%",
    "/v1/%zz", "/v1/a%00b", "/v1/a%0d%0ab", "/v1/a%7fb",
    # overlong, or invalid UTF-8 for another reason
    "/v1/%c0%ae%c0%ae/admin", "/v1/%C0%AF..%c0%afadmin", "/v1/%e0%80%ae%e0%80%ae/admin",
    "/v1/%f0%80%80%ae/admin", "/v1/%ff", "/v1/%c3/x", "/v1/%ed%a0%80", "/v1/%f5%80%80%80",
]  # fmt: skip
PASSED_PATHS = [
    "/v1/x", "/v1/x?y=/../..;//%2e", "/v1/a.b/..c/.well-known/d..", "/v1/a%20b;c=d",
    "/v1/x?%c0%ae%", "/v1/caf%C3%A9/%40scope%3A1", "/v1/%e2%82%ac/%f0%9f%98%80/%ED%9F%BF",
]  # fmt: skip


def test_a_path_that_could_be_read_in_two_ways_is_refused(field: Battlefield) -> None:
    told, arrived, _ = asked(field, *(request(f"GET {path}") for path in REFUSED_PATHS))
    assert {status(line) for line in told} == {"403", "400"}
    assert arrived == []
    _, arrived, _ = asked(field, *(request(f"GET {path}") for path in PASSED_PATHS))  # the twin
    assert [path for _, path, _ in arrived] == PASSED_PATHS


@pytest.mark.parametrize("path", ["/v1/a/..#/x", "/v1/a/..%23", "/v1/a/..%09/x"])
def test_so_is_one_that_only_some_programs_read_so(field: Battlefield, path: str) -> None:
    assert asked(field, request(f"GET {path}"))[1] == []


REMOVED_HEADERS = [
    "X-HTTP-Method-Override: DELETE", "x-http-method: DELETE", "X-METHOD-OVERRIDE:DELETE",
    "X-Override-Method: DELETE", "X-Original-Method: DELETE", "X-Original-URL: /admin",
    "X-Original-URI: /admin", "X-Rewrite-URL: /admin", "X-Real-URL: /admin",
    "X-Envoy-Original-Path: /admin", "X-Original-Host: evil.test", "X-Host: evil.test",
    "X-ARR-Original-URL: /admin", "Forwarded: host=evil.test", "X-RestLi-Method: DELETE",
    "X-Middleware-Rewrite: /admin", "Base-Url: /admin", "Transfer_Encoding: chunked",
    "Content_Length: 0", "TRANSFER_ENCODING: chunked\r\nCONTENT_LENGTH: 7",
    *(f"X-Forwarded-{end}: x" for end in (
        "For", "Host", "Proto", "Prefix", "Uri", "Path", "Method", "Server", "Port", "Scheme",
    )),
    "X_HTTP_Method_Override: DELETE", "X-HTTP_Method-Override: DELETE", "X_Original-URL: /admin",
    "X-HTTP-Method-Override: PUT\r\nX-HTTP-Method-Override: DELETE",
    "X-HTTP-Method-Override:\r\n DELETE", "X-HTTP-Method-Override:\tDELETE\r\n\tPUT",
    " X-HTTP-Method-Override: DELETE",  # folded into nothing
    "X-A: 1\nX-HTTP-Method-Override: DELETE",
]  # fmt: skip
REFUSED_HEADERS = [
    "X-HTTP-Method-Override : DELETE", "X-HTTP-Method-Override\t: DELETE",
    "X-HTTP-Method-Override\x0b: DELETE", "\x0bX-HTTP-Method-Override: DELETE",
    "X-HTTP-Method-Override\x00: DELETE", "X-HTTP-\r\n Method-Override: DELETE",
]  # fmt: skip
SOURCE_HEADERS = [
    "X-Amz-Copy-Source: /bucket/secret", "x_amz_copy-source:x", "X-MS-RENAME-SOURCE: /x",
    "X-Copy-From: /other/secret", "x_symlink_target: other/secret", "X-Object-Manifest: other/",
]  # fmt: skip
PASSED_HEADERS = ["X-Api-Key", "Authorization", "X-Request-Id", "api_key", "Accept"]
OTHERS = [f"{name}: x" for name in PASSED_HEADERS]


@on_each_release("Squid 5 and 6 parse headers differently")
def test_a_header_that_names_another_request_does_not_arrive(field: Battlefield) -> None:
    requests = [request("GET /v1/x", header, *OTHERS) for header in REMOVED_HEADERS]
    told = field.run("look", proxy_attacks.ask_inside, HOST, requests)
    assert {status(line) for line in told} == {"200"}
    arrived = [set(found.headers) for found in field.internet.requests()]
    assert len(arrived) == len(requests)
    passed = {"host", "connection", *(name.lower() for name in PASSED_HEADERS)}  # the twin
    assert [names - passed - {"x-a"} for names in arrived] == [set()] * len(requests)
    assert [passed - names for names in arrived] == [set()] * len(requests)
    field.seen()
    told, came, _ = asked(field, *(request("GET /v1/x", header) for header in REFUSED_HEADERS))
    assert {status(line) for line in told} == {"400"}
    assert came == []
    told, came, _ = asked(field, *(request("GET /v1/x", header) for header in SOURCE_HEADERS))
    assert {status(line) for line in told} == {"403"}
    assert came == []


CACHE_OBJECT = request("GET cache_object://api.good.test/v1/x")
OTHER_REQUESTS = {
    request("DELETE /v1/x"): "403",
    request("POST /v1/x", "Content-Length: 0"): "403",
    request("TRACE /v1/x"): "403",
    request("PURGE /v1/x"): "403",
    request("OPTIONS *"): "501",
    request("CONNECT api.good.test:443"): "403",
    request("connect api.good.test:443"): "403",
    request("CONNECT evil.test:443"): "503",  # Squid's own check: not of the certificate's text
    request("GET http://api.good.test/v1/x"): "403",
    request("GET http://api.good.test:443/v1/x"): "403",
    request("GET ftp://api.good.test:443/v1/x"): "403",
    request("GET wais://api.good.test:443/v1/x"): "403",
    request("GET whois://api.good.test:443/v1/x"): "403",
    request("GET urn:api.good.test:/v1/x"): "400",
    CACHE_OBJECT: "403",
    request("GET /squid-internal-mgr/config"): "403",
    request("GET https://api.good.test:8443/v1/x"): "403",
    request("GET https://a.cdn.test/v1/x"): "503",
    request("GET https://evil.test/v1/x"): "503",
    request("GET /v1/x", host="evil.test"): "503",
    request("GET /v1/x", host="a.cdn.test"): "503",
    request("GET /v1/x", f"X: {'a' * 17_000}"): "431",
}


def test_a_tunnel_leads_to_its_own_host_by_https_and_by_the_rules(field: Battlefield) -> None:
    told, arrived, names = asked(field, *OTHER_REQUESTS)
    expected = dict(OTHER_REQUESTS)
    if field.machine.suite == TESTING:
        expected[CACHE_OBJECT] = "400"  # Squid 7 has no such scheme
    assert [status(line) for line in told] == list(expected.values())
    assert (arrived, names) == ([], set())
    told, arrived, _ = asked(  # the twins
        field,
        request("GET /v1/x"),
        request("HEAD /v1/x"),
        request("POST /v1/post", "Content-Length: 0"),
        request("GET https://api.good.test/v1/x"),
    )
    assert {status(line) for line in told} == {"200"}
    assert [method for method, *_ in arrived] == ["GET", "HEAD", "POST", "GET"]


SECOND = request("DELETE /admin")
LENGTH = f"Content-Length: {len(SECOND) + 5}"
CHUNK = f"0\r\n\r\n{SECOND}"
CHUNKED = "Transfer-Encoding: chunked"
SMUGGLING = {
    "one after another": request("GET /v1/x", body=SECOND),
    "length and chunks": request("POST /v1/post", LENGTH, CHUNKED, body=CHUNK),
    "chunks and length": request("POST /v1/post", CHUNKED, LENGTH, body=CHUNK),
    "on a GET": request("GET /v1/x", LENGTH, CHUNKED, body=CHUNK),
    "a tab": request("POST /v1/post", LENGTH, "Transfer-Encoding:\tchunked", body=CHUNK),
    "a space": request("POST /v1/post", LENGTH, "Transfer-Encoding : chunked", body=CHUNK),
    "unknown": request("POST /v1/post", LENGTH, "Transfer-Encoding: xchunked", body=CHUNK),
    "twice": request("POST /v1/post", CHUNKED, "Transfer-Encoding: identity", body=CHUNK),
    "two lengths": request("POST /v1/post", "Content-Length: 0", LENGTH, body=SECOND),
    "a list of lengths": request("POST /v1/post", f"{LENGTH}, 0", body=SECOND),
    "a plus": request("POST /v1/post", LENGTH.replace(": ", ": +"), body=SECOND),
    "an extension": request("POST /v1/post", CHUNKED, body=f"0;a=\r\n\r\n{SECOND}"),
    "bare LF": f"GET /v1/x HTTP/1.1\nHost: api.good.test\n\n{SECOND}",
    "bare CR": request("GET /v1/x", "X: a\rDELETE /admin HTTP/1.1"),
    "two hosts": request("GET /v1/x", "Host: evil.test"),
    "a folded host": request("GET /v1/x", " evil.test"),
    "HTTP/0.9": "GET /v1/x\r\n\r\n",
    "an upgrade": request("GET /v1/x", "Connection: Upgrade", "Upgrade: websocket", body=SECOND),
    "expect": request("POST /v1/post", "Expect: 100-continue", LENGTH, body=SECOND + "12345"),
}  # fmt: skip


@on_each_release("Squid 5 and 6 parse requests differently")
def test_no_second_request_is_smuggled_past_the_rules(field: Battlefield) -> None:
    arrived, names = asked_for_more(
        field, *SMUGGLING.values(), more=proxy_attacks.MANY, wait_s=quiet_s()
    )
    assert {(path, host) for _, path, host in arrived} == {
        ("/v1/x", "api.good.test"),
        ("/v1/post", "api.good.test"),
    }
    assert {method for method, *_ in arrived} == {"GET", "POST"}
    assert names == set()
    two = request("GET /v1/1", body=request("GET /v1/2"))  # the twin
    arrived, _ = asked_for_more(field, two, more=1, wait_s=pace.WAIT_S / 2)
    assert [path for _, path, _ in arrived] == ["/v1/1", "/v1/2"]


SHARED = "include /usr/lib/mcpwrap/squid/intercept.conf"
# A line, its replacement, the attempt, and what reaches the host then.
MUTATIONS = [
    (
        "http_access deny s.look CONNECT encrypted r.nested-connect",
        "",
        request("CONNECT api.good.test:443", body=SECOND),
        ("DELETE", "/admin"),
    ),
    (
        "http_access deny s.look bad_path r.ambiguous-path",
        "",
        request("GET /v1/..;/admin"),
        ("GET", "/v1/..;/admin"),
    ),
    (
        SHARED,
        f"adapted_http_access allow all\n{SHARED}",  # before it refuses all but sound_path
        request("GET /v1/%ff"),
        ("GET", "/v1/%ff"),
    ),
    (
        "http_access deny s.look has_source r.no-request-rule",
        "",
        request("GET /v1/x", "X-Amz-Copy-Source: /admin"),
        ("GET", "/v1/x"),
    ),
    (
        "http_access deny s.look r.no-request-rule",
        "http_access allow s.look r.allowed",
        request("DELETE /v1/x"),
        ("DELETE", "/v1/x"),
    ),
]


@only_in_test_all("mutation twin: shows that the stories above notice a missing line")
@pytest.mark.parametrize(("line", "instead", "attack", "arrives"), MUTATIONS)
def test_a_line_is_what_refuses(
    field: Battlefield, line: str, instead: str, attack: str, arrives: tuple[str, str]
) -> None:
    def is_refused() -> bool:
        more, wait_s = proxy_attacks.MANY, quiet_s()
        return asked_for_more(field, attack, more=more, wait_s=wait_s)[0] == []

    assert is_refused()
    with field.edited(INTERCEPT, [(line, instead)], reread("intercept-1")):
        # A nested CONNECT has no response of its own: the response is to the request after it.
        _, arrived, _ = asked(field, attack)
        assert [found[:2] for found in arrived] == [arrives]
    assert is_refused()

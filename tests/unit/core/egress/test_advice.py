"""Suggested egress entries: each allows the request that it is for, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config import value_parsers
from mcpwrap.config.model import Destination, Direct
from mcpwrap.core.egress.advice import advice

LONGEST = ".".join(["a" * 61] * 4) + ".abcde"  # 253 characters
ENTRIES = [
    ("host-not-allowed", "other.test:443", "egress other.test"),
    ("host-not-allowed", "xn--bcher-kva.example:8443", "egress xn--bcher-kva.example:8443"),
    ("port-not-allowed", "other.test:8443", "egress other.test:8443"),
    ("host-not-allowed", f"{LONGEST}:443", f"egress {LONGEST}"),
    ("host-not-allowed", f"a{LONGEST}:443", ""),
    # A request for these is possible, and an entry of the same text would allow more.
    ("host-not-allowed", "*.other.test:443", ""),
    ("host-not-allowed", "@npm:443", ""),
    ("host-not-allowed", "npm:443", ""),
    ("host-not-allowed", "a_b.test:443", ""),
    ("host-not-allowed", "OTHER.test:443", ""),
    ("host-not-allowed", "other.test.:443", ""),
    ("host-not-allowed", "other.test:0", ""),
    ("host-not-allowed", "other.test:65536", ""),
    ("host-not-allowed", "other.test:-", ""),
    ("host-not-allowed", "other.test:443\n", ""),
    ("host-not-allowed", 'a.test", "b.test:443', ""),
    ("host-not-allowed", "{entry}:443", ""),
    ("host-not-allowed", "", ""),
    # `egress` takes only names.
    ("host-not-allowed", "203.0.113.5:443", "direct 203.0.113.5:443"),
    ("host-not-allowed", "[2001:DB8:0::1]:443", "direct [2001:db8::1]:443"),
    ("host-not-allowed", "[2001:db8::1]:0", ""),
    ("host-not-allowed", "2001:db8::1:443", ""),
    ("host-not-allowed", "[203.0.113.5]:443", ""),
    ("host-not-allowed", "[fe80::1%eth0]:443", ""),
    ("host-not-allowed", "127.1:443", ""),
    ("host-not-allowed", "0x7f.1:443", ""),
    ("host-not-allowed", "2130706433:443", ""),
    ("host-not-allowed", "127.77.0.1:3128", ""),  # another wrapper's egress address
    ("host-not-allowed", "[::ffff:127.77.0.1]:3128", ""),
    ("host-not-allowed", "[::203.0.113.5]:443", ""),
    ("host-not-allowed", "0.0.0.0:443", ""),
    ("host-not-allowed", "[::]:443", ""),
    ("host-not-allowed", "[::1]:5432", "direct [::1]:5432"),
    ("host-not-allowed", "224.0.0.251:5353", ""),
    ("private-address", "db.test:5432", ""),  # Squid does not log the address of a refused request
    ("plain-http", "api.test:80", ""),
    ("sni-not-allowed", "api.test:443", ""),
    ("allowed", "api.test:443", ""),
    ("a rule of a later version", "api.test:443", ""),
]


@pytest.mark.parametrize(("rule", "place", "allows"), ENTRIES)
def test_an_entry_is_the_destination(rule: str, place: str, allows: str) -> None:
    assert advice(rule, place, "")[2] == allows


DETAILS = [
    ("private-address", "db.test:5432", "10.0.0.5", "direct 10.0.0.5:5432"),
    ("private-address", "db.test:5432", "fd00::5", "direct [fd00::5]:5432"),
    ("private-address", "db.test:5432", "127.77.0.1", ""),
    ("past-squid", "10.0.0.5:5432/tcp", "10.0.0.5:5432", "direct 10.0.0.5:5432"),
    ("past-squid", "[fd00::5]:22/tcp", "[fd00::5]:22", "direct [fd00::5]:22"),
    ("past-squid", "127.77.0.1:22/tcp", "127.77.0.1:22", ""),
    ("past-squid", "10.0.0.5:0/tcp", "10.0.0.5:0", ""),
    ("no-request-rule", "a.test:443", "GET a.test/v1/x", "requests GET a.test/v1/x"),
    ("no-request-rule", "a.test:443", "DELETE a.test/", "requests DELETE a.test/"),
    ("no-request-rule", "a.test:443", "GET a.test", ""),
    # A server can request exactly these, and an entry of the same text allows any.
    ("no-request-rule", "a.test:443", "* a.test/v1/x", ""),
    ("no-request-rule", "a.test:443", "GET a.test/*", ""),
    ("no-request-rule", "a.test:443", "GET,POST a.test/", ""),
    ("no-request-rule", "a.test:443", "get a.test/", ""),
    ("no-request-rule", "a.test:443", "CONNECT a.test/", ""),
    ("no-request-rule", "a.test:443", "GET *.a.test/", ""),
    ("no-request-rule", "a.test:443", "GET a/", ""),
    ("no-request-rule", "a.test:443", f"GET a{LONGEST}/", ""),
    ("no-request-rule", "a.test:443", "GET a.test/x/../y", ""),
    ("no-request-rule", "a.test:443", "GET a.test//y", ""),
    ("no-request-rule", "a.test:443", "GET a.test/%2e", ""),
    ("no-request-rule", "a.test:443", "GET a.test/x?", ""),
    ("no-request-rule", "a.test:443", "GET a.test/x y", ""),
    ("no-request-rule", "a.test:443", r"GET a.test/\x0a", ""),
    ("no-request-rule", "a.test:443", 'GET a.test/", "POST a.test/x', ""),
    ("no-request-rule", "a.test:443", "GET a.test/cut...", ""),  # the rest is not known
]


@pytest.mark.parametrize(("rule", "place", "detail", "allows"), DETAILS)
def test_an_entry_is_the_logged_detail(rule: str, place: str, detail: str, allows: str) -> None:
    assert advice(rule, place, detail)[2] == allows


RULES = ["host-not-allowed", "port-not-allowed", "private-address", "past-squid", "no-request-rule"]
labels = st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True)
hosts = st.lists(labels, max_size=5).map(".".join) | st.ip_addresses().map(str)
asked_hosts = st.sampled_from(["{}", "[{}]", "*.{}", "@{}"]).flatmap(
    lambda form: (hosts | st.text()).map(form.format)
)
ports = st.integers(0, 70_000).map(str) | st.text(max_size=5)
methods = st.sampled_from(["GET", "POST", "*", "GET,POST", "CONNECT"]) | st.text(max_size=5)
paths = st.from_regex(r"/[!-~]{0,20}", fullmatch=True) | st.text()


@given(st.sampled_from(RULES), asked_hosts, ports, methods, paths)
def test_every_entry_is_one_that_the_configuration_accepts(
    rule: str, host: str, port: str, method: str, path: str
) -> None:
    place, request = f"{host}:{port}", f"{method} {host}{path}"
    for detail in (host, place, request):
        key, _, value = advice(rule, place, detail)[2].partition(" ")
        match key:
            case "egress":
                found = value_parsers.egress(value)
                assert found == Destination(host, int(port), with_subdomains=False)
            case "direct":
                at = value_parsers.direct(value)
                assert isinstance(at, Direct)
                assert at.port == int(place.rpartition(":")[2])
            case "requests":
                asked = value_parsers.request(value)
                assert (asked.methods, asked.host, asked.path) == ((method,), host, path)
                assert "*" not in path
            case _:
                assert (key, value) == ("", "")


WHYS = [
    ("host-not-allowed", "a.test:443", "", "the host is not in `egress`", "add it to `egress`"),
    ("host-not-allowed", "a_b:443", "", "the host is not in `egress`", ""),
    (
        "host-not-allowed",
        "203.0.113.5:443",
        "",
        "an address, but `egress` lists names",
        "if that is wanted, add it to `direct`",
    ),
    (
        "private-address",
        "a.test:443",
        "",
        "the name resolves to an address, which is not a public address",
        "if that is wanted, add the address to `direct`",
    ),
    (
        "sni-not-allowed",
        "a.test:443",
        "",
        "TLS in the tunnel requested no host, not the host of the tunnel",
        "the name in TLS must be the host's name; if not, list that name too",
    ),
    ("past-squid", "127.77.0.1:1/tcp", "127.77.0.1:1", "a connection past the proxy", ""),
    ("asked", "a.test", "no name of a host", "not a host name", ""),
    ("closed-early", "port 443", "", "closed", ""),
    ("something new", "a.test:443", "", "refused", ""),
    # A server's text is not a template.
    (
        "no-request-rule",
        "a.test:443",
        "GET a.test/{detail}{0}{x.y}%s",
        "no entry of `requests` has GET a.test/{detail}{0}{x.y}%s",
        "add it to `requests`",
    ),
    ("{detail}", "{place}", "{}", "refused", ""),
]


@pytest.mark.parametrize(("rule", "place", "detail", "why", "fix"), WHYS)
def test_reason_and_remedy(rule: str, place: str, detail: str, why: str, fix: str) -> None:
    assert advice(rule, place, detail)[:2] == (why, fix)

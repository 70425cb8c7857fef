"""Configuration of Squid: each server's own allowlist, at its own address."""

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.config.model import AllowedRequest, Destination, Direct
from mcpwrap.config.value_parsers import request
from mcpwrap.plan.egress import squid_conf
from mcpwrap.plan.egress.squid_conf import SquidListener
from tests.unit.plan.machine import DEBIAN

GOLDEN = Path(__file__).parent / "golden"
SQUID = Path(__file__).parents[4] / "squid"
API = Destination("api.example.com", 443, with_subdomains=False)
TREE = Destination("example.org", 8443, with_subdomains=True)
GIT = SquidListener(name="git", address="127.77.0.1", hosts=(API, TREE))
TIME = SquidListener(name="time", address="127.77.0.2", hosts=(API,))
REQUESTS = (
    AllowedRequest(("GET", "HEAD"), "api.example.com", "/v1/*/items*"),
    AllowedRequest(("POST",), "a.example.org", "/a.b/(c)+$"),
)
OPENED = replace(GIT, requests=REQUESTS)
PARENT = Direct("10.0.0.1", 3128)
Tell = Callable[[Sequence[SquidListener], Direct | None], str]


def tell_spliced(listeners: Sequence[SquidListener], parent: Direct | None) -> str:
    return squid_conf.spliced("proxy-1", listeners, parent)


def tell_intercepted(listeners: Sequence[SquidListener], parent: Direct | None) -> str:
    return squid_conf.intercepted("intercept-1", listeners, parent, DEBIAN.certgen)


BOTH = pytest.mark.parametrize("tell", [tell_spliced, tell_intercepted])


def test_an_instance_that_sees_names() -> None:
    assert tell_spliced([GIT], None) == (GOLDEN / "proxy.conf").read_text()


def test_an_instance_that_opens_tls() -> None:
    lines = tell_intercepted([OPENED], None).splitlines(keepends=True)
    of_headers = ("request_header_access ", "acl has.", "acl has_source ")
    told = "".join(line for line in lines if not line.startswith(of_headers))
    assert told == (GOLDEN / "intercept.conf").read_text()


@BOTH
def test_a_listener_without_hosts_allows_none(tell: Tell) -> None:
    lines = tell([replace(GIT, hosts=())], None).splitlines()
    for part in ("host", "listed", "same"):
        assert [line for line in lines if line.startswith(f"acl s.git.{part} ")] == [
            f"acl s.git.{part} all-of !all"
        ]


@pytest.mark.parametrize(
    ("header", "is_removed"),
    [
        ("X-HTTP-Method-Override", True),
        ("X_HTTP_Method_Override", True),  # the same to CGI and WSGI
        ("X-HTTP_Method-Override", True),
        ("X-HTTP-Method", True),
        ("X-Method-Override", True),
        ("X-Original-URL", True),
        ("X-Original-URI", True),
        ("X-Rewrite-URL", True),
        ("X_Rewrite-URL", True),
        ("Forwarded", True),
        ("X-Forwarded-For", True),
        ("X_Forwarded_Prefix", True),
        ("X-Forwarded-URI", True),
        ("X-RestLi-Method", True),
        ("X-Middleware-Rewrite", True),
        ("X-Amz-Copy-Source", False),  # refused
        ("X-Api-Key", False),
        ("Authorization", False),
        ("X-Request-Id", False),
        ("Other", False),  # Squid's name for all headers that it does not know
        ("All", False),
    ],
)
def test_a_header_that_names_another_request_is_removed(header: str, is_removed: bool) -> None:  # noqa: FBT001
    lines = tell_intercepted([OPENED, TIME], None).splitlines()
    assert (f"request_header_access {header} deny lists_requests" in lines) is is_removed
    assert [line for line in lines if line.startswith("acl lists_requests ")] == [
        "acl lists_requests myportname git"  # TIME has no `requests`
    ]


@pytest.mark.parametrize("header", ["X-Amz-Copy-Source", "X_Amz-Copy_Source", "X_Copy-From"])
def test_a_request_that_names_another_as_its_source_is_refused(header: str) -> None:
    lines = tell_intercepted([OPENED, TIME], None).splitlines()
    assert f"acl has.{header} req_header {header} ." in lines
    assert f"acl has_source any-of has.{header}" in lines
    refusals = [line for line in lines if line.startswith("http_access ") and "has_source" in line]
    assert refusals == ["http_access deny s.git has_source r.no-request-rule"]
    assert lines.index(refusals[0]) < lines.index("acl s.git.0.host dstdomain -n api.example.com")


def test_no_header_is_listed_twice_or_removed_where_no_request_is_judged() -> None:
    removed = [f"{line.lower()}" for line in removals([OPENED])]
    assert len(removed) == len(set(removed))
    assert removals([GIT, TIME]) == []


def removals(listeners: Sequence[SquidListener]) -> list[str]:
    lines = tell_intercepted(listeners, None).splitlines()
    words = ("request_header_access", "lists_requests", "has_source", "acl has.")
    return [line for line in lines if any(word in line for word in words)]


def test_who_opens_tls_and_lists_no_requests_allows_all_to_its_hosts() -> None:
    lines = tell_intercepted([GIT], None).splitlines()
    allowed = lines.index("http_access allow s.git r.allowed")
    assert lines[allowed - 1] == "http_access deny s.git to_private r.private-address"
    assert not [line for line in lines if "urlpath_regex" in line or "no-request-rule" in line]


@BOTH
def test_what_is_said_of_one_server_names_no_other(tell: Tell) -> None:
    one, two = tell([GIT], None), tell([GIT, TIME], None)
    of_git = [line for line in two.splitlines() if "git" in line]
    of_time = [line for line in two.splitlines() if "time" in line]
    assert of_git == [line for line in one.splitlines() if "git" in line]
    assert not {*of_git} & {*of_time}
    assert tell([TIME], None).splitlines()[-2:] == two.splitlines()[-2:]


@BOTH
@pytest.mark.parametrize(
    ("parent", "peer"),
    [
        (PARENT, "cache_peer 10.0.0.1 parent 3128 0 no-query no-digest default name=parent"),
        (
            Direct("fd00::1", 80),
            "cache_peer [fd00::1] parent 80 0 no-query no-digest default name=parent",
        ),
    ],
)
def test_behind_a_parent_nothing_leaves_but_through_it(
    tell: Tell, parent: Direct, peer: str
) -> None:
    alone, behind = tell([GIT], None).splitlines(), tell([GIT], parent).splitlines()
    assert set(behind) - set(alone) == {peer, "never_direct allow all"}
    # the parent resolves names, and knows which of its addresses are private
    assert {line for line in alone if line not in behind} == {
        line for line in alone if "to_private" in line
    }


@BOTH
def test_a_line_is_short_enough_for_squid_however_many_hosts_there_are(tell: Tell) -> None:
    hosts = [Destination(f"h{n}.{'a' * 60}.example", 443, n % 2 == 0) for n in range(256)]
    listener = SquidListener(name="n" * 26, address="127.77.78.31", hosts=tuple(hosts))
    assert max(map(len, tell([listener], PARENT).splitlines())) < 1024


@BOTH
def test_a_name_inside_tls_is_judged_by_the_entry_that_it_was_asked_for_by(tell: Tell) -> None:
    lines = tell([GIT], None).splitlines()
    assert [line.split(" step2 ")[1] for line in lines if " step2 " in line] == [
        "note_sni !without_sni s.git.same"
    ]
    entries = [line for line in lines if line.startswith("acl s.git.same") and "all-of" in line]
    assert [line.split(" all-of ")[1] for line in entries] == [
        "s.git.host0 s.git.sni0",
        "s.git.host1 s.git.sni1 !s.git.sni-top1",  # `*.example.org` is not example.org
    ]


def pattern(path: str) -> str:
    """Return the pattern for a glob, as Squid gets it."""
    opened = replace(GIT, requests=(AllowedRequest(("GET",), "api.example.com", path),))
    [found] = re.findall(r"urlpath_regex (\S+)\n", tell_intercepted([opened], None))
    return str(found)


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("/", "/", True),
        ("/", "/a", False),
        ("/", "/?q=1", True),  # any query
        ("/v1/*", "/v1/", True),
        ("/v1/*", "/v1/a/b", True),  # `*` is any text
        ("/v1/*", "/v1", False),
        ("/v1/*", "/v1?/v1/", False),  # the path, not the query
        ("/v1/*", "/x/v1/", False),
        ("/*/end", "/a/end", True),
        ("/*/end", "/a?b/end", False),
        ("/*/end", "/a/end/more", False),
        ("/*/end", "/a/end?q", True),
        ("/*.json", "/a/b.json", True),
        ("/*.json", "/a;.json", False),  # `/a` to a host with path parameters
        ("/*/end", "/a;b/end", False),
        ("/*/x*", "/a/x;b", True),
        ("/a.b", "/a.b", True),
        ("/a.b", "/axb", False),
        ("/(c)+$", "/(c)+$", True),
        ("/(c)+$", "/c", False),
        ("/a+", "/aa", False),
        ("/A", "/a", False),  # its case matters
        ("/**", "/a", True),
        ("/~!$&'()*+,=:@", "/~!$&'()...+,=:@", True),
    ],
)
def test_a_path_is_matched_whole(glob: str, path: str, matches: bool) -> None:  # noqa: FBT001
    assert request(f"GET api.example.com{glob}").path == glob
    assert bool(re.search(pattern(glob), path)) is matches


def test_what_a_pattern_could_mean_is_written_out() -> None:
    assert pattern("/.$()+^|{}[]\\?*") == r"^/\.\$\(\)\+\^\|\{\}\[\]\\?[^?]*(\?|$)"
    assert pattern("/*.x/*") == r"^/[^?;]*\.x/[^?]*(\?|$)"


# The address at which an instance is probed.
HEALTH: dict[Tell, str] = {tell_spliced: "127.77.128.1:3128", tell_intercepted: "127.77.192.1:3128"}


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ([], set()),
        ([GIT], {"127.77.0.1:3128"}),
        ([GIT, TIME], {"127.77.0.1:3128", "127.77.0.2:3128"}),
    ],
)
@BOTH
def test_where_an_instance_listens_is_read_from_its_text(
    tell: Tell, listeners: list[SquidListener], expected: set[str]
) -> None:
    assert squid_conf.ports(tell(listeners, PARENT)) == expected | {HEALTH[tell]}
    assert squid_conf.ports("") == frozenset()


PATHS = {
    "/": True,
    "/v1/a.b;c=d/~x": True,
    "/v1/x?%c0%ae/../%": True,  # the query is not judged
    "/a%20b/%40scope/%7eme/%3a": True,
    "/caf%C3%A9": True,
    "/%c2%80/%df%bf/%e0%a0%80/%ed%9f%bf/%ee%80%80/%f0%90%80%80/%f4%8f%bf%bf": True,
    "/a%2fb": False,
    "/a%2Fb?x": False,
    "/a%3fb": False,  # `?` once decoded
    "/a%23b": False,
    "/a%5cb": False,
    "/%252e": False,
    "/%25%32%65": False,
    "/%%32e": False,
    "/a%00": False,
    "/a%0d%0ab": False,
    "/a%7f": False,
    "/%": False,
    "/%2": False,
    "/%zz": False,
    "/%u002e": False,
    "/%c0%ae": False,  # overlong
    "/%c1%bf": False,
    "/%e0%80%ae": False,
    "/%e0%9f%bf": False,
    "/%f0%80%80%ae": False,
    "/%f0%8f%bf%bf": False,
    "/%ed%a0%80": False,  # a surrogate
    "/%f4%90%80%80": False,  # past U+10FFFF
    "/%ff": False,
    "/%80": False,
    "/%c3": False,
    "/%c3/%a9": False,
    "*": False,
    "a/b": False,
}


def test_a_path_as_it_was_sent_is_read_one_way_or_refused() -> None:
    asked = "".join(f"{number} https://x.test{path} {path}\n" for number, path in enumerate(PATHS))
    sed = ["/usr/bin/sed", "-u", "-E", "-f", str(SQUID / "path.sed")]
    done = subprocess.run(sed, input=asked, capture_output=True, text=True, check=True, env={})
    told = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert [number for number, _ in told] == [str(number) for number in range(len(PATHS))]
    assert dict(zip(PATHS, (word for _, word in told), strict=True)) == {
        path: "OK path_=sound" if is_sound else "ERR" for path, is_sound in PATHS.items()
    }
    assert f"{' '.join(sed[:4])} /usr/lib/mcpwrap/squid/path.sed\n" in (
        SQUID / "intercept.conf"
    ).read_text(encoding="utf-8")

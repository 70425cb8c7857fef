"""Check of other programs' packet rules: which trials are made, and what each result means."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.doctor import Check
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.linux import accounts
from mcpwrap.machine import nft_table, observer
from mcpwrap.machine.doctor import foreign_rules, live_probes
from mcpwrap.machine.doctor.live_probes import TrialResult, TrialStatus
from mcpwrap.plan.registry import Allocation, Registry

PORT = 45001
CONFIG = """
[mcp_servers.one]
command = "/bin/true"
[mcp_servers.one.mcpwrap]
"""
EGRESS = 'egress = ["a.test"]\n'
PACKET = f'packet: oif "eth0" ip saddr 192.0.2.2 tcp sport {PORT} tcp dport 443 '
TIMED_OUT = TrialResult(TrialStatus.OTHERWISE, "timed out")
LAST = f'rule tcp sport {PORT} oifname != "lo" drop # handle 9 (verdict drop)'


def trace(place: str, what: str) -> str:
    """Return a trace of two lines."""
    return f"trace id 1a {place} {PACKET}\ntrace id 1a {place} {what}\n"


def a_chain(place: str, hook: str) -> str:
    """Return an entry of `nft -j list chains`."""
    family, table, name = place.split()
    where = {"hook": hook} if hook else {}
    return json.dumps({"chain": {"family": family, "table": table, "name": name, **where}})


CORP = a_chain("inet corp o", "output")
NOT_IN_THE_WAY = ", ".join(
    [
        a_chain("inet mcpwrap output", "output"),
        a_chain("ip filter FORWARD", "forward"),
        a_chain("ip filter DOCKER", ""),
        '{"metainfo": {}}',
    ]
)
PASSED = trace("inet mcpwrap-doctor last", LAST)


def checks(
    monkeypatch: pytest.MonkeyPatch,
    settings: str = EGRESS,
    *,
    text: str = PASSED,
    tried: TrialResult = TIMED_OUT,
    chains: str = CORP,
) -> tuple[list[Check], list[str]]:
    """Return the checks, and the trials that were made for them."""
    made: list[str] = []

    @contextmanager
    def packet_tracer() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(port=PORT, text=lambda: text)

    def try_as(account: str, *what: str) -> TrialResult:
        made.append(" ".join([account, *what]))
        return tried

    allocation = Allocation(uid=20005, squid="proxy-1" if settings else "")
    monkeypatch.setattr(observer, "registry", lambda: Registry(by_name={"one": allocation}))
    monkeypatch.setattr(observer, "listeners", list)
    monkeypatch.setattr(nft_table, "elements", lambda: {("ports", "443"), ("ports", "8443")})
    monkeypatch.setattr(foreign_rules, "_resolvers", lambda: ("198.51.100.53",))
    monkeypatch.setattr(foreign_rules, "run", lambda *_: f'{{"nftables": [{chains}]}}')
    monkeypatch.setattr(foreign_rules, "packet_tracer", packet_tracer)
    monkeypatch.setattr(foreign_rules, "_LEGACY", ())
    monkeypatch.setattr(live_probes, "try_as", try_as)
    config = parse([SourceFile("c", (CONFIG + settings).encode())])
    return list(foreign_rules.checks(config)), made


def test_each_way_is_tried_under_the_account_that_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, made = checks(monkeypatch)
    assert [(each.state, each.found) for each in found] == [
        ("good", "none drops what is needed: inet corp")
    ]
    assert made == [
        f"mcpw-one send tcp 127.77.0.5 {PORT} 127.77.0.5 3128",
        f"mcpwrap-proxy send udp 0.0.0.0 {PORT} 198.51.100.53 53",
        f"mcpwrap-proxy send tcp 0.0.0.0 {PORT} 192.0.2.1 443",
        f"mcpwrap-front send tcp 127.77.0.5 {PORT} 127.77.0.5 3128",
    ]


@pytest.mark.parametrize(
    ("settings", "chains", "found"),
    [
        ("", "", []),  # no server leaves the machine
        (EGRESS, "", ["no other table judges packets of this machine"]),
        # A chain of mcpwrap's, one that judges what is forwarded, and one that no hook calls.
        (
            EGRESS,
            NOT_IN_THE_WAY,
            ["no other table judges packets of this machine"],
        ),
    ],
)
def test_where_no_other_rules_are_in_the_way_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch, settings: str, chains: str, found: list[str]
) -> None:
    shown, made = checks(monkeypatch, settings, chains=chains)
    assert ([each.found for each in shown], made) == (found, [])


@pytest.mark.parametrize(
    ("text", "ended", "state", "part"),
    [
        (trace("inet corp o", "policy drop "), TrialStatus.OTHERWISE, "failed", "inet corp o, by"),
        (trace("inet mcpwrap refuse", LAST), TrialStatus.REFUSED, "unknown", "own rules refuse it"),
        (PASSED, TrialStatus.UNKNOWN, "unknown", "said"),
        ("", TrialStatus.REFUSED, "failed", "lost, and by no rule"),
        ("", TrialStatus.NO_ROUTE, "good", "none drops"),
        (PASSED, TrialStatus.OTHERWISE, "good", "none drops"),
    ],
)
def test_what_a_trace_means(
    monkeypatch: pytest.MonkeyPatch, text: str, ended: TrialStatus, state: str, part: str
) -> None:
    found, _ = checks(monkeypatch, text=text, tried=TrialResult(ended, "said"))
    assert {each.state for each in found} == {state}
    assert all(part in each.found for each in found)


def test_an_address_without_a_route_is_not_the_last_one_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, made = checks(monkeypatch, tried=TrialResult(TrialStatus.NO_ROUTE, "no route"))
    assert f"mcpwrap-proxy send tcp :: {PORT} 2001:db8::1 443" in made


def test_with_a_parent_its_address_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = checks(monkeypatch, f'{EGRESS}[egress]\nparent = "10.0.0.9:3128"\n')
    assert f"mcpwrap-proxy send tcp 0.0.0.0 {PORT} 10.0.0.9 3128" in made
    assert not [line for line in made if "192.0.2.1" in line]


def test_one_agent_tries_its_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(server="one", uid=1000, address="127.78.0.1", is_remote=False)
    monkeypatch.setattr(accounts, "name_of", lambda _: "alice")
    checks(monkeypatch)
    monkeypatch.setattr(observer, "listeners", lambda: [listener])
    made: list[str] = []

    def try_as(account: str, *what: str) -> TrialResult:
        made.append(" ".join([account, *what]))
        return TrialResult(TrialStatus.WORKED, "worked")

    monkeypatch.setattr(live_probes, "try_as", try_as)
    list(foreign_rules.checks(parse([SourceFile("c", (CONFIG + EGRESS).encode())])))
    assert made[-1] == f"alice send tcp 0.0.0.0 {PORT} 127.78.0.1 52100"

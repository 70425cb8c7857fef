"""Elements of the packet rules for each server, and the file that loads them."""

import pytest

from mcpwrap.plan.egress import nft_elements
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import PYTHON, URL
from tests.unit.plan.machine import wanted

HEAD = "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"
FLUSH = """\
flush set inet mcpwrap wrapped
flush set inet mcpwrap egress_addr
flush set inet mcpwrap fronted
flush set inet mcpwrap listener_clients
flush set inet mcpwrap direct4
flush set inet mcpwrap direct6
flush set inet mcpwrap ports
flush set inet mcpwrap parents4
flush set inet mcpwrap parents6
flush set inet mcpwrap worker_clients
"""
THREE_SETS = """\
add element inet mcpwrap egress_addr { 21770 . 127.77.6.234 }
add element inet mcpwrap ports { 443 }
add element inet mcpwrap wrapped { 20001, 20003, 21770 }
"""
GIT = "[mcp_servers.git]\ncommand = '/x'\n[mcp_servers.git.mcpwrap]\n"
WRAPPED = ("wrapped", "21770")
OWN = ("egress_addr", "21770 . 127.77.6.234")
FRONTED = ("fronted", "21770 . 127.77.6.234")


def client(uid: int, address: str) -> tuple[str, str]:
    return ("listener_clients", f"{uid} . {address}")


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("", set()),
        (GIT, {WRAPPED}),  # all packets refused
        (f"{GIT}egress = ['a.example']", {WRAPPED, OWN, FRONTED, ("ports", "443")}),
        (f"{GIT}egress = ['a.example']\ntransparent = false", {WRAPPED, OWN, ("ports", "443")}),
        (
            f"{GIT}egress = ['a.example', '*.b.example:8443', '*.c.example:443']",
            {WRAPPED, OWN, FRONTED, ("ports", "443"), ("ports", "8443")},
        ),
        (
            f"{GIT}egress = ['@pypi']",
            {WRAPPED, OWN, FRONTED, ("ports", "8443")},
        ),  # as this machine's configuration has it
        (
            f"{GIT}egress = ['a.example']\nintercept = true",
            {WRAPPED, OWN, FRONTED, ("ports", "443")},
        ),
        (
            f"{GIT}direct = ['10.0.0.5:5432', '[fd00::5]:1']",
            {WRAPPED, ("direct4", "21770 . 10.0.0.5 . 5432"), ("direct6", "21770 . fd00::5 . 1")},
        ),
        (
            f"{GIT}expose = 'http'\nagents = ['alice']",
            {WRAPPED, ("listener_clients", "1000 . 127.78.0.1")},
        ),
        (
            f"{GIT}expose = 'http'",  # each member its own, and root none
            {
                WRAPPED,
                ("listener_clients", "1000 . 127.78.0.1"),
                ("listener_clients", "1002 . 127.78.0.2"),
            },
        ),
        (
            URL.replace("alice", "bob"),
            {WRAPPED, OWN, ("ports", "443"), client(1001, "127.78.0.1")},
        ),
        (  # the server reaches the worker; its runs reach nothing
            PYTHON,
            {
                ("wrapped", "28845"),
                ("worker_clients", "28845"),
                ("wrapped", "27393"),
                ("wrapped", "36599"),
            },
        ),
        ("[egress]\nparent = '10.0.0.1:3128'", {("parents4", "10.0.0.1 . 3128")}),
        ("[egress]\nparent = '[fd00::1]:80'", {("parents6", "fd00::1 . 80")}),
        (  # each its own
            f"{GIT}egress = ['a.example']\n{GIT.replace('git', 'time')}egress = ['b.example']",
            {
                WRAPPED,
                OWN,
                FRONTED,
                ("ports", "443"),
                ("wrapped", "34142"),
                ("egress_addr", "34142 . 127.77.55.62"),
                ("fronted", "34142 . 127.77.55.62"),
            },
        ),
    ],
)
def test_who_may_go_where(text: str, elements: set[tuple[str, str]]) -> None:
    assert wanted(text, Observed()).elements == elements
    assert {name for name, _ in elements} <= {*nft_elements.SETS}


def test_who_is_refused_is_wrapped_and_no_more() -> None:
    assert nft_elements.refused([20_001, 20_003]) == {("wrapped", "20001"), ("wrapped", "20003")}
    assert nft_elements.refused([]) == frozenset()


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ((), ""),  # nft accepts no empty braces; the old elements are removed nevertheless
        ((WRAPPED,), "add element inet mcpwrap wrapped { 21770 }\n"),
        (
            (("wrapped", "20003"), OWN, ("wrapped", "20001"), ("ports", "443"), WRAPPED),
            THREE_SETS,
        ),
    ],
)
def test_the_sets_become_what_is_wanted_and_nothing_else(
    elements: tuple[tuple[str, str], ...], text: str
) -> None:
    assert nft_elements.text(frozenset(elements)) == HEAD + FLUSH + text

"""Descriptions of steps: the plan prints each before root carries it out."""

from typing import get_args

import pytest

from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.plan import steps
from mcpwrap.plan.paths import SPLICE_CA

RULES = frozenset(
    {
        ("wrapped", "1"),
        ("wrapped", "2"),
        ("egress_addr", "1 . 127.77.0.1"),
        ("direct6", "2 . fd00::5 . 2"),
        ("direct4", "2 . 10.0.0.5 . 1"),
        ("ports", "443"),
        ("parents4", "10.0.0.1 . 3128"),
    }
)
HEARD = Listener(server="a", uid=1000, address="127.78.0.1", is_remote=False)
ONE_LOADED = "load the packet rules: 1 servers, 0 of them with an allowlist"
LOADED = "load the packet rules: 2 servers, 1 of them with an allowlist"
DESCRIBED: list[tuple[steps.Step, str]] = [
    (steps.WriteFile("/a", "text"), "write /a"),  # not what is in it
    (steps.RemoveFile("/a"), "remove /a"),
    (steps.RemoveTree("/a"), "remove /a and its content"),
    (steps.ShutTree("/a"), "give /a to root alone"),
    (steps.ForgetSecrets("git"), "forget the secrets of git"),
    (steps.MakeLink("/a", "/b"), "link /a to /b"),
    (steps.MakeAccounts((("mcpw-a", 20_001),)), "make the account mcpw-a with UID 20001"),
    (
        steps.MakeAccounts((("mcpw-a", 20_001), ("mcpw-b", 20_002))),
        "make 2 accounts: mcpw-a with UID 20001, mcpw-b with UID 20002",
    ),
    (steps.RemoveAccount("mcpw-a"), "remove the account mcpw-a"),
    (
        steps.LoadRules(frozenset()),
        "load the packet rules: 0 servers, 0 of them with an allowlist",
    ),
    (
        steps.LoadRules(RULES),
        f"{LOADED}; DIRECT, not through Squid: 2 . 10.0.0.5 . 1, 2 . fd00::5 . 2",
    ),
    (steps.MakeAuthority("a"), "make a certificate authority that a alone trusts"),
    (
        steps.MakeAuthority(SPLICE_CA),
        "make a certificate for Squid's ports, which no client is shown",
    ),
    (
        steps.LoadProxy("proxy-1", "text"),
        "load /var/lib/mcpwrap/squid/proxy-1.conf into Squid; connections stay",
    ),
    (
        steps.LoadFront(),
        "make the front serve the servers without proxy support; connections stay",
    ),
    (
        steps.LoadWebhook(),
        "make the webhook post pending approvals, signed with /etc/mcpwrap/webhook.key",
    ),
    (steps.StopUnit("a.service"), "stop a.service; its connections end"),
    (steps.ReloadUnits(), "make systemd read the unit files again"),
    (steps.RemoveLeftover("/a/.b.new"), "remove /a/.b.new, which was not completed"),
    (steps.StopServers(("a",)), "stop a; its sessions end"),
    (steps.StopServers(("a", "b")), "stop a, b; their sessions end"),
    (steps.RestartServers(("a",)), "restart a if it runs; its sessions end"),
    (steps.RestartServers(("a", "b")), "restart a, b if they run; their sessions end"),
    (steps.EnableSockets(("a",)), "listen after a reboot for sessions of a"),
    (steps.StartSockets(("a",)), "listen for sessions of a"),
    (steps.StartSockets(tuple("abcdefgh")), "listen for sessions of a, b, c, d, e, f, g, h"),
    (steps.StartSockets(tuple("abcdefghi")), "listen for sessions of a, b, c and 6 more"),
    (steps.StopListeners(("a.1000",)), "close the listener a.1000; its sessions end"),
    (steps.StopListeners(("a.1", "b.1")), "close the listeners a.1, b.1; their sessions end"),
    (
        steps.StartListeners((("a.1000", HEARD),)),
        "listen at http://127.78.0.1:52100/ for a, UID 1000 alone",
    ),
    (
        steps.LoadRules(frozenset({("wrapped", "1"), ("wrapped", "2"), ("wrapped", "3")}), 2),
        f"{ONE_LOADED}; 2 run slots without a network",
    ),
    (steps.StopJobs(("a-0",)), "stop the run slot a-0; its runs end"),
    (steps.StopJobs(("a-0", "a-1")), "stop the run slots a-0, a-1; their runs end"),
    (steps.StartJobs(("a-0",)), "open the run slot a-0"),
    (steps.StartJobs(("a-0", "a-1")), "open the run slots a-0, a-1"),
    (steps.LoadWorker(), "make the worker listen for code to execute"),
    (
        steps.LoadRules(frozenset({("wrapped", "1"), ("listener_clients", "1000 . 127.78.0.1")})),
        "load the packet rules: 1 servers, 0 of them with an allowlist; 1 agents by HTTP",
    ),
]


@pytest.mark.parametrize(("step", "text"), DESCRIBED)
def test_a_step_says_what_it_does(step: steps.Step, text: str) -> None:
    assert step.describe() == text


def test_the_table_has_every_step() -> None:
    assert {type(step) for step, _ in DESCRIBED} == set(get_args(steps.Step))

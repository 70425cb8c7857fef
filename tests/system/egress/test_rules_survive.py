"""Loss of the packet rules: nothing opens; the rules are restored, or everything stops.

On machines where IPAddressDeny= acts beside them.
"""

import pytest

from tests.shared import pace
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.support.egress_recovery import (
    EVERYWHERE,
    LIST_RULES,
    LISTEN,
    PUT_BACK,
    RULES,
    Journal,
    await_that,
    booted,
    changed,
    lives_for,
    outside,
    own_address,
    rules,
)
from tests.system.support.egress_sessions import finished, play
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = booted
STREAMED = 40
NO_ANSWER_S = 0.7 * pace.PACE  # for addresses that answer at once, or never


@on_each_release("systemd's IPAddressDeny= is all that is left")
def test_without_packet_rules_a_wrapper_reaches_its_own_address_alone(
    machine: Machine, internet: Internet
) -> None:
    """By IPAddressDeny= alone: nothing else is left, and the rules are not restored."""
    neighbour = own_address(machine, "neighbour")
    targets = [
        [neighbour, 3128], [neighbour, 443], ["203.0.113.20", 443], ["198.51.100.10", 80],
        ["10.0.0.5", 443], ["169.254.169.254", 80], ["198.51.100.53", 53], ["127.0.0.1", 4000],
        ["192.0.2.2", 4000], ["::1", 4000], ["2001:db8:2::10", 443],
    ]  # fmt: skip
    serve = LISTEN.format(where=EVERYWHERE)
    with (
        machine.session("", user="root", command=f'exec python3 -c "{serve}"') as listener,
        machine.session("probe") as session,
    ):
        assert listener.read_line() == "up"
        assert play(session, "status()") == 200
        machine.as_root("systemctl stop mcpwrap-watch; nft flush ruleset")
        assert machine.look("nft list ruleset") == ""
        internet.forget()
        assert play(session, f"reached({targets}, {NO_ANSWER_S})") == []
        assert internet.packets() == []
        assert play(session, "status()") == 200  # the twin: its own address, and Squid behind it
        assert play(session, "status(host='other.test')") == "CONNECT 403"
        # The twin: they do answer, to this account too, where only the rules would bind it. The
        # front answers only callers at a server's address.
        machine.as_root(f"systemctl start mcpwrap-address@{neighbour}")
        assert outside(machine, "mcpw-probe", "reached", targets, pace.WAIT_S) == targets
        listener.send({})
        machine.as_root("systemctl start mcpwrap-watch")
        assert "@wrapped" in rules(machine)
        assert outside(machine, "mcpw-probe", "reached", targets, NO_ANSWER_S) == []
        assert play(session, "status()") == 200


TAMPERING = {
    "Debian's own firewall comes up": "systemctl enable --now nftables",
    "Debian's own firewall is restarted": "systemctl restart nftables",
    "everything is flushed": "nft flush ruleset",
    "our table is deleted": "nft delete table inet mcpwrap",
    "a chain is emptied": "nft flush chain inet mcpwrap refuse",
    "the rule for wrappers is deleted": "nft delete rule inet mcpwrap output handle "
    "$(nft -a list chain inet mcpwrap output | sed -n 's/.*@wrapped.* # handle //p')",
    "a rule comes before ours": "nft insert rule inet mcpwrap wrapper accept",
    "an account is no longer wrapped": "nft delete element inet mcpwrap wrapped '{{ {uid} }}'",
    "a server has lost its address": (
        "nft delete element inet mcpwrap egress_addr '{{ {uid} . {own} }}'"
    ),
    "a server has its neighbour's": (
        "nft add element inet mcpwrap egress_addr '{{ {uid} . {other} }}'"
    ),
    "Squid may go to another port": "nft add element inet mcpwrap ports '{{ 25 }}'",
    "a range is no longer private": "nft delete element inet mcpwrap private4 '{{ 10.0.0.0/8 }}'",
    "Squid may ask nobody": "nft flush set inet mcpwrap resolvers4",
    "Squid may ask somebody else": "nft add element inet mcpwrap resolvers4 '{{ 203.0.113.66 }}'",
}


# One of each kind: all of it, a chain, a rule, and an element more or less.
ONE_OF_A_KIND = (
    "Debian's own firewall comes up",
    "our table is deleted",
    "a rule comes before ours",
    "an account is no longer wrapped",
    "Squid may ask somebody else",
)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            id=name,
            marks=[] if name in ONE_OF_A_KIND else only_in_test_all("another of the same kind"),
        )
        for name, command in TAMPERING.items()
    ],
)
@on_each_release("nft and the kernel decide what the rules are, and who is told of a change")
def test_what_somebody_changed_is_back_within_a_second(machine: Machine, command: str) -> None:
    values = {
        "uid": machine.uid_of("mcpw-probe"),
        "own": own_address(machine, "probe"),
        "other": own_address(machine, "neighbour"),
    }
    before = rules(machine)
    assert "@wrapped" in before
    command = command.format(**values) if "{{" in command else command

    def time_until_back() -> float:
        tamper = ("time_until_back", command, LIST_RULES, before, pace.WAIT_S / 2)
        took_s = machine.call("tampering", *tamper)
        print(f"{command}: back after {took_s} s")
        assert took_s is not None
        return float(took_s)

    bound_s = pace.promised(1.0)
    assert pace.best(time_until_back, bound_s) < bound_s
    if "nftables" in command:  # the twin: Debian's own table is there, too
        assert "table inet filter" in machine.look("nft list tables")


# Sets that refused packets fill, by how many elements each takes.
FULL = {
    "recently_refused4": ("{uid} . 443 . 192.0.2.1 . {n}", 65_000),
    "recently_refused6": ("{uid} . 443 . 2001:db8::1 . {n}", 65_000),
    "refused4": ("{uid} . 192.0.2.1 . tcp . {n}", 8_000),
    "refused6": ("{uid} . 2001:db8::1 . tcp . {n}", 8_000),
}


@on_each_release("each nft has its own way of reading a table of which it prints a part")
def test_refusals_that_a_server_has_piled_up_hold_up_nobody(machine: Machine) -> None:
    """A server fills these sets by refused packets; the watchdog checks as soon as before."""
    uid = machine.uid_of("mcpw-probe")
    for name, (element, count) in FULL.items():
        rows = ", ".join(element.format(uid=uid, n=n) for n in range(1, count))
        machine.write(f"/run/{name}", f"add element inet mcpwrap {name} {{ {rows} }}\n")
    fill = "set -e;" + "".join(f"nft -f /run/{name};" for name in FULL)
    listed = "nft -n list set inet mcpwrap wrapped"
    tamper = f"nft delete element inet mcpwrap wrapped '{{ {uid} }}'"
    before = machine.look(listed)

    def time_until_back() -> float:
        machine.as_root(fill)
        took_s = machine.call("tampering", "time_until_back", tamper, listed, before, pace.WAIT_S)
        print(f"back after {took_s} s")
        assert took_s is not None
        return float(took_s)

    # Twice the time of an element where these sets are empty: restoring all takes longer.
    bound_s = pace.promised(2.0)
    assert pace.best(time_until_back, bound_s) < bound_s
    machine.as_root(f"rm {' '.join(f'/run/{name}' for name in FULL)}")  # their elements are gone


@pytest.mark.parametrize(
    "whom",
    ["all", pytest.param("main", marks=only_in_test_all("what else it has started lives on"))],
)
def test_rules_that_are_flushed_while_the_watch_hangs_are_back_within_5_seconds(
    machine: Machine, whom: str
) -> None:
    machine.announce("mcpwrap-watch")
    # The twin: a healthy one lives for longer than one that hangs.
    await_that(machine, lives_for("mcpwrap-watch", 6))
    before = rules(machine)
    hang = f"systemctl kill --signal=STOP --kill-who={whom} mcpwrap-watch"

    def time_until_back() -> float:
        tamper = ("time_until_back", f"{hang} && nft flush ruleset", LIST_RULES, before)
        took_s = machine.call("tampering", *tamper, pace.WAIT_S / 2)
        print(f"back after {took_s} s")
        assert took_s is not None
        return float(took_s)

    bound_s = pace.promised(5.0)
    assert pace.best(time_until_back, bound_s) < bound_s
    journal = Journal(machine)
    machine.as_root("nft flush ruleset")
    journal.await_line(PUT_BACK)


def test_a_stream_goes_on_while_the_rules_are_flushed(machine: Machine) -> None:
    with machine.session("probe") as session, machine.session("look") as looking:
        for one in (session, looking):
            play(one, f"started.update(stream=Events({STREAMED}, 0.05))")
        for _ in range(3):
            journal = Journal(machine)
            machine.as_root("nft flush ruleset")
            journal.await_line(PUT_BACK)
        for one in (session, looking):
            said = finished(one, "stream")
            assert (said["came"], said["in order"], said["error"]) == (STREAMED, True, "")


def test_rules_that_cannot_be_put_back_stop_everybody(machine: Machine) -> None:
    machine.announce("mcpwrap-(watch|check@|nft|squid-|front)|mcpwrap@|Dependency failed")
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        with changed(machine, RULES, "no such word\n"):
            journal = Journal(machine)
            machine.as_root("nft flush ruleset")
            journal.await_line("mcpwrap-watch.service: .*gone and cannot be loaded")
            for session_that_ends in (session, looking):
                assert session_that_ends.process.wait(pace.WAIT_S) != 0  # no side closed it
                session_that_ends.close()
            journal.await_line("mcpwrap-nft.service: Stopped")  # the last: the others require it
            refused = machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70)
            assert "does not start" in refused.err
            ours = "'mcpwrap@*.service' 'mcpwrap-squid-*' mcpwrap-front.service"
            list_units = "systemctl list-units --plain --no-legend --state=active"
            assert machine.look(f"{list_units} {ours}") == ""
        # The watchdog checks again by itself; no other process does anything.
        machine.await_admission("probe")
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        assert play(session, "ask_directly()") == 200
    assert "nothing to do" in machine.apply()


def test_everything_is_there_again_after_a_reboot(machine: Machine, internet: Internet) -> None:
    before = rules(machine)
    machine.reboot()
    internet.plug()
    assert rules(machine) == before
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        assert play(session, "status(host='other.test')") == "CONNECT 403"
        assert play(session, "ask_directly()") == 200
        journal = Journal(machine)
        machine.as_root("nft flush ruleset")
        journal.await_line(PUT_BACK)
    assert "nothing to do" in machine.apply()

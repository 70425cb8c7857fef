"""Refusals: immediate, in one line, with a documented exit status."""

import json

import pytest

from tests.shared import pace
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.session import machines
from tests.system.support import servers
from tests.system.support.tiers import only_in_test_all

STAGE = servers.wrapped

SAME = only_in_test_all("the same rule refuses it")
AT_ONCE_S = 4.0
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}) + "\n"

BROKEN_SERVERS = """
[mcp_servers.gone]
command = "/usr/bin/no-such-program"

[mcp_servers.nowhere]
command = "/usr/bin/true"
cwd = "/no/such/folder"
""" + servers.a_server("alone", "limits = { sessions = 1 }")


@pytest.mark.parametrize(
    ("user", "name", "status", "why"),
    [
        ("alice", "No-Such", 64, "no server can have that name"),
        pytest.param("alice", "../probe", 64, "no server can have that name", marks=SAME),
        ("alice", "nosuch", 78, "there is no server 'nosuch'"),
        ("mallory", "probe", 77, "this account may not use 'probe'"),  # not in @mcpwrap
        ("mallory", "memory", 77, "this account may not use 'memory'"),  # agents = ["alice"]
    ],
)
def test_the_gate_says_why_not(
    machine: Machine, user: str, name: str, status: int, why: str
) -> None:
    err = machine.as_user(user, f"mcpwrap-connect {name}", status=status).err
    assert err.startswith(f"mcpwrap-connect: {why}")
    assert err.count("\n") == 1


def test_a_login_older_than_the_group_is_told_to_log_in_again(machine: Machine) -> None:
    as_before = "setpriv --reuid=mallory --regid=mallory --clear-groups"
    machine.as_root("gpasswd -a mallory mcpwrap; gpasswd -a mallory mcpwrap-approvers")
    err = machine.as_root(f"{as_before} mcpwrap-connect probe", status=77).err
    assert "log in again [E-SESSION-OLD-LOGIN]" in err
    err = machine.as_root(f"{as_before} mcpwrap approvals list").err
    assert "before you were added to mcpwrap-approvers: log in again" in err
    machine.as_user("mallory", "mcpwrap-connect probe </dev/null")  # the twin: a new login
    assert machine.as_user("mallory", "mcpwrap approvals list").err == ""
    machine.as_root("gpasswd -d mallory mcpwrap; gpasswd -d mallory mcpwrap-approvers")


def told(machine: Machine, user: str, name: str, status: int) -> str:
    """Return the reason that a refused agent gets as an error; it is on stderr too."""
    done = machine.as_user(user, f"mcpwrap-connect {name}", stdin=INITIALIZE, status=status)
    answer = json.loads(done.out)
    error = answer["error"]
    assert (answer["id"], error["code"], error["data"]) == (7, -32603, {"status": status})
    why = str(error["message"]).removeprefix("mcpwrap: ")
    assert done.err == f"mcpwrap-connect: {why}\n"
    return why


def test_the_agent_is_told_why_not(machine: Machine) -> None:
    """Agents hide standard error, so the answer to their first request has the reason."""
    assert told(machine, "mallory", "probe", 77).startswith("this account may not use 'probe'")
    assert told(machine, "alice", "nosuch", 78).startswith("there is no server 'nosuch'")
    machine.as_root("mcpwrap panic probe")
    assert told(machine, "alice", "probe", 69).startswith("stopped in an emergency")
    machine.as_root("mcpwrap resume probe")
    machine.as_root("systemctl stop mcpwrap-gate.socket mcpwrap-gate.service")
    assert told(machine, "alice", "probe", 69).startswith("the gate does not answer")
    machine.as_root("systemctl start mcpwrap-gate.socket")
    with machine.session("everything") as session:  # the twin: the server's own answer
        session.initialize()


@pytest.mark.parametrize(
    "mode",
    ["auto", pytest.param("legacy", marks=only_in_test_all("the first half of it is auto's too"))],
)
def test_the_official_client_shows_the_reason(machine: Machine, mode: str) -> None:
    shown = machine.agent("refused_tour", user="mallory", server="everything", mode=mode)
    assert "mcpwrap: this account may not use 'everything'" in shown
    shown = machine.agent("refused_tour", server="everything", mode=mode)
    assert shown == "it was let in"  # the twin


def test_a_refusal_reaches_a_file_and_waits_for_nobody_at_a_terminal(machine: Machine) -> None:
    machine.write("/home/alice/in.jsonl", INITIALIZE)
    machine.as_user("alice", "mcpwrap-connect nosuch < in.jsonl > out.jsonl", status=78)
    error = json.loads(machine.read("/home/alice/out.jsonl"))["error"]
    assert error["message"].startswith("mcpwrap: there is no server 'nosuch'")
    at_once = f"timeout --foreground {pace.promised(AT_ONCE_S)} mcpwrap-connect nosuch"
    status, shown = machine.typed(at_once, [])
    assert (status, shown.count("there is no server 'nosuch'")) == (78, 1)


HELLO = "/usr/lib/mcpwrap/mcpwrap/core/wire/session_socket.py"
RESTART_GATE = "systemctl restart mcpwrap-gate.service"
STOP_WRAPPER = "systemctl stop mcpwrap@probe.service"
START_WRAPPER = f"{STOP_WRAPPER}; systemctl start mcpwrap@probe.service"


@pytest.mark.parametrize(
    ("before", "after", "versions", "fix"),
    [
        ("true", STOP_WRAPPER, (3, 4), RESTART_GATE),
        (START_WRAPPER, RESTART_GATE, (4, 3), "systemctl restart 'mcpwrap@*.service'"),
    ],
)
def test_a_gate_and_a_wrapper_of_other_versions_say_what_to_restart(
    machine: Machine, before: str, after: str, versions: tuple[int, int], fix: str
) -> None:
    """As between the unpacking of a package and the end of its upgrade."""
    text = machine.read(HELLO)
    assert text.count("WRAPPER = 3") == 1
    machine.as_root(f"{GATE_IS_UP}; {before}")
    machine.replace(HELLO, text.replace("WRAPPER = 3", "WRAPPER = 4"))
    try:
        machine.as_root(after)
        why = "the gate has version {} of the protocol, the wrapper version {}".format(*versions)
        assert told(machine, "alice", "probe", 70) == f"{why}: `sudo {fix}` [E-SESSION-VERSION]"
        machine.as_root(fix)
        machine.as_user("alice", "mcpwrap-connect probe </dev/null")  # the twin: as instructed
    finally:
        machine.replace(HELLO, text)
        machine.as_root(f"{GATE_IS_UP}; {RESTART_GATE}; systemctl stop 'mcpwrap@*.service'")


def test_no_name_is_answered_with_the_usage(machine: Machine) -> None:
    assert (
        "usage: mcpwrap-connect NAME" in machine.as_user("alice", "mcpwrap-connect", status=64).err
    )


def test_a_gate_that_is_down_is_said_at_once(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap-gate.socket mcpwrap-gate.service")
    err = machine.as_user(
        "alice", f"timeout {pace.promised(AT_ONCE_S)} mcpwrap-connect probe", status=69
    ).err
    assert "the gate does not answer" in err
    machine.as_root("systemctl start mcpwrap-gate.socket")  # the service starts at the first use
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


def test_a_server_that_cannot_start_is_said(machine: Machine) -> None:
    before = machine.read("/etc/mcpwrap/config.toml")
    machine.configure(before + BROKEN_SERVERS)
    machine.apply()
    for name, why in (
        ("gone", "cannot start /usr/bin/no-such-program: No such file or directory"),
        ("nowhere", "cannot enter /no/such/folder: No such file or directory"),
    ):
        assert told(machine, "alice", name, 70) == f"{why} [E-SESSION-SERVER-START]"
    with machine.session("alone") as session:
        session.evaluate("result = 1")
        err = machine.as_user("alice", "mcpwrap-connect alone", status=75).err
        assert "alone: 1 of 1 sessions are in use" in err
    machine.await_end_of("alone")
    machine.as_user("alice", "mcpwrap-connect alone </dev/null")  # the twin: one at a time may
    machine.configure(before)
    machine.apply()


def test_a_wrapper_that_cannot_start_is_not_tried_for_ever(machine: Machine) -> None:
    """Agents in a row, until one is refused by the backoff; then the server is fixed, and works."""
    spec = "/var/lib/mcpwrap/servers/probe.json"
    machine.as_root(
        f"systemctl stop mcpwrap@probe.service; mv {spec} /tmp/spec; echo {{}} > {spec}"
    )
    machine.announce(r"mcpwrap@probe\.service|Traceback")
    before = machines.starts_of(machine, "probe")
    connect = f"timeout {pace.promised(5.0)} mcpwrap-connect probe"
    why = "`systemctl status mcpwrap@probe mcpwrap-check@probe` says why"
    machines.tried_until_held_back(machine, "probe", connect, why)
    assert machine.show("mcpwrap@probe.socket", "ActiveState")["ActiveState"] == "active"
    assert machines.starts_of(machine, "probe") > before  # it was tried at all
    machine.as_root(f"mv /tmp/spec {spec}")
    machine.await_admission("probe")


@pytest.fixture(scope="module")
def answers(stage: Machine) -> dict[str, str]:
    """Return the gate's response to each kind of descriptors and of hello, without the stub."""
    found: dict[str, str] = stage.call("gate_socket", "answers", pace.WAIT_S, user="alice")
    return found


@pytest.mark.usefixtures("machine")
def test_only_two_streams_and_an_honest_hello_are_taken(answers: dict[str, str]) -> None:
    admitted = {what for what, answer in answers.items() if answer.startswith(("S", "?"))}
    assert admitted == {"pipes", "unix stream"}  # the twins
    refused = {what: answer for what, answer in answers.items() if what not in admitted}
    assert {
        what for what, answer in refused.items() if not answer.startswith(("!76 ", "!64 "))
    } == set()
    assert answers["other protocol"] == (
        "!76 the program that connects has version 2 of the protocol, the gate version 1: "
        "`sudo systemctl restart mcpwrap-gate.service` [E-SESSION-VERSION]"
    )


def test_a_fifo_of_another_account_is_refused(machine: Machine) -> None:
    machine.as_root("mkdir -p -m 0755 /srv/fifos")
    answers = {}
    for owner in ("alice", "root", "mallory"):
        path = f"/srv/fifos/{owner}"
        machine.as_root(f"mkfifo -m 0666 {path} && chown {owner} {path}")
        args = ("gate_socket", "answer_to_fifo", pace.WAIT_S, path)
        answers[owner] = machine.call(*args, user="alice")
    assert answers["alice"].startswith(("S", "?"))  # the twins: her own, and root's
    assert answers["root"].startswith(("S", "?"))
    why = f"is a FIFO that belongs to uid {machine.uid_of('mallory')}"
    assert answers["mallory"].startswith("!76 ")
    assert why in answers["mallory"]
    machine.as_root("rm -r /srv/fifos")


def descriptors_of_the_gate(machine: Machine) -> str:
    machine.await_idle_gate()
    gate = machine.show("mcpwrap-gate", "MainPID")["MainPID"]
    return machine.look(f"ls /proc/{gate}/fd")


@only_in_test_all("the descriptors of the gate are counted in test_streams.py too")
def test_the_gate_keeps_no_descriptor_of_a_stranger(machine: Machine) -> None:
    before = descriptors_of_the_gate(machine)
    machine.call("gate_socket", "answers", pace.WAIT_S, user="alice")
    assert descriptors_of_the_gate(machine) == before


def test_streams_that_lead_nowhere_end_the_session(machine: Machine) -> None:
    machine.call("gate_socket", "offer_ends_that_lead_nowhere", pace.WAIT_S, user="alice")
    machine.await_end_of("everything")


def test_one_who_knocks_and_runs_shuts_nobody_out(machine: Machine) -> None:
    knock = f"exec {machine.guest_command('gate_socket', 'knock_and_run', pace.WAIT_S)}"
    with machine.session("", user="mallory", command=knock) as knocker:
        assert knocker.read_line() == "at it"
        for _ in range(3):
            machine.as_user("alice", "mcpwrap-connect probe </dev/null")
        knocker.send({})


def test_one_account_cannot_take_the_gate_from_the_others(machine: Machine) -> None:
    hold = f"exec {machine.guest_command('gate_socket', 'flood', pace.WAIT_S)}"
    with machine.session("", user="mallory", command=hold) as flood:
        assert flood.read_line() == "72"  # of 200; 128 are held, each one over is refused
        machine.as_user("alice", "mcpwrap-connect probe </dev/null")
        flood.send({})
    assert machine.show("mcpwrap-gate.socket", "ActiveState")["ActiveState"] == "active"
    machine.await_idle_gate()
    machine.as_user("mallory", "mcpwrap-connect probe", status=77)  # accepted again

"""Hub whose program was taken over: it acts for the agent of its own session, and reaches no more.

An attacker's code stands in the place of the installed program, with its account, its sandbox and
its descriptors, while another agent has a session of the same hub open.
"""

import errno
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.shared import pace
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.guest import search
from tests.system.hub import machines
from tests.system.hub.machines import HUB, SECRET, call, identity, opened
from tests.system.support import approvers, vault
from tests.system.support.approvers import decisions
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = machines.with_hub
pytestmark = ON_ONE_RELEASE

PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-hub"
ATTACKER = "#!/usr/bin/python3\nexec(open('/opt/probe.py').read())\n"
MUTATION = only_in_test_all("mutation twins: show that the probes notice what is missing")
IDENTITY = "as_gate/hubs/hub_identity"
Patch = tuple[str, str, str]
# The checks, by what they refuse. Each stands alone before an attack, or together with another.
ANY_MEMBER: Patch = (
    "as_wrapper/member_sessions",
    "        member = self._member_by_name.get(name)\n",
    "        member = HubMemberSpec(name=name, namespace=name, inherits=())\n",
)
NOT_LISTED: Patch = (
    IDENTITY,
    "    if found is None:\n",
    "    if found is None and rule is None:\n",
)
ANY_TRANSPORT: Patch = (
    IDENTITY,
    "    if (transport := _TRANSPORT[agent.door]) not in found.transports:\n",
    "    if (transport := _TRANSPORT[agent.door]) and False:\n",
)
ANY_CGROUP: Patch = (
    IDENTITY,
    "    if not is_account or peer_credentials.service_of(peer.pid) != (unit, _SUPERVISOR):\n",
    "    if not is_account:\n",
)
ANY_ACCOUNT: Patch = (
    IDENTITY,
    "    if not is_account or peer_credentials.service_of(peer.pid) != (unit, _SUPERVISOR):\n",
    "    if False and unit:\n",
)
# Asked four times: by the process of the session and by the monitor, for the hub and for itself.
ANY_AGENT: Patch = (
    "as_gate/agent_identity",
    "                return admission.admits(self.who.uid, self.who.gids)\n",
    "                return True\n",
)
ANY_SOCKET: Patch = (
    "session/launch/sandbox", "        wrapped_server.refuse_sockets()\n", "        pass\n"
)  # fmt: skip
STARTED = "S"
# The monitor does not tell a wrong process whether there is such a session.
WRONG_PEER = NOT_OPEN = "!76 the session of the hub is not open"
NOT_A_MEMBER, NOT_AGENT = "is not a member", "may not use"


@contextmanager
def patched(machine: Machine, *patches: Patch) -> Iterator[None]:
    """Replace pieces of the installed code, for the time of the block."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(machine.patched(*patch))
        yield


@contextmanager
def taken_over(machine: Machine, user: str = "alice") -> Iterator[Session]:
    """Open a session of the hub in which an attacker's code runs instead of its program."""
    program = machine.read(PROGRAM)
    machine.replace(PROGRAM, ATTACKER)
    try:
        session = machine.session(HUB, user=user)
        session.evaluate("result = 1")  # so it has started
    finally:
        machine.replace(PROGRAM, program)
    with session:
        yield session


@contextmanager
def honest(machine: Machine, user: str = "bob") -> Iterator[str]:
    """Hold a session of the hub open for another agent; its id in the audit is yielded."""
    with opened(machine, user=user) as session:
        identity(session, "alpha")
        uid = machine.uid_of(user)
        mine = [one for one in decisions(machine, "--server alpha") if one.get("uid") == uid]
        yield str(mine[-1]["via"])


def tried(session: Session, function: str, *arguments: object) -> object:
    """Run an attack in the place of the hub's program; return its outcome."""
    return session.call("hub.attacks", function, *arguments, pace.WAIT_S)


@pytest.fixture(scope="module", autouse=True)
def known(stage: Machine) -> None:
    """Have the gate know the members' definitions."""
    machines.learn(stage, "alice", "bob")


def test_it_acts_for_the_agent_of_its_session_alone(machine: Machine) -> None:
    """The audit of a member has the account for which the gate took the session."""
    alice = machine.uid_of("alice")
    with honest(machine) as via_of_bob, taken_over(machine) as session:
        assert tried(session, "calls_of", "alpha", "echo", [{"by": "the attacker"}]) == [
            'alpha: {"by": "the attacker"}'
        ]
        forged = f"mcpwrap 1\0alpha\0MCPWRAP_VIA={via_of_bob}"
        answers = tried(session, "second_hello", "alpha", forged)
        assert isinstance(answers, list)
        assert [answer for answer in answers[1:] if answer.startswith(STARTED)] == []
    machine.await_idle_gate()
    inner = [one for one in decisions(machine, "--server alpha --tool echo") if "via" in one]
    assert {one["uid"] for one in inner[-2:]} == {alice}
    assert via_of_bob not in {one["via"] for one in inner[-2:]}


# A name with more in it, the hub itself, and what a supervisor sends.
FORGED = ["Ooutside", "O", "O../alpha", "Otools", "Oalpha\0MCPWRAP_VIA=x", "O" + "a" * 3000]


def test_it_opens_no_session_but_of_a_member(machine: Machine) -> None:
    machine.announce("mcpwrap@tools")
    with taken_over(machine) as session:
        for packet in FORGED:
            answer = tried(session, "ask", packet)
            assert isinstance(answer, list)
            assert answer[0].startswith("!")
            assert "it is not a member of this hub" in answer[0]
            assert answer[1] == 0
        answer = tried(session, "ask", "Oalpha")
        assert answer == ["Falpha", 3]  # the twin
    with taken_over(machine) as session:
        assert tried(session, "ask", "Falpha") == ["", 0]  # which the installed program never sends
        assert tried(session, "ask", "Oalpha") == f"OSError {errno.EPIPE}"  # the channel is closed
    with opened(machine) as session:  # and the wrapper goes on
        identity(session, "alpha")


@pytest.mark.parametrize("user", ["bob"])
def test_it_gets_no_member_that_its_agent_may_not_use(machine: Machine, user: str) -> None:
    with taken_over(machine, user) as session:
        assert NOT_AGENT in str(tried(session, "gate_s_answer", "gamma"))
        assert str(tried(session, "gate_s_answer", "alpha")).startswith(STARTED)
    with taken_over(machine) as session:  # the twin: alice may
        assert str(tried(session, "gate_s_answer", "gamma")).startswith(STARTED)


FOLDERS = ["/run/mcpwrap", "/run/mcpwrap/door", "/var/lib/mcpwrap", "/run/credentials", "/home"]


def test_it_makes_no_socket_and_finds_no_file_of_others(machine: Machine) -> None:
    with honest(machine), taken_over(machine) as session:
        outcomes = tried(session, "sockets")
        assert isinstance(outcomes, dict)
        assert "done" not in outcomes.values(), outcomes
        assert outcomes["make one"] == "EAFNOSUPPORT"
        listed = session.call("hub.attacks", "paths", FOLDERS)
        assert isinstance(listed, dict)
        assert listed["/run/mcpwrap/door"] in (["gate.sock"], "EACCES")
        assert "sock" not in listed["/run/mcpwrap"]
        assert not [
            name for name in listed["/var/lib/mcpwrap"] if name in {"sealed", "definitions"}
        ]
        for way in session.call("hub.attacks", "others").values():
            assert "done" not in way.values(), way


def test_it_finds_no_secret_of_a_member(machine: Machine) -> None:
    with opened(machine) as other, taken_over(machine) as session:
        assert "[redacted TOKEN]" in str(call(other, "beta__environment"))  # so it is there now
        since, within_s, wanted = vault.question(machine, SECRET)
        assert session.call("search", "places", since, within_s, wanted) == [[]]
    assert search.holds(SECRET.encode(), SECRET)


ASKING = """
version: 1
approval: {wait: 5s, expires: 1h}
rules:
  - {name: both, server: [tools, alpha], tool: [alpha__echo, echo], action: allow_with_approval}
  - {name: rest, tool: "*", action: allow}
"""
# The approved call once more, and another one: the probe's own variable has the agent's call.
USES_IT = f"""
import sys
from tests.system.guest.hub.attacks import calls_of
given = sys._getframe(1).f_globals["call"]["params"]["arguments"]
result = calls_of("alpha", "echo", [given, given, {{"text": "another"}}], {pace.WAIT_S})
"""


@only_in_test_all("waits until the gate no longer holds the other calls")
def test_an_approval_is_for_one_call_with_these_arguments(machine: Machine) -> None:
    approvers.put(machine, ASKING)
    try:
        with taken_over(machine) as session:
            arguments = {"name": "alpha__echo", "arguments": {"code": USES_IT}}
            approve = ("answer_next", {"verdict": "approve"})
            with approvers.meanwhile(machine, approve, user="carol") as answered:
                answer = session.answer_to(session.request("tools/call", arguments))
    finally:
        machine.as_root("rm /etc/mcpwrap/policy.yaml; systemctl restart mcpwrap-gate")
    assert len(answered) == 1
    once, again, another = answer["result"]["told"]
    assert once.startswith("alpha: ")
    assert "Pending approval" in again
    assert "Pending approval" in another


def claimed(machine: Machine, account: str, via: str, server: str = "beta") -> str:
    """Return the gate's answer to another process that claims a hub's session.

    That session has one of `alpha` open, and none of another member.
    """
    command = machine.guest_command("hub.attacks", "connect_as_own", server, via, pace.WAIT_S)
    if account == "alice":
        return machine.as_user("alice", command).out
    setpriv = f"setpriv --reuid={account} --regid={account} --clear-groups"
    return machine.as_root(f"{setpriv} {command}").out


def test_a_session_of_a_hub_is_claimed_by_its_supervisor_alone(machine: Machine) -> None:
    """Not by another process of the hub's account, by the agent, or by another hub's."""
    with honest(machine) as via:
        for account in (f"mcpw-{HUB}", f"mcpw-{machines.PARTLY}", "alice"):
            assert WRONG_PEER in claimed(machine, account, via), account


# ------------------------------------------------------------------------- each check taken away
@MUTATION
def test_without_the_check_of_the_peer_others_would_act_for_an_agent(machine: Machine) -> None:
    hub = f"mcpw-{HUB}"
    machine.announce("mcpwrap-gate")
    with patched(machine, ANY_CGROUP), honest(machine) as via:
        assert claimed(machine, hub, via).startswith(f'"{STARTED}')
        assert WRONG_PEER in claimed(machine, "alice", via)
        assert NOT_OPEN in claimed(machine, hub, "no-such-session")
    machine.await_idle_gate()
    with patched(machine, ANY_CGROUP):
        assert NOT_OPEN in claimed(machine, hub, via)  # it has ended
    with patched(machine, ANY_ACCOUNT), honest(machine) as via:
        assert claimed(machine, "alice", via).startswith(f'"{STARTED}')


@MUTATION
def test_without_both_lists_a_server_that_is_not_a_member_would_be_reached(
    machine: Machine,
) -> None:
    """The supervisor's list is of its hub; the gate's is what counts."""
    machine.announce("mcpwrap-gate|mcpwrap@tools")
    with patched(machine, ANY_MEMBER), taken_over(machine) as session:
        assert NOT_A_MEMBER in str(tried(session, "gate_s_answer", "outside"))
    with patched(machine, ANY_MEMBER, NOT_LISTED, ANY_TRANSPORT), taken_over(machine) as session:
        assert str(tried(session, "gate_s_answer", "outside")).startswith(STARTED)


@MUTATION
def test_without_the_access_list_an_agent_would_get_a_foreign_member(machine: Machine) -> None:
    machine.announce("mcpwrap-gate")
    with patched(machine, ANY_AGENT), taken_over(machine, "bob") as session:
        assert str(tried(session, "gate_s_answer", "gamma")).startswith(STARTED)


@MUTATION
def test_without_its_filter_the_program_is_still_not_the_supervisor(machine: Machine) -> None:
    """It could make a socket then, and would be refused; without the check it would be bob."""
    machine.announce("mcpwrap-gate")

    def claim_of(session: Session, via: str) -> str:
        return str(tried(session, "connect_as_own", "beta", via))

    with honest(machine) as via, taken_over(machine) as session:
        assert claim_of(session, via) == "OSError 97"
    with patched(machine, ANY_SOCKET):
        with honest(machine) as via, taken_over(machine) as session:
            assert WRONG_PEER in claim_of(session, via)
        with patched(machine, ANY_CGROUP), honest(machine) as via, taken_over(machine) as session:
            assert claim_of(session, via).startswith(STARTED)


@MUTATION
def test_the_attacker_s_program_is_what_runs(machine: Machine) -> None:
    """The twin of the bed: the installed program evaluates no code."""
    with machine.session(HUB) as session, pytest.raises(EOFError):
        session.evaluate("result = 1")
    with pytest.raises(CommandFailedError):
        machine.as_root(shlex.join(["grep", "-q", "probe", PROGRAM]))

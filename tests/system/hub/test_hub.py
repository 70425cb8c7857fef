"""Hub: several servers as one, each with its own account, policy, approvals and audit."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.http import remote
from tests.system.hub import machines
from tests.system.hub.machines import (
    HUB,
    MEMBERS,
    PARTLY,
    STATUS,
    call,
    identity,
    is_refused,
    notified,
    opened,
    running,
    status_of,
    text_of,
    tools_of,
)
from tests.system.support import approvers
from tests.system.support.approvers import decisions, meanwhile
from tests.system.support.tiers import ON_ONE_RELEASE

STAGE = machines.with_hub
pytestmark = ON_ONE_RELEASE

AT_ONCE_S = 0.5  # from the first line of the agent to a list of all members
NAMES = [f"{member}__echo" for member in MEMBERS]


@pytest.fixture(scope="module")
def known(stage: Machine) -> Machine:
    """Have the gate know the members' definitions, for alice and for bob."""
    machines.learn(stage, "alice", "bob")
    return stage


@pytest.fixture
def policy(machine: Machine) -> Iterator[Any]:
    """Return a function that puts a policy in force, for one story."""

    def put(text: str) -> None:
        approvers.put(machine, f"version: 1\n{text}")

    yield put
    machine.as_root("rm -f /etc/mcpwrap/policy.yaml; systemctl restart mcpwrap-gate")


@pytest.mark.usefixtures("known")
def test_the_list_is_there_at_once_with_no_member_started(machine: Machine) -> None:
    machines.stop_members(machine)

    def seconds_to_list() -> float:
        with machine.session(HUB) as session:
            session.initialize()
            began_s = time.monotonic()
            listed = tools_of(session)
            took_s = time.monotonic() - began_s
        assert set(NAMES) <= set(listed)
        return took_s

    assert pace.best(seconds_to_list, AT_ONCE_S) < pace.promised(AT_ONCE_S)
    assert running(machine) == set()
    with opened(machine) as session:
        assert identity(session, "alpha")[:2] == ["alpha", machine.uid_of("mcpw-alpha")]
    assert running(machine) == {"alpha"}  # a call waits for its member alone


@pytest.mark.usefixtures("known")
def test_the_list_is_sorted_and_each_call_reaches_its_member(machine: Machine) -> None:
    with opened(machine) as session:
        names = tools_of(session)
        assert names == sorted(names)
        for member in MEMBERS:
            answer = text_of(call(session, f"{member}__echo", of=member))
            assert answer == f'{member}: {{"of": "{member}"}}'
        assert is_refused(call(session, "echo"))
        assert is_refused(call(session, "alpha__beta__echo"))


@pytest.mark.usefixtures("known")
def test_a_restart_of_a_member_changes_no_list_and_a_change_does(machine: Machine) -> None:
    with opened(machine) as session:
        before = identity(session, "fickle")
        for listed in ("tools/list", "prompts/list"):  # no agent is told of a list it never read
            session.answer_to(session.request(listed))
        machine.as_root("systemctl stop mcpwrap@fickle.service")
        after = identity(session, "fickle")
        assert after != before
        # Changes are told together: this one would take a change of the tools with it.
        call(session, "fickle__change", what="prompts")
        await_notification(session, "notifications/prompts/list_changed")
        assert notified(session, session.request("ping")) == []

        call(session, "fickle__change", what="tools")
        await_notification(session, "notifications/tools/list_changed")
        assert "fickle__new-2" in tools_of(session)


def await_notification(session: Session, method: str) -> None:
    """Receive until this notification, and no list_changed of another kind before it."""
    while (message := session.receive()).get("method") != method:
        assert "list_changed" not in str(message.get("method"))


@pytest.mark.usefixtures("known")
def test_a_call_under_way_is_never_repeated(machine: Machine) -> None:
    with opened(machine) as session:
        pid = identity(session, "alpha")[2]
        waiting = session.request("tools/call", {"name": "alpha__wait", "arguments": {}})
        while session.receive().get("method") != "notifications/message":
            pass
        machine.as_root(f"kill -KILL {machine.pids('alpha')[0]}")
        failed = session.answer_to(waiting)
        assert is_refused(failed)
        assert "alpha" in text_of(failed)
        assert identity(session, "alpha")[2] != pid
        # The new process has no call that waits, and none that was cancelled.
        assert machines.await_call(session, "alpha__waited") == "0"


@pytest.mark.usefixtures("known")
def test_an_ambiguous_resource_is_refused_and_both_are_named(machine: Machine) -> None:
    with opened(machine) as session:
        read = session.request("resources/read", {"uri": "shared://doc"})
        why = session.answer_to(read)["error"]["message"]
        assert "alpha" in why
        assert "beta" in why
        read = session.request("resources/read", {"uri": "member://beta/doc"})
        assert "beta: member" in session.answer_to(read)["result"]["contents"][0]["text"]


@pytest.mark.usefixtures("known")
def test_an_agent_gets_the_members_that_it_may_use_itself(machine: Machine) -> None:
    """bob cannot use gamma directly, and asks the hub for it nevertheless."""
    with opened(machine, user="bob") as session:
        names = tools_of(session)
        assert "alpha__echo" in names
        assert "gamma__echo" not in names
        assert is_refused(call(session, "gamma__echo"))
        assert "gamma" in status_of(session)
        assert identity(session, "alpha")[:2] == ["alpha", machine.uid_of("mcpw-alpha")]
    with opened(machine) as session:  # the twin
        assert "gamma__echo" in tools_of(session)
        assert not is_refused(call(session, "gamma__echo"))


def test_the_status_tool_says_which_member_is_missing_and_why(machine: Machine) -> None:
    machine.announce("mcpwrap@dead|mcpwrap-gate")
    with opened(machine, PARTLY) as session:
        machines.await_tools(session, "alpha__echo")
        pace.until(lambda: "dead" in status_of(session))
        said = status_of(session)
        assert "cannot open its database" in said
        assert STATUS in tools_of(session)
        assert is_refused(call(session, "dead__echo"))
        assert not is_refused(call(session, "alpha__echo"))
    lines = [
        str(entry["MESSAGE"]) for entry in machine.journal("_SYSTEMD_UNIT=mcpwrap@partly.service")
    ]
    assert [line for line in lines if "from 1/2 servers" in line]


HIDING = """
rules:
  - {name: hidden, server: alpha, tool: log, action: hide}
  - {name: outer, server: tools, tool: beta__log, action: hide}
  - {name: rest, tool: "*", action: allow}
"""


@pytest.mark.usefixtures("known")
def test_one_function_decides_what_is_listed_and_what_may_be_called(
    machine: Machine, policy: Any
) -> None:
    """By a rule of the member, and by a rule of the hub."""
    policy(HIDING)
    with opened(machine) as session:
        names = tools_of(session)
        for hidden in ("alpha__log", "beta__log"):
            assert hidden not in names
            assert is_refused(call(session, hidden))
        assert "fickle__log" in names
        assert not is_refused(call(session, "fickle__log"))
    with opened(machine, "beta") as session:  # directly, where the hub's rule is of no concern
        assert "log" in tools_of(session)


ASKING = """
rules:
  - {name: outer, server: tools, tool: alpha__echo, action: allow_with_approval}
  - {name: inner, server: [alpha, beta], tool: echo, action: allow_with_approval}
  - {name: rest, tool: "*", action: allow}
"""
APPROVE = ("answer_next", {"verdict": "approve"})


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("member", ["alpha", "beta"])
def test_one_call_asks_a_person_once(machine: Machine, policy: Any, member: str) -> None:
    """Where the rules of both ask, and where only the member's does."""
    policy(ASKING)
    with opened(machine) as session:
        for text in ("one", "two"):  # other arguments are another question
            with meanwhile(machine, APPROVE, user="carol") as answered:
                assert text in text_of(call(session, f"{member}__echo", text=text))
            assert len(answered) == 1
    with opened(machine, member) as session:  # nor does an approval at the hub count elsewhere
        with meanwhile(machine, APPROVE, user="carol") as answered:
            assert "two" in text_of(call(session, "echo", text="two"))
        assert len(answered) == 1
    told = decisions(machine, f"--server {member} --tool echo")
    told += decisions(machine, f"--tool {member}__echo")
    assert [one["decision"] for one in told].count("held") == 3


@pytest.mark.usefixtures("known")
def test_the_audit_tells_by_which_session_of_the_hub(machine: Machine) -> None:
    alice = machine.uid_of("alice")
    with opened(machine) as session:
        call(session, "alpha__echo", text="by the hub")
    with opened(machine, "alpha") as session:
        call(session, "echo", text="directly")
    machine.await_idle_gate()

    def calls(filters: str) -> list[dict[str, Any]]:
        return [one for one in decisions(machine, filters) if one["sender"] == "agent"]

    outer = calls("--tool alpha__echo")[-1]
    by_hub, directly = calls("--tool echo --server alpha")[-2:]
    assert (outer["server"], outer["uid"]) == (HUB, alice)
    assert (by_hub["uid"], by_hub["via"]) == (alice, outer["session"])
    assert "via" not in directly
    assert machine.look("mcpwrap audit verify").endswith(" s)\n")


@pytest.mark.usefixtures("known")
def test_over_http_it_is_the_same_hub_without_what_stays_on_pipes(machine: Machine) -> None:
    """beta has `transports = ["stdio"]`."""
    listed = remote.step(machine, HUB, "ask", "tools/list", {}, {})
    names = [tool["name"] for tool in listed["messages"][-1]["result"]["tools"]]
    assert "alpha__echo" in names
    assert "beta__echo" not in names
    echo = remote.step(machine, HUB, "call", "alpha__echo", {"text": "over http"})
    assert remote.text_of(echo) == 'alpha: {"text": "over http"}'
    told = remote.step(machine, HUB, "call", "alpha__environment", {})
    assert "PROJECT" not in json.loads(remote.text_of(told))
    # The listener keeps the session for a minute, and another story awaits an idle gate.
    machine.as_root(f"systemctl stop 'mcpwrap-http@{HUB}.*.service'")


@pytest.mark.usefixtures("known")
def test_a_member_inherits_its_own_variables_alone(machine: Machine) -> None:
    command = f"exec env PROJECT=/srv/one OTHER=x mcpwrap-connect {HUB}"
    with opened(machine, command=command) as session:
        alpha = json.loads(machines.await_call(session, "alpha__environment"))
        fickle = json.loads(machines.await_call(session, "fickle__environment"))
    assert alpha["PROJECT"] == "/srv/one"
    assert "PROJECT" not in fickle
    assert "OTHER" not in alpha


@pytest.mark.usefixtures("known")
def test_the_commands_know_a_hub(machine: Machine) -> None:
    servers = json.loads(machine.as_root("mcpwrap status --json").out)
    [members] = [one["members"] for one in servers if one["name"] == HUB]
    assert [one["name"] for one in members] == list(MEMBERS)
    said = machine.as_root(f"mcpwrap policy explain {HUB} alpha__echo '{{}}'").out
    assert "alpha" in said
    machine.as_user("alice", "echo '{}' > .claude.json")  # by which it is one of her agents
    doctor = machine.as_root(f"mcpwrap doctor {HUB}").out
    machine.as_user("alice", "rm .claude.json")
    assert "Claude Code" in doctor
    assert "tools from 4/4 servers" in doctor

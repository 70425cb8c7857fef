"""Refusals by the default policy, to an agent that does what they say: then its call passes."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.gate import judged
from tests.system.gate.judged import opened, reason_of
from tests.system.support import approvers
from tests.system.support.tiers import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE
STAGE = judged.booted

# Without a rule, it extends the default policy; a person has as long as the story needs.
POLICY = "version: 1\napproval: {expires: 10min}\n"
# Sent again the call waits until it expires, which comes before another `wait` has passed.
SOON = "version: 1\napproval: {expires: 10s, wait: 7s}\n"
RESTORE = "rm -rf /etc/mcpwrap/policy.d; mcpwrap apply; systemctl restart mcpwrap-gate"
GROUP = "mcpwrap-approvers"
COMMAND = re.compile(r"`sudo ([^`]+)`")
NO_OTHER_WAY = "Do not do the same in another way."

Json = dict[str, Any]
Call = tuple[str, Json]  # tool, arguments


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Leave the machine to the default policy, without an approver; carol may become one."""
    machine.as_root("id -u carol >/dev/null 2>&1 || useradd -m -s /bin/bash carol")
    judged.begin(machine, POLICY)
    machine.announce("approval")
    yield machine
    leave(machine)
    machine.as_root(RESTORE)


def leave(machine: Machine) -> None:
    """Have carol be no approver any more."""
    machine.as_root(f"gpasswd -d carol {GROUP} >/dev/null 2>&1 || true")


class Agent:
    """Agent that reads refusals, with the people who act on what it tells them."""

    def __init__(self, machine: Machine, session: Session) -> None:
        self._machine, self._session = machine, session

    def ask(self, call: Call) -> int:
        tool, arguments = call
        return self._session.request("tools/call", {"name": tool, "arguments": arguments})

    def call(self, call: Call) -> Json:
        return result_of(self._session.answer_to(self.ask(call)))

    def refused(self, call: Call, code: str) -> str:
        """Have a call refused with this code; return the text."""
        result = self.call(call)
        text = text_of(result)
        assert result.get("isError") is True, result
        assert result["_meta"]["org.mcpwrap/refusal"]["code"] == code, text
        assert f"[{code}]" in reason_of(text)
        assert len(text.split("\n")) <= 6
        return text

    def passes(self, call: Call) -> None:
        result = self.call(call)
        assert "_meta" not in result, result
        assert not result.get("isError"), result

    def root_runs(self, text: str, verb: str, **values: str) -> None:
        """Have root run the command of a refusal that has this verb, with names filled in."""
        (found,) = [one for one in COMMAND.findall(text) if verb in one]
        words = [values.get(word, word) for word in found.split()]
        self._machine.as_root(shlex.join(words))

    def waits_and_is_approved(self, call: Call) -> None:
        """Send a call until it waits, as long as the gate knows no approver; carol approves it."""
        number = self.ask(call)
        while not self._waiting():
            answer = result_of(self._session.answer_to(number))
            assert "[E-CALL-NOBODY]" in text_of(answer)
            number = self.ask(call)
        self._decide("approve --yes")
        result = result_of(self._session.answer_to(number))
        assert not result.get("isError"), result

    def waits_and_is_denied(self, call: Call) -> Json:
        number = self.ask(call)
        self._decide("deny --reason 'Keep it.'")
        return result_of(self._session.answer_to(number))

    def _decide(self, verb: str) -> None:
        """Have carol decide on the one call that waits."""
        pace.until(lambda: bool(self._waiting()))
        (one,) = self._waiting()
        self._machine.as_user("carol", f"mcpwrap approvals {verb} {one['id']}")

    def _waiting(self) -> list[Json]:
        listed = self._machine.as_user("carol", "mcpwrap approvals list --json").out
        found: list[Json] = json.loads(listed)["pending"]
        return found


def result_of(answer: Json) -> Json:
    result: Json = answer["result"]
    return result


def text_of(result: Json) -> str:
    return str(result["content"][0]["text"])


@contextmanager
def agent_of(machine: Machine, server: str) -> Iterator[Agent]:
    with opened(machine, server) as session:
        if server == "sqlite":
            session.answer_to(session.request("tools/list"))
        yield Agent(machine, session)


def select(query: str) -> Call:
    return "read_query", {"query": query}


def write(query: str) -> Call:
    return "write_query", {"query": query}


def shell(line: str) -> Call:
    """Return a call of a tool of shells; the probe answers it, and runs nothing."""
    return "execute_command", {"command": line, "code": "result = 'ran'"}


def of_probe(tool: str, **arguments: object) -> Call:
    return tool, {**arguments, "code": "result = 'ran'"}


# ----------------------------------------------------------------------------------- the stories
def test_an_agent_that_changes_its_call_as_it_is_told_passes(machine: Machine) -> None:
    with agent_of(machine, "sqlite") as agent:
        text = agent.refused(select("SELECT * FROM t"), "E-CALL-BLOCKED")
        assert "rule default.unbounded-select" in text
        assert "Add a LIMIT" in reason_of(text)
        assert "The rule applies to" in text
        agent.passes(select("SELECT * FROM t LIMIT 10"))
    with agent_of(machine, "probe") as agent:
        text = agent.refused(shell("git push --force origin main"), "E-CALL-NOBODY")
        assert "A plain `git push` passes" in text
        agent.passes(shell("git push origin main"))


def test_where_no_approver_is_set_up_two_commands_set_one_up(machine: Machine) -> None:
    drop = write("DROP TABLE doomed")
    with agent_of(machine, "sqlite") as agent:
        agent.passes(("create_table", {"query": "CREATE TABLE IF NOT EXISTS doomed (id INTEGER)"}))
        text = agent.refused(drop, "E-CALL-NOBODY")  # at once
        assert "no account can approve calls of alice" in reason_of(text)
        assert "This is not a denial" in text
        assert COMMAND.findall(text) == [
            f"usermod -aG {GROUP} USER",
            "mcpwrap approvals passwd alice",
            "mcpwrap policy default disable sql-drop --server sqlite",
        ]
        agent.root_runs(text, "usermod", USER="carol")
        agent.waits_and_is_approved(drop)


def test_denied_unanswered_and_unasked_are_three_ends(machine: Machine) -> None:
    """Each has its text, its code, and its word in the audit; only one of them is a denial."""
    machine.as_root(f"usermod -aG {GROUP} carol")
    deletes = [write(f"DELETE FROM t WHERE id = {n}") for n in (1001, 1002, 1003)]
    with agent_of(machine, "sqlite") as agent:
        denied = text_of(agent.waits_and_is_denied(deletes[0]))
        assert "denied by carol (command): Keep it." in reason_of(denied)
        assert "[E-CALL-DENIED]" in reason_of(denied)
        judged.put(machine, SOON)
        machine.as_root("systemctl reload mcpwrap-gate")
        held = agent.refused(deletes[1], "E-CALL-HELD")
        assert "Send the same request again" in held
        unanswered = agent.refused(deletes[1], "E-CALL-UNANSWERED")
        leave(machine)
        unasked = agent.refused(deletes[2], "E-CALL-NOBODY")
        for text in (unanswered, unasked):
            assert "denied" not in text
            assert "This is not a denial" in text
    records = approvers.decisions(machine, "--server sqlite --tool write_query")
    words = [one["decision"] for one in records if one["sender"] == "agent"]
    first, second = ["held", "denied"], ["held", "suspended", "held", "expired"]
    assert words[-7:] == [*first, *second, "unasked"]


# Each rule that asks, and a call that it asks for; the probe answers whatever the gate lets pass.
ASKED_FOR = {
    "sql-outside": of_probe("query_database", query="COPY orders TO PROGRAM 'sh'"),
    "sql-delete": of_probe("query_database", query="DELETE FROM orders WHERE id = 5"),
    "sql-drop": of_probe("query_database", query="DROP TABLE orders"),
    "sql-alter": of_probe("query_database", query="ALTER TABLE orders ADD COLUMN note TEXT"),
    "force-push": shell("git push --force origin main"),
    "force-push-by-tool": of_probe("git_push", force=True),
    "recursive-delete": shell("rm -rf /srv/data"),
    "database-reset": shell("npx prisma migrate reset --force"),
    "infrastructure-destroy": shell("terraform destroy -auto-approve"),
    "delete-tools": of_probe("delete_project", projectIdOrKey="DEMO"),
}


def test_the_command_in_the_refusal_lifts_the_rule(machine: Machine) -> None:
    with agent_of(machine, "probe") as agent:
        for rule, call in ASKED_FOR.items():
            text = agent.refused(call, "E-CALL-NOBODY")
            assert f"rule default.{rule}" in reason_of(text), rule
            assert NO_OTHER_WAY in text
            agent.root_runs(text, f"default disable {rule} ")
            agent.passes(call)
    with agent_of(machine, "other") as agent:  # the twin: it was lifted for one server alone
        agent.refused(ASKED_FOR["delete-tools"], "E-CALL-NOBODY")


def test_the_official_client_hands_out_text_and_structure(machine: Machine) -> None:
    calls = [("read_query", {"query": "SELECT * FROM t"})]
    (found,) = machine.agent("calls_tour", server="sqlite", calls=calls)
    fields = found["meta"]["org.mcpwrap/refusal"]
    assert found["is_error"] is True
    assert (fields["code"], fields["rule"]) == ("E-CALL-BLOCKED", "default.unbounded-select")
    assert found["structured"] == {"mcpwrap": {"message": found["text"], **fields}}

"""Gate before `run_python`: policy, limits and approval hold for it as for any tool."""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.execution import calls, governed
from tests.system.execution.calls import run
from tests.system.support import approvers
from tests.system.support.python_servers import RunResult
from tests.system.support.tiers import only_in_test_all

STAGE = governed.booted
pytestmark = only_in_test_all("a machine of its own; the fast tier has the same of other tools")

POLICY = """
version: 1
rules:
  - name: no-processes
    tool: run_python
    when: [{arg: code, matches: "subprocess|os[.]system"}]
    action: block
    message: Use the standard library.
  - name: risks-are-approved
    tool: run_python
    when: [{arg: code, matches: risky}]
    action: allow_with_approval
"""
LIMITED = "version: 1\nlimits: [{server: python, tool: run_python, %s}]\n"
HIDDEN = "version: 1\nrules: [{name: no-code, tool: run_python, action: hide}]\n"
BLOCKED = "version: 1\nrules: [{name: no-code, tool: run_python, action: block}]\n"
NO_PROCESSES = "Refused by mcpwrap (rule no-processes). Use the standard library. [E-CALL-BLOCKED]"


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Put the policy in force with new counts, and take it away at the end."""
    approvers.put(machine, POLICY)
    yield machine
    machine.as_root("rm /etc/mcpwrap/policy.yaml; systemctl restart mcpwrap-gate")


@pytest.fixture
def session(machine: Machine) -> Iterator[Session]:
    """Open a session of alice's agent."""
    with calls.opened(machine) as session:
        yield session


def was_executed(machine: Machine, code: str) -> bool:
    """Return whether the worker has executed this code."""
    digest = sha256(code.encode()).hexdigest()
    return any(f"sha256:{digest}" in line for line in calls.worker_lines(machine))


def test_a_rule_on_the_code_decides_before_it_is_executed(
    machine: Machine, session: Session
) -> None:
    code = "import subprocess; subprocess.run(['true'])"
    assert run(session, code).text.startswith(f"{NO_PROCESSES}\n")
    assert not was_executed(machine, code)
    allowed = "import sub_process"
    assert run(session, allowed).exit_code == 1
    assert was_executed(machine, allowed)


@pytest.mark.parametrize("policy", [HIDDEN, BLOCKED], ids=["hidden", "blocked"])
def test_a_rule_on_the_tool_takes_it_away(machine: Machine, policy: str) -> None:
    approvers.put(machine, policy)
    code = f"'never executed {len(policy)}'"
    with calls.opened(machine) as session:
        answer = session.answer_to(calls.begin(session, code))
        listed = session.answer_to(session.request("tools/list"))["result"]["tools"]
    if policy == HIDDEN:
        assert answer["error"]["message"] == "Unknown tool: run_python"
        assert listed == []
    else:
        assert calls.result_of(answer).text.startswith("Refused by mcpwrap (rule no-code)")
        assert [tool["name"] for tool in listed] == ["run_python"]
    assert not was_executed(machine, code)


def values(session: Session, *codes: str) -> list[str | None]:
    """Return the value of each code; None if the gate has refused it."""
    return [run(session, code).structured.get("value") for code in codes]


def test_calls_are_limited(machine: Machine) -> None:
    approvers.put(machine, LIMITED % "calls: 3/h")
    with calls.opened(machine) as session:
        assert values(session, "1", "2", "3", "4") == ["1", "2", "3", None]
        assert "3 calls" in run(session, "5").text
    assert was_executed(machine, "3")
    assert not was_executed(machine, "4")


def test_a_call_is_not_repeated_for_ever(machine: Machine) -> None:
    approvers.put(machine, LIMITED % "repeated_calls: 3, cool_down: 1h")
    with calls.opened(machine) as session:
        assert values(session, *["6"] * 2, "7", *["6"] * 4) == [*"66", "7", *"666", None]
        assert "3 times" in run(session, "6").text


def test_a_person_approves_the_code_before_it_is_executed(machine: Machine) -> None:
    code = "print('risky, and approved')"
    with calls.opened(machine) as session:
        waiting = calls.begin(session, code)
        [pending] = approvers.step(machine, "await_pending")
        assert (pending["server"], pending["target"]) == ("python", "run_python")
        document = approvers.step(machine, "shown", question=pending["id"])
        assert code in str(document)
        assert not was_executed(machine, code)
        answer = {"id": pending["id"], "digest": pending["digest"], "verdict": "approve"}
        approvers.step(machine, "decide", **answer)
        assert calls.result_of(session.answer_to(waiting)).stdout == "risky, and approved\n"
    assert was_executed(machine, code)


def test_code_that_a_person_has_denied_is_not_executed(machine: Machine) -> None:
    code = "print('risky, and denied')"
    with calls.opened(machine) as session:
        waiting = calls.begin(session, code)
        answer = approvers.pending(machine) | {"verdict": "deny", "reason": "not this one"}
        approvers.step(machine, "decide", **answer)
        text = calls.result_of(session.answer_to(waiting)).text
        assert "denied by bob" in text
        assert run(session, "1").value == "1"
    assert not was_executed(machine, code)


# ------------------------------------------------------------------------------------ eras and URL
PICTURE = "open('/out/p.gif', 'wb').write(b'GIF89a' + bytes([8, 0, 8, 0, 0, 0, 0, 59]))"
SAME: list[dict[str, Any]] = [
    {"code": "print('ü')\n6 * 7"},
    {"code": "print(open('/in/a').read())", "files": {"a": "text"}},
    {"code": f"open('/out/a.csv', 'w').write('a,b')\n{PICTURE}"},
    {"code": "import nosuch"},
    {"code": "while True: pass", "timeout": 1},
    {"code": ""},
]
VARYING = re.compile(r'run://[0-9a-f]{32}|"(run|duration_ms|cpu_ms|peak_memory)":[^,}]*')
MEASURED = ("run", "duration_ms", "cpu_ms", "peak_memory")


def invariant(result: RunResult) -> tuple[Any, ...]:
    """Return what is the same each time: no measured number, run ID, URI, or thread."""
    fields = {key: each for key, each in result.structured.items() if key not in MEASURED}
    found = (result.is_error, fields, result.content)
    return tuple(re.sub(r"0x[0-9a-f]+", "", VARYING.sub("", str(each))) for each in found)


def test_both_eras_and_the_url_give_the_same_results(machine: Machine) -> None:
    approvers.put(machine, "version: 1\n")
    places: tuple[dict[str, str], ...] = ({"server": "python"}, {"url": governed.url(machine)})
    tours = [
        [
            RunResult(**each)
            for each in machine.agent("run_python_calls", calls=SAME, **place, mode=mode)
        ]
        for mode in ("legacy", "2026-07-28")
        for place in places
    ]
    ran, *others = tours
    for other in others:
        assert list(map(invariant, other)) == list(map(invariant, ran))
    assert [each.is_error for each in ran] == [False] * 5 + [True]
    assert (ran[0].stdout, ran[0].value, ran[1].stdout) == ("ü\n", "42", "text\n")
    assert [block["type"] for block in ran[2].content] == ["text", "image", "resource_link"]
    assert ran[4].ending == "timeout"


def test_a_revision_without_structured_content_has_the_same_as_text(machine: Machine) -> None:
    approvers.put(machine, "version: 1\n")
    version = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
    version["clientInfo"] = {"name": "bed", "version": "1"}
    with machine.session("python") as session:
        answer = session.answer_to(session.request("initialize", version))
        assert answer["result"]["protocolVersion"] == "2025-03-26"
        session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result = run(session, "print('ü')\n6 * 7")
    assert (result.structured, len(result.content)) == ({}, 1)
    assert result.text.startswith('{"stdout":"ü\\n","stderr":"","exit_code":0,"error":null,')
    assert '"value":"42"' in result.text

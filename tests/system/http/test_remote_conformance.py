"""Conformance of a remote server: the official suite finds the same through mcpwrap as directly."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed, internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import BED_AT, Machine
from tests.system.http import remote
from tests.system.support import conformance, tiers
from tests.system.support.conformance import RUNS, SIMPLE, Found

pytestmark = [tiers.on_release("trixie"), tiers.only_in_test_all("conformance suite")]

DIRECT = "http://localhost:18001/mcp"
# This many checks succeed. The failed ones are of the extension for tasks, which no requirement
# scores.
SUCCEED = {"2025-11-25": 84, "2026-07-28": 164}
UNSCORED = "tasks-"
# The server has neither tasks nor the tools for them: the gate answers as the suite expects, for a
# task that it has not seen, and for a tool that the server has not listed.
ANSWERED_BY_THE_GATE = (
    "tasks-capability-negotiation:sep-2663-server-rejects-undeclared-client",
    "tasks-dispatch-and-envelope:sep-2663-legacy-task-param-ignored",
    "tasks-dispatch-and-envelope:sep-2663-tasks-get-invalid-task-id-32602",
    "tasks-dispatch-and-envelope:tasks-immediate-result-shortcut",
    "tasks-dispatch-and-envelope:tasks-result-type-complete-on-non-task-responses",
    "tasks-lifecycle:tasks-sync-tool-call",
)
OTHERS: dict[str, dict[str, tuple[str, str]]] = {
    "2025-11-25": {},
    "2026-07-28": dict.fromkeys(ANSWERED_BY_THE_GATE, ("FAILURE", "SUCCESS")),
}


@contextmanager
def suite_machine(suite: str) -> Iterator[Machine]:
    """Boot a machine with the suite, and the suite's server twice: here and elsewhere."""
    with installed.conformance_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        with Internet(machine) as internet:
            conformance.put_policy(machine, conformance.POLICY)
            remote.prepare(machine, remote.a_url("far", remote.FAR))
            with remote.far_server(machine, internet):
                start_here(machine)
                yield machine


STAGE = suite_machine


def start_here(machine: Machine) -> None:
    """Start the same server without a token, where the suite can reach it directly."""
    argv = [*remote.SDK_SERVER, "18001", internet_map.MCP, "", "{}"]
    run = f"systemd-run --quiet --unit=here --uid=nobody --setenv=PYTHONPATH={BED_AT}"
    machine.as_root(f"{run} {shlex.join(argv)}")
    remote.await_answer(machine, DIRECT)


def run_suite(machine: Machine, url: str, runs: dict[str, list[str]] = RUNS) -> Found:
    """Run the suite as an agent with this URL, and return its findings."""
    module = "tests.system.guest.conformance.suite_at"
    argv = ["env", f"PYTHONPATH={BED_AT}", "python3", "-m", module, url, json.dumps(runs)]
    found: Found = json.loads(machine.as_user("alice", shlex.join(argv)).out)
    return found


def show(direct: dict[str, str], wrapped: dict[str, str]) -> None:
    """Print both side by side."""
    print(f"direct {dict(Counter(direct.values()))}, through {dict(Counter(wrapped.values()))}")
    for check in sorted({*direct, *wrapped}):
        print(f"{direct.get(check, '-'):8} {wrapped.get(check, '-'):8} {check}")


@pytest.fixture(scope="module")
def direct(stage: Machine) -> Found:
    """Return the suite's findings for the server itself."""
    return run_suite(stage, DIRECT)


def test_the_server_itself_has_what_the_suite_demands(direct: Found) -> None:
    for requirements, status_by_check in direct.items():
        assert Counter(status_by_check.values())["SUCCESS"] >= SUCCEED[requirements]
        failed = [check for check, status in status_by_check.items() if status == "FAILURE"]
        assert [check for check in failed if not check.startswith(UNSCORED)] == []


def test_through_mcpwrap_the_same_checks_succeed(machine: Machine, direct: Found) -> None:
    wrapped = run_suite(machine, remote.url(machine, "far"))
    for requirements, before in direct.items():
        print(f"--- {requirements}")
        show(before, wrapped[requirements])
    for requirements, before in direct.items():
        after = wrapped[requirements]
        both = {check: (before.get(check), after.get(check)) for check in {*before, *after}}
        judged = {check: found for check, found in both.items() if {*found} - {"INFO", None}}
        others = {check: found for check, found in judged.items() if found[0] != found[1]}
        assert others == OTHERS[requirements]


def test_a_tool_that_a_policy_hides_is_found_missing(machine: Machine, direct: Found) -> None:
    """So it is the gate that the suite connects to."""
    conformance.put_policy(machine, conformance.HIDING)
    found = run_suite(machine, remote.url(machine, "far"), conformance.ONE_CALL)
    for version in RUNS:
        assert found[version][f"{SIMPLE}:{SIMPLE}"] == "FAILURE"
        assert direct[version][f"{SIMPLE}:{SIMPLE}"] == "SUCCESS"
    conformance.put_policy(machine, conformance.POLICY)

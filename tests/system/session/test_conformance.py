"""Conformance: the official suite finds the same for a server behind the gate as alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.support import conformance
from tests.system.support.conformance import RUNS, SIMPLE, Found, run_suite
from tests.system.support.tiers import on_release, only_in_test_all

# Of one release: it takes its time.
pytestmark = [
    on_release("trixie"),
    only_in_test_all("the official suite takes minutes; test_agent.py has its official client"),
]

WRAPPED = ["mcpwrap-connect", "fixture"]
# This many checks succeed, of those that the suite requires: all that need only stdin and stdout.
SUCCEED = {"2025-11-25": 73, "2026-07-28": 147}
# The server does not have tasks, and fails; the gate answers for one it has not seen, as the suite
# wants it, that it does not exist.
OTHERS: dict[str, set[str]] = {
    "2025-11-25": set(),
    "2026-07-28": {"tasks-dispatch-and-envelope:sep-2663-tasks-get-invalid-task-id-32602"},
}
UNSCORED = ("json-schema-2020-12:", "tasks-", "http-")  # pending, or of an extension


@contextmanager
def with_suite(suite: str) -> Iterator[Machine]:
    """Boot a machine with the suite and its server, under a policy that allows all."""
    with installed.conformance_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        conformance.put_policy(machine, conformance.POLICY)
        machine.configure(conformance.FIXTURE)
        machine.apply()
        yield machine


STAGE = with_suite


@pytest.fixture(scope="module")
def direct(stage: Machine) -> Found:
    """Return the suite's findings for the server itself."""
    return run_suite(stage, 18001, conformance.SERVER)


def test_the_server_itself_has_what_the_suite_demands(direct: Found) -> None:
    for requirements, status_by_check in direct.items():
        assert list(status_by_check.values()).count("SUCCESS") >= SUCCEED[requirements]
        failed = [check for check, status in status_by_check.items() if status == "FAILURE"]
        assert [check for check in failed if not check.startswith(UNSCORED)] == []


def test_behind_the_gate_it_is_the_same(machine: Machine, direct: Found) -> None:
    """Each check by its name."""
    found = run_suite(machine, 18002, WRAPPED)
    for requirements, before in direct.items():
        others = conformance.differences(before, found[requirements])
        assert others == OTHERS[requirements]


def test_a_tool_that_a_policy_hides_is_found_missing(machine: Machine, direct: Found) -> None:
    """So the suite notices the gate's effect."""
    conformance.put_policy(machine, conformance.HIDING)
    found = run_suite(machine, 18003, WRAPPED, conformance.ONE_CALL)
    for version in RUNS:
        assert found[version][f"{SIMPLE}:{SIMPLE}"] == "FAILURE"
        assert direct[version][f"{SIMPLE}:{SIMPLE}"] == "SUCCESS"

"""Statistics: calls and refusals are counted, and shown to root and two groups only."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import servers
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = servers.wrapped

pytestmark = ON_ONE_RELEASE

POLICY = """
version: 1
rules:
  - {name: no-drop, server: probe, tool: drop, action: block}
"""
FILE = "/var/lib/prometheus/node-exporter/mcpwrap.prom"


Rows = dict[str, Any]


@pytest.fixture(autouse=True)
def began_s(machine: Machine) -> Iterator[float]:
    """Restart the gate with the policy above and new counts; return the time."""
    machine.write("/etc/mcpwrap/policy.yaml", POLICY)
    now_s = time.time()
    machine.as_root("systemctl restart mcpwrap-gate")
    yield now_s
    machine.as_root("rm /etc/mcpwrap/policy.yaml; systemctl reload mcpwrap-gate")


def use(session: Session, *, calls: int, refused: int) -> None:
    """Call a tool, and another that is refused, this many times."""
    for n in range(calls):
        assert session.evaluate(f"result = {n}") == n
    for _ in range(refused):
        answer = session.answer_to(session.request("tools/call", {"name": "drop"}))
        assert answer["result"]["isError"]


def counted(machine: Machine, is_all: Callable[[Rows], bool], user: str = "root") -> Rows:
    """Return each server's output for `user`, once complete: the gate samples once a second."""
    give_up_at_s = time.monotonic() + pace.WAIT_S
    while True:
        told = json.loads(machine.as_user(user, "mcpwrap stats --json").out)
        rows = {row["server"]: row for row in told["servers"]}
        if is_all(rows):
            return rows
        assert time.monotonic() < give_up_at_s, rows


def has(decisions: int, *, sessions: int) -> Callable[[Rows], bool]:
    """Return whether the probe has this many decisions, in all sessions, and open sessions."""

    def is_all(rows: Rows) -> bool:
        row = rows.get("probe", {"decisions": {}, "sessions": 0})
        counted_so_far = sum(row["decisions"].values())
        return bool((counted_so_far, row["sessions"]) == (decisions, sessions))

    return is_all


def test_what_was_called_and_refused_is_counted_in_sessions_that_are_over_and_open(
    machine: Machine,
) -> None:
    assert counted(machine, lambda rows: not rows) == {}
    assert "no sessions since" in machine.as_root("mcpwrap stats").out
    with machine.session("probe") as session:
        use(session, calls=3, refused=2)
    machine.await_idle_gate()
    with machine.session("probe") as one, machine.session("probe") as two:
        use(one, calls=2, refused=0)
        use(two, calls=0, refused=1)
        with machine.session("everything") as other:
            other.initialize()
        machine.await_end_of("everything")
        at_rest = has(8, sessions=2)
        now = counted(
            machine, lambda rows: at_rest(rows) and rows.get("everything", {}).get("sessions") == 0
        )
        assert now.keys() == {"probe", "everything"}
        probe = now["probe"]
        assert {k: n for k, n in probe["decisions"].items() if n} == {"allowed": 5, "blocked": 3}
        assert 0 < probe["mean_us"] < 4_000_000
        assert 0 < probe["p50_us"] <= probe["p95_us"] <= probe["p99_us"]
        assert now["everything"]["decisions"]["blocked"] == 0
        row = next(r for r in machine.as_root("mcpwrap stats").out.splitlines() if "probe" in r)
        assert row.rstrip().endswith("allowed 5, blocked 3")
    machine.await_idle_gate()
    assert counted(machine, has(8, sessions=0))["probe"]["decisions"] == probe["decisions"]


def test_what_a_session_counted_is_there_although_its_process_was_killed(machine: Machine) -> None:
    with machine.session("probe") as session:
        use(session, calls=4, refused=1)
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        machine.as_root(f"kill -KILL $(pgrep -P {gate})")
        machine.await_idle_gate()
        decisions = counted(machine, has(5, sessions=0))["probe"]["decisions"]
    assert (decisions["allowed"], decisions["blocked"]) == (4, 1)


@pytest.fixture
def auditor(machine: Machine) -> Iterator[str]:
    """Make an account of the group adm, for one story: the next account has the next UID."""
    machine.add_person("auditor", groups="adm")
    yield "auditor"
    machine.as_root("userdel -r auditor 2>&1")


def test_only_root_and_members_of_two_groups_are_told(machine: Machine, auditor: str) -> None:
    with machine.session("probe") as session:
        use(session, calls=1, refused=0)
        for user in ("root", "alice", auditor):
            shown = counted(machine, has(1, sessions=1), user)
            assert shown["probe"]["decisions"]["allowed"] == 1, user
        refused = machine.as_user("mallory", "mcpwrap stats --json", status=1)
    assert refused.out == ""
    assert "only root and members of adm or mcpwrap may read the statistics" in refused.err
    assert "probe" not in refused.err


def test_the_file_for_prometheus_is_there_whole_at_any_time(
    machine: Machine, began_s: float
) -> None:
    machine.as_root(f"rm -rf $(dirname {FILE})")
    none = machine.as_root(f"mcpwrap stats --prometheus --output {FILE}", status=2)
    assert "the folder does not exist" in none.err
    machine.as_root(f"mkdir -p $(dirname {FILE})")
    with machine.session("probe") as session:
        use(session, calls=2, refused=1)
        counted(machine, has(3, sessions=1))
        seen, mode, names = machine.call("prometheus_file", "read_while_replaced", FILE)
        text = machine.as_root("mcpwrap stats --prometheus").out
    assert (seen, mode, names) == ([text], "0o100644", ["mcpwrap.prom"])
    samples = {
        (sample.name, sample.labels.get("decision", sample.labels.get("le", ""))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("server", "probe") == "probe"
    }
    assert samples["mcpwrap_decisions_total", "allowed"] == 2
    assert samples["mcpwrap_decisions_total", "blocked"] == 1
    assert samples["mcpwrap_decisions_total", "unrecorded"] == 0
    assert samples["mcpwrap_decision_seconds_bucket", "+Inf"] == 3
    assert samples["mcpwrap_decision_seconds_count", ""] == 3
    assert samples["mcpwrap_sessions", ""] == 1
    assert began_s <= samples["mcpwrap_gate_start_time_seconds", ""] < time.time()


@only_in_test_all("mistakes in options of a command that only reads")
def test_what_cannot_be_meant_is_refused(machine: Machine) -> None:
    for options in ("--json --prometheus", "--output /tmp/x", "--json --output /tmp/x"):
        assert "mcpwrap stats" in machine.as_root(f"mcpwrap stats {options}", status=2).err

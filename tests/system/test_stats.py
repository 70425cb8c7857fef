"""What the gate counted is what agents asked and were refused, for those who may see it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.releases import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE

POLICY = """
version: 1
rules:
  - {name: no-drop, server: probe, tool: drop, action: block}
"""
FILE = "/var/lib/prometheus/node-exporter/mcpwrap.prom"


@pytest.fixture(autouse=True)
def _nothing_is_counted_yet(machine: Machine) -> Iterator[None]:
    machine.write("/etc/mcpwrap/policy.yaml", POLICY)
    machine.as_root("systemctl restart mcpwrap-gate")
    yield
    machine.as_root("rm /etc/mcpwrap/policy.yaml")


def use(session: Session, *, calls: int, refused: int) -> None:
    """Call a tool, and another that is refused, so many times."""
    for n in range(calls):
        assert session.evaluate(f"result = {n}") == n
    for _ in range(refused):
        answer = session.answer_to(session.request("tools/call", {"name": "drop"}))
        assert answer["result"]["isError"]


def counted(machine: Machine, user: str = "root") -> dict[str, Any]:
    """Return what `user` is told of each server, as of now: the gate looks once a second."""
    time.sleep(1.1)
    told = json.loads(machine.as_user(user, "mcpwrap stats --json").out)
    return {row["server"]: row for row in told["servers"]}


def test_what_was_called_and_refused_is_counted_in_sessions_that_are_over_and_open(
    machine: Machine,
) -> None:
    assert counted(machine) == {}
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
        now = counted(machine)
        assert now.keys() == {"probe", "everything"}
        probe = now["probe"]
        assert probe["sessions"] == 2
        assert {k: n for k, n in probe["decisions"].items() if n} == {"allowed": 5, "blocked": 3}
        assert 0 < probe["mean_us"] < 4_000_000
        assert 0 < probe["p50_us"] <= probe["p95_us"] <= probe["p99_us"]
        assert (now["everything"]["sessions"], now["everything"]["decisions"]["blocked"]) == (0, 0)
        row = next(r for r in machine.as_root("mcpwrap stats").out.splitlines() if "probe" in r)
        assert row.rstrip().endswith("allowed 5, blocked 3")
    machine.await_idle_gate()
    after = counted(machine)["probe"]
    assert (after["sessions"], after["decisions"]) == (0, probe["decisions"])


def test_what_a_session_counted_is_there_although_its_process_was_killed(machine: Machine) -> None:
    with machine.session("probe") as session:
        use(session, calls=4, refused=1)
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        machine.as_root(f"kill -KILL $(pgrep -P {gate})")
        machine.await_idle_gate()
        decisions = counted(machine)["probe"]["decisions"]
    assert (decisions["allowed"], decisions["blocked"]) == (4, 1)


def test_only_root_and_members_of_two_groups_are_told(machine: Machine) -> None:
    machine.as_root("id auditor || useradd -m -G adm auditor")
    with machine.session("probe") as session:
        use(session, calls=1, refused=0)
        for user in ("root", "alice", "auditor"):
            assert counted(machine, user)["probe"]["decisions"]["allowed"] == 1, user
        refused = machine.as_user("mallory", "mcpwrap stats --json", status=1)
    assert refused.out == ""
    assert "only root and members of adm or mcpwrap may see what was counted" in refused.err
    assert "probe" not in refused.err


READ_WHILE_IT_IS_REPLACED = f"""
import json, os, subprocess
from pathlib import Path
file, seen = Path("{FILE}"), set()
command = ["mcpwrap", "stats", "--prometheus", "--output", str(file)]
subprocess.run(command, check=True, umask=0o077)
for _ in range(5):
    with subprocess.Popen(command) as writing:
        while writing.poll() is None:
            seen.add(file.read_text())
print(json.dumps([sorted(seen), oct(file.stat().st_mode), os.listdir(file.parent)]))
"""


def test_the_file_for_prometheus_is_there_whole_at_any_time(machine: Machine) -> None:
    machine.as_root(f"rm -rf $(dirname {FILE})")
    none = machine.as_root(f"mcpwrap stats --prometheus --output {FILE}", status=2)
    assert "there is no such folder" in none.err
    machine.as_root(f"mkdir -p $(dirname {FILE})")
    with machine.session("probe") as session:
        use(session, calls=2, refused=1)
        counted(machine)
        seen, mode, names = machine.probe(READ_WHILE_IT_IS_REPLACED)
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
    assert time.time() - 600 < samples["mcpwrap_gate_start_time_seconds", ""] < time.time()


def test_what_cannot_be_meant_is_refused(machine: Machine) -> None:
    for options in ("--json --prometheus", "--output /tmp/x", "--json --output /tmp/x"):
        assert "mcpwrap stats" in machine.as_root(f"mcpwrap stats {options}", status=2).err

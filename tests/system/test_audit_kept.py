"""The audit under stress: whoever is killed, and whatever is full, no decision is without a record.

Each call has a name, in its arguments, which the audit keeps here; the server writes down which
calls have reached it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.system.bed import installed
from tests.system.bed.audit_story import AGENTS, KILLER
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE

SERVERS = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
agents = ["alice"]
audit = "plain"
state = true
limits = {sessions = 40}
"""
POLICY = "version: 1\nrules: [{name: no-drop, tool: drop, action: block}]\n"
REFUSED = "Refused by mcpwrap (rule no-drop)."
UNRECORDED = "Refused by mcpwrap: the audit cannot be written."
AUDIT = "/var/log/mcpwrap/audit"
FILL = f"{AUDIT}/.fill"
SEEN = "/var/lib/mcpwrap/state/probe/seen"
RECORDS = f"""
import glob, json
found = []
for path in sorted(glob.glob("{AUDIT}/*/*-*.jsonl")):
    for line in open(path, newline="\\n"):
        if line.endswith("}}\\n"): found.append(json.loads(line))
print(json.dumps(found))
"""


@dataclass
class Story:
    """What was answered, what reached the server, and what is recorded."""

    answers: dict[str, str]
    reached: Counter[str]
    records: list[dict[str, Any]]

    def recorded(self, decision: str) -> Counter[str]:
        return Counter(
            record["plain"]["arguments"]["called"]
            for record in self.records
            if record["decision"] == decision
        )

    def unrecorded(self) -> int:
        return sum(record.get("unrecorded", 0) for record in self.records)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Boot one release: nothing here depends on which."""
    machine = installed.installed_machine("bookworm")
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/agents.py", AGENTS)
        machine.write("/opt/killer.py", KILLER)
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        # A disk that can be filled.
        options = "size=64M,mode=2750,uid=$(id -u mcpwrap-gate),gid=adm"
        machine.as_root(
            f"systemctl stop mcpwrap-gate; cp -a {AUDIT} /root/before; "
            f"mount -t tmpfs -o {options} tmpfs {AUDIT}; cp -a /root/before/. {AUDIT}; "
            "systemctl start mcpwrap-gate"
        )
        yield machine
    finally:
        machine.remove()


def told(machine: Machine, answers: str, story: str) -> Story:
    seen = machine.as_root(f"cat {SEEN}").out.split()
    records = [
        record
        for record in machine.probe(RECORDS)
        if record.get("plain", {}).get("arguments", {}).get("called", "").startswith(f"{story}-")
    ]
    return Story(json.loads(answers), Counter(seen), records)


def assert_each_is_recorded_once(story: Story) -> None:
    allowed, blocked = story.recorded("allowed"), story.recorded("blocked")
    assert set((allowed + blocked).values()) == {1}  # no record twice
    assert set(story.reached.values()) == {1}
    assert story.reached.keys() <= allowed.keys()  # none arrived without
    answered = {name for name, text in story.answers.items() if text == "done"}
    refused = {name for name, text in story.answers.items() if text == REFUSED}
    assert answered <= allowed.keys()
    assert refused <= blocked.keys()


def verified(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.as_root("mcpwrap audit verify --json").out)
    return found


def test_killed_at_any_moment(machine: Machine) -> None:
    machine.announce("mcpwrap")
    both = "python3 /opt/killer.py 12 & runuser -u alice -- python3 /opt/agents.py 13 kill; wait"
    *_, killed, answers = sorted(machine.as_root(both).out.splitlines(), key=len)
    counts = {part: int(n) for part, n in re.findall(r"'(\w+)': (\d+)", killed)}
    assert counts.keys() == {"stub", "session", "server", "wrapper", "gate"}
    story = told(machine, answers, "kill")
    print(f"{len(story.answers)} answers, {len(story.records)} records, killed {counts}")
    assert len(story.reached) > 100
    assert_each_is_recorded_once(story)
    checked = verified(machine)
    assert checked["findings"] == []
    assert checked["records"] >= len(story.records)


def while_full(machine: Machine, name: str) -> Story:
    """Have agents call while the disk fills up; when something has come of that, it is freed."""
    machine.as_root(f"rm -f {SEEN}")
    reached = f"[ $(cat {SEEN} | wc -w) -gt %d ]"
    journal = "journalctl -u mcpwrap-gate -o cat --since @$since"
    try:
        done = machine.as_root(
            f"since=$(date +%s); runuser -u alice -- python3 /opt/agents.py 12 {name} & "
            f"until {reached % 100}; do sleep 0.1; done; dd if=/dev/zero of={FILL} bs=4k 2>&1; "
            f"until {journal} | grep -q unrecorded || {reached % 500}; do sleep 0.1; done; "
            f"rm {FILL}; wait"
        )
    finally:
        machine.as_root(f"rm -f {FILL}")
    assert "No space left on device" in done.out
    *_, answers = sorted(done.out.splitlines(), key=len)
    return told(machine, answers, name)


def test_on_a_full_disk_calls_are_refused(machine: Machine) -> None:
    machine.announce("mcpwrap")
    story = while_full(machine, "full")
    assert_each_is_recorded_once(story)
    by_answer = Counter(story.answers.values())
    assert by_answer.keys() == {"done", REFUSED, UNRECORDED}
    print(f"{dict(by_answer)}, {len(story.records)} records")
    assert story.unrecorded() > 0
    checked = verified(machine)
    assert checked["findings"] == []
    assert machine.as_user("alice", "mcpwrap-connect probe </dev/null").err == ""


def test_without_asking_whether_it_is_written_calls_get_through(machine: Machine) -> None:
    """The mechanism taken away."""
    refuse = "            return False\n        self._unrecorded"
    machine.announce("mcpwrap")
    with machine.patched("session/recorder", refuse, refuse.replace("False", "True")):
        story = while_full(machine, "careless")
    assert story.reached.keys() - story.recorded("allowed").keys()


def test_nobody_is_let_in_while_nothing_can_be_written(machine: Machine) -> None:
    machine.announce("mcpwrap")
    knock = "mcpwrap-connect probe </dev/null 2>&1; [ $? = 69 ]"
    # There is room for some in the last page of the file.
    out = machine.as_root(
        f"dd if=/dev/zero of={FILL} bs=4k 2>&1; "
        f"until runuser -u alice -- sh -c '{knock}'; do :; done; rm {FILL}"
    ).out
    assert "the audit cannot be written: see the journal of mcpwrap-gate" in out
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")
    # A gate that cannot begin is not there; it comes when it can.
    machine.as_root(
        f"dd if=/dev/zero of={FILL} bs=4k 2>/dev/null; systemctl restart mcpwrap-gate", status=1
    )
    machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=69)
    machine.as_root(f"rm {FILL}; systemctl restart mcpwrap-gate")
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")
    assert verified(machine)["findings"] == []

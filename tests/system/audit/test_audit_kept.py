"""Completeness of the audit: with processes killed or disks full, each decision has a record.

Each call has a name, in its arguments, which the audit keeps here; the server writes down the calls
that have reached it.
"""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.shared import pace
from tests.system.audit import audited
from tests.system.audit.audited import AUDIT, POLICY
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.support import tiers
from tests.system.support.servers import a_server
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE

SERVERS = a_server(
    "probe", 'agents = ["alice"]\naudit = "plain"\nstate = true\nlimits = {sessions = 40}'
)
REFUSED = "Refused by mcpwrap (rule no-drop). [E-CALL-BLOCKED]"
UNRECORDED = "Refused by mcpwrap: the audit cannot be written. [E-CALL-UNRECORDED]"
FILL = f"{AUDIT}/.fill"
SEEN = "/var/lib/mcpwrap/state/probe/seen"
NEWS = "journalctl --sync; journalctl -u mcpwrap-gate -b -o cat --cursor-file=/run/audit-news"
STOP = "/run/stop-agents"
ROUNDS = {tiers.FAST: 4, tiers.ALL: 20}  # of kills


@dataclass
class Story:
    """Calls of one story: answered, received by the server, and recorded."""

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


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot a machine on which the audit is on a disk of its own, which can be filled."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        options = "size=64M,mode=2750,uid=$(id -u mcpwrap-gate),gid=adm"
        machine.as_root(
            f"systemctl stop mcpwrap-gate; cp -a {AUDIT} /root/before; "
            f"mount -t tmpfs -o {options} tmpfs {AUDIT}; cp -a /root/before/. {AUDIT}; "
            "systemctl start mcpwrap-gate"
        )
        yield machine


STAGE = booted


@contextmanager
def calling(machine: Machine, story: str) -> Iterator[Story]:
    """Have agents call for the time of the block; at its end the story has the outcomes."""
    machine.as_root(f"rm -f {SEEN} {STOP}")
    found = Story({}, Counter(), [])
    with ThreadPoolExecutor(1) as pool:
        calls = pool.submit(machine.call, "audit_story", "call_until", story, STOP, user="alice")
        try:
            yield found
        finally:
            machine.write(STOP, "")
        found.answers = {name: text.split("\n")[0] for name, text in calls.result().items()}
    machine.await_idle_gate()
    found.reached = Counter(machine.read(SEEN).split())
    found.records = [
        record
        for record in machine.look_by("audit_story", "records")
        if record.get("plain", {}).get("arguments", {}).get("called", "").startswith(f"{story}-")
    ]


def assert_each_is_recorded_once(story: Story) -> None:
    allowed, blocked = story.recorded("allowed"), story.recorded("blocked")
    assert set((allowed + blocked).values()) == {1}  # no record twice
    assert set(story.reached.values()) == {1}
    assert story.reached.keys() <= allowed.keys()  # none arrived without
    answered = {name for name, text in story.answers.items() if text == "done"}
    refused = {name for name, text in story.answers.items() if text == REFUSED}
    assert answered <= allowed.keys()
    assert refused <= blocked.keys()


def test_killed_at_any_moment(machine: Machine, pytestconfig: pytest.Config) -> None:
    machine.announce("mcpwrap")
    rounds = ROUNDS[pytestconfig.getoption("tier")]
    with calling(machine, "kill") as story:
        killed = machine.call("audit_story", "kill", rounds, pace.WAIT_S)
    assert killed.keys() == {"stub", "session", "server", "wrapper", "gate"}
    print(f"{len(story.answers)} answers, {len(story.records)} records, killed {killed}")
    assert len(story.reached) > 100
    assert_each_is_recorded_once(story)
    checked = audited.verified(machine)
    assert checked["findings"] == []
    assert checked["records"] >= len(story.records)


def while_full(machine: Machine, name: str) -> Story:
    """Have agents call while the disk fills up; after the first effect, free it."""
    with calling(machine, name) as story:
        try:
            machine.call("audit_story", "await_calls", 100, pace.WAIT_S)
            machine.look(f"{NEWS} >/dev/null")
            assert machine.call("audit_story", "fill", FILL) == "No space left on device"
            # Where nothing is refused, as in the twin, calls continue.
            reached, give_up_at_s = calls(machine), time.monotonic() + pace.WAIT_S
            while "unrecorded" not in machine.look(NEWS) and calls(machine) < reached + 500:
                assert time.monotonic() < give_up_at_s
        finally:
            machine.path(FILL).unlink(missing_ok=True)
        machine.call("audit_story", "await_calls", 100, pace.WAIT_S)
    return story


def calls(machine: Machine) -> int:
    """Return how many calls have reached the server."""
    return len(machine.read(SEEN).split())


def test_on_a_full_disk_calls_are_refused(machine: Machine) -> None:
    machine.announce("mcpwrap")
    story = while_full(machine, "full")
    assert_each_is_recorded_once(story)
    by_answer = Counter(story.answers.values())
    assert by_answer.keys() == {"done", REFUSED, UNRECORDED}
    print(f"{dict(by_answer)}, {len(story.records)} records")
    assert story.unrecorded() > 0
    assert audited.verified(machine)["findings"] == []
    assert machine.as_user("alice", "mcpwrap-connect probe </dev/null").err == ""


@only_in_test_all("mutation twin: shows that the test notices a call without a record")
def test_without_asking_whether_it_is_written_calls_get_through(machine: Machine) -> None:
    """The mechanism taken away."""
    refuse = "            return False\n        self._unrecorded"
    machine.announce("mcpwrap")
    with machine.patched("session/audit_log/recorder", refuse, refuse.replace("False", "True")):
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
    # A gate that cannot begin is not running; it starts when it can.
    machine.as_root(
        f"dd if=/dev/zero of={FILL} bs=4k 2>/dev/null; systemctl restart mcpwrap-gate", status=1
    )
    machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=69)
    machine.as_root(f"rm {FILL}; systemctl restart mcpwrap-gate")
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")
    assert audited.verified(machine)["findings"] == []

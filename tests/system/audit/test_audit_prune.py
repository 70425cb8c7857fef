"""Retention of the audit: old records are removed, the rest verifies, nothing else is removed."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.audit import audited
from tests.system.audit.audited import AS_GATE, AUDIT, last_run, verified
from tests.system.bed.machine import Done, Machine
from tests.system.support.tiers import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE


@contextmanager
def alone(suite: str) -> Iterator[Machine]:
    """Boot a machine whose audit has no record of another story, and no forged one."""
    with audited.booted(suite) as machine:
        yield machine


STAGE = alone

UNIT = "mcpwrap-audit-prune.service"
# As in mcpwrap(8).
DROP_IN = f"/etc/systemd/system/{UNIT}.d/keep.conf"
KEEP_NOTHING = "[Service]\nExecStart=\nExecStart=/usr/bin/mcpwrap audit prune --keep 0d\n"


def ask(machine: Machine) -> str:
    """Run a session of three records that is over when this returns; return its file."""
    with machine.session("probe") as session:
        for n in range(3):
            session.evaluate(f"result = {n}")
        file = audited.last_file(machine)
    run, _, name = file.rpartition("/")
    number = name.removesuffix("-1.jsonl")
    audited.await_event(machine, run, '"closed"', f'-{number}"')
    return file


def files(machine: Machine) -> set[str]:
    folder = machine.path(AUDIT)
    return {f"{AUDIT}/{path.relative_to(folder)}" for path in folder.rglob("*")}


def await_next_second() -> None:
    """Wait for the clock: a session that ended in this second is not older than 0 d."""
    until_s = int(time.time()) + 1
    while (left_s := until_s - time.time()) > 0:
        time.sleep(left_s)


def prune(machine: Machine, options: str = "", *, status: int = 0) -> Done:
    """Remove ended sessions, with `mcpwrap audit prune`."""
    await_next_second()
    return machine.as_root(f"mcpwrap audit prune --keep 0d {options}", status=status)


def test_what_is_over_goes_and_what_is_open_goes_on(machine: Machine) -> None:
    first = ask(machine)
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        open_file = audited.last_file(machine)
        second = ask(machine)
        before = files(machine)
        assert {first, open_file, second} < before
        dry = prune(machine, "--dry-run").out
        assert re.fullmatch(r"would remove \d+ files, 0\.0 MB, of sessions that .*\n", dry)
        assert "nothing to remove" in machine.as_root("mcpwrap audit prune --keep 1d").out
        assert files(machine) == before
        done = prune(machine).out
        assert done.partition(" before ")[0] == dry.partition(" before ")[0].replace(
            "would remove", "removed"
        )
        run = last_run(machine)
        assert files(machine) == {run, f"{run}/master.jsonl", open_file}
        assert (verified(machine)["findings"], verified(machine)["records"]) == ([], 1)
        session.evaluate("result = 2")
        after = verified(machine)
        assert (after["findings"], after["runs"], after["records"]) == ([], 1, 2)
    machine.await_idle_gate()
    assert verified(machine)["findings"] == []
    assert len(machine.look("mcpwrap audit show --json").splitlines()) == 2


def test_what_is_younger_may_not_go(machine: Machine) -> None:
    ask(machine)
    prune(machine)
    file = ask(machine)
    machine.as_root(f"mv {file} /root/kept")
    missing = [found["what"] for found in verified(machine, status=1)["findings"]]
    assert missing == ["is missing; it had at least 3 records"]
    machine.as_root(f"mv /root/kept {file}")
    assert verified(machine)["findings"] == []


def test_of_an_audit_that_was_changed_nothing_goes(machine: Machine) -> None:
    old, changed = ask(machine), ask(machine)
    machine.as_root(f"cp -a {changed} /root/copy; {AS_GATE} sed -i 2d {changed}")
    before = files(machine)
    said = prune(machine, status=1).err
    assert "the audit was changed: 1 finding; nothing was removed" in said
    machine.announce(UNIT)
    machine.announce("mcpwrap.*the audit was changed")
    machine.as_root(f"systemctl start {UNIT}", status=1)
    assert files(machine) == before
    machine.as_root(f"cat /root/copy > {changed}; systemctl reset-failed {UNIT}")
    prune(machine)
    assert not files(machine) & {old, changed}


def test_the_timer_is_enabled_and_the_unit_removes_what_it_is_told(machine: Machine) -> None:
    ask(machine)
    timer = machine.show("mcpwrap-audit-prune.timer", "UnitFileState", "ActiveState")
    assert timer == {"UnitFileState": "enabled", "ActiveState": "active"}
    before = files(machine)
    machine.as_root(f"systemctl start {UNIT}")
    said = [entry["MESSAGE"] for entry in machine.journal("-u", UNIT)]
    assert any(text.startswith("nothing to remove: no session ended") for text in said)
    assert files(machine) == before
    machine.as_root("systemctl restart mcpwrap-gate")  # the previous run is over as a whole
    ask(machine)
    machine.write(DROP_IN, KEEP_NOTHING)
    await_next_second()
    machine.as_root(f"systemctl daemon-reload; systemctl start {UNIT}")
    run = last_run(machine)
    assert files(machine) == {run, f"{run}/master.jsonl"}
    assert verified(machine)["findings"] == []
    said = [entry["MESSAGE"] for entry in machine.journal("-u", UNIT)]
    assert any(text.startswith("removed ") for text in said)
    machine.as_root(f"rm -r {DROP_IN.rpartition('/')[0]}; systemctl daemon-reload")


def test_the_gates_account_cannot_have_root_remove_what_is_elsewhere(machine: Machine) -> None:
    """Root's own program, as if all sessions were found to be old, with a link in its way."""
    file = ask(machine)
    machine.as_root("systemctl restart mcpwrap-gate")
    run, _, name = file.rpartition("/")
    epoch = run.rpartition("/")[2]
    machine.as_root(f"mkdir /srv/other && touch /srv/other/{name} /srv/other/master.jsonl")
    machine.as_root(f"{AS_GATE} sh -c 'mv {run} {AUDIT}/away && ln -s /srv/other {run}'")
    names = f"{epoch}/{name}\\n{epoch}/master.jsonl"
    remove = f"printf '{names}' | /usr/libexec/mcpwrap/mcpwrap-audit remove $(date +%s)"
    assert "0 of 2 files were" in machine.as_root(remove, status=1).err
    assert machine.look("ls /srv/other").split() == [name, "master.jsonl"]
    assert machine.look(f"ls {AUDIT}/away").split() == [name, "master.jsonl"]
    machine.as_root(f"rm {run}; mv {AUDIT}/away {run}; rm -r /srv/other")
    assert verified(machine)["findings"] == []

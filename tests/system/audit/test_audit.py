"""Tamper evidence of the audit: any change of past records is detected, whichever account makes it.

The attacks are made on a copy of a real log, by root without its key; and in the place of the gate,
with all the keys that it has in its memory at that moment.
"""

import json
import time
from datetime import UTC, datetime
from typing import Any

from mcpwrap.core.audit.records import REFUSAL_ID
from tests.shared import pace
from tests.system.audit import audited
from tests.system.audit.audited import AS_GATE, last_run, verified
from tests.system.bed.machine import Machine
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = audited.booted

# Each an edit in the folder of the last epoch; `first` and `second` are files of closed sessions.
EDITS = {
    "a word is changed": "sed -i '3s/allowed/blocked/' $first",
    "a record is deleted": "sed -i 3d $first",
    "two change places": "sed -i '2{h;d};3{G}' $first",
    "a record is doubled": "sed -i 3p $first",
    "the end is cut off": "head -n -2 $first > x && cat x > $first && rm x",
    "all is cut off": "truncate -s 0 $first",
    "one file is the other": "cp $second $first",
    "a session is dropped": "rm $first",
    "a session is dropped from the list too": (
        'name=$(head -1 $first | grep -o \'"session":"[^"]*"\'); grep -vF $name master.jsonl > x;'
        " cat x > master.jsonl; rm x $first"
    ),
    "the list is cut off": "head -n -3 master.jsonl > x && cat x > master.jsonl && rm x",
    "a file is put in": "cp $first 99-1.jsonl",
    "the run is gone": "rm -rf $PWD",
    "all is written anew": Machine.guest_command("audit_attacks", "write_anew"),
}


def await_anchor(machine: Machine, count: int) -> None:
    """Wait until a session's head has this many records, and the journal the list up to that."""
    run = last_run(machine)
    audited.await_event(machine, run, '"heads"', f"[{count},")
    give_up_at_s = time.monotonic() + pace.WAIT_S
    while True:
        lines = len(machine.read(f"{run}/master.jsonl").splitlines())
        if f"has {lines} records" in machine.look("journalctl -u mcpwrap-gate -b -o cat"):
            return
        assert time.monotonic() < give_up_at_s


def edited(machine: Machine, folder: str, edits: list[str]) -> list[list[Any]]:
    """Return the findings after each edit, which is then undone."""
    found: list[list[Any]] = machine.call("audit_attacks", "found_after", folder, edits)
    return found


def test_each_change_of_the_past_is_found(machine: Machine) -> None:
    machine.as_root("systemctl restart mcpwrap-gate")
    for person in ("alice", "bob"):
        with machine.session("probe", user=person) as session:
            for n in range(10):
                session.evaluate(f"result = {n}")
    machine.await_idle_gate()
    folder = last_run(machine)
    machine.as_root("systemctl restart mcpwrap-gate")  # or it would write on to a removed file
    before = verified(machine)
    assert before["findings"] == []
    assert before["records"] >= 20
    for name, found in zip(EDITS, edited(machine, folder, list(EDITS.values())), strict=True):
        assert found, name
        print(f"{name}: {found[0]['file']} line {found[0]['line']}: {found[0]['what']}")
    after = verified(machine)
    assert (after["findings"], after["records"]) == ([], before["records"])


def test_the_gate_has_no_key_of_the_past(machine: Machine) -> None:
    """An attacker with everything that the gate has can forge future records, but no past ones."""
    with machine.session("probe") as session:
        for n in range(10):
            session.evaluate(f"result = {n}")
        await_anchor(machine, 10)
        of_master, of_session, name = machine.look_by("audit_attacks", "all_keys")
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        child = machine.look(f"pgrep -P {gate}").strip()
        # Both hold the last key of their own chain, so the search must find it.
        keys = [*of_master, *of_session]
        of_gate, of_child = len(of_master) - 1, len(keys) - 1
        assert machine.look_by("audit_attacks", "keys_in_memory", gate, keys) == [of_gate]
        assert machine.look_by("audit_attacks", "keys_in_memory", child, keys) == [of_child]
        forge_as_the_gate(machine, of_session[-1], name)
    machine.await_idle_gate()


def forge_as_the_gate(machine: Machine, key: str, name: str) -> None:
    """Change the file of the open session by the gate's present key, in each way."""
    path = f"{last_run(machine)}/{name}"
    text = machine.read(path)
    for what, status in {"rewrite": 1, "cut off": 1, "append": 0}.items():
        command = machine.guest_command("audit_attacks", "forge_now", key, path, what)
        machine.as_root(f"{AS_GATE} {command}")
        found = verified(machine, status)["findings"]
        assert bool(found) == bool(status), what
        machine.path(path).write_text(text)


NASTY = (
    "a\nb", 'a"b\\', "a\r\x1b[31mred\x1b]0;title\x07", "a\u2028b\u2029c\x85d", "a\u202eb\u200b",
    "a\x00\x7f\x9b", "x" * 8000, "x" * 1_000_000, '"}\n{"n":0}', "\U0001f600" * 300,
)  # fmt: skip


def test_one_record_is_one_line_whatever_is_in_it(machine: Machine) -> None:
    """Tool names as an agent may choose them; each is one record, line, and entry."""
    before = verified(machine)["records"]
    with machine.session("probe") as session:
        for number, name in enumerate(NASTY):
            session.send({
                "jsonrpc": "2.0", "id": f"{name[:200]}{number}", "method": "tools/call",
                "params": {"name": name, "arguments": {"code": ""}},
            })  # fmt: skip
            session.receive()
    machine.await_idle_gate()
    after = verified(machine)
    assert (after["findings"], after["records"]) == ([], before + len(NASTY))
    for show in ("show -n 10", "show -n 10 --json", "export | tail -10"):
        lines = machine.look(f"mcpwrap audit {show}").splitlines()
        shown = [line for line in lines if "probe" in line]
        assert len(shown) == len(NASTY), show
        assert all(line.isascii() and line.isprintable() for line in shown)
    raw = machine.read(audited.last_file(machine)).split("\n")[-len(NASTY) - 1 : -1]
    assert len([json.loads(line) for line in raw]) == len(NASTY)


def test_ten_thousand_calls_replayed(machine: Machine) -> None:
    """Sealed, so only root replays them; a third is of a tool that the other policy blocks."""
    since = datetime.now(UTC).isoformat()
    assert machine.call("audit_story", "call_many", 10_000, user="alice") == 10_000
    machine.await_idle_gate()
    started = time.monotonic()
    same = replayed(machine, since, "/etc/mcpwrap/policy.yaml")
    assert (same["now_blocked"], same["now_allowed"]) == ([], [])
    assert same["judged"] == 10_000
    print(f"{same['judged']} requests in {time.monotonic() - started:.1f} s")
    other = (
        "[{name: no-even, tool: run, action: block, when: [{arg: called, matches: '[02468]$'}]}]"
    )
    machine.write("/opt/other.yaml", f"version: 1\nrules: {other}\n")
    found = replayed(machine, since, "/opt/other.yaml")
    assert [(group["rule"], group["count"]) for group in found["now_blocked"]] == [
        ("no-even", 3333)
    ]
    assert [(group["rule"], group["count"]) for group in found["now_allowed"]] == [
        ("no-drop", 3334)
    ]
    text = machine.look(f"mcpwrap policy replay --since {since} /opt/other.yaml")
    assert f"3333 of {found['judged']} would now be blocked\n  by the rule no-even: 3333\n" in text
    # An account that cannot open them gets a message.
    assert (
        "have sealed params, which only root can open"
        in machine.as_user("bob", "mcpwrap policy replay /opt/other.yaml").out
    )


def replayed(machine: Machine, since: str, policy: str) -> dict[str, Any]:
    out = machine.look(f"mcpwrap policy replay --since {since} --json {policy}")
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_journal_has_refusals_with_their_fields_and_explains_them(machine: Machine) -> None:
    with machine.session("probe", user="bob") as session:
        params = {"name": "drop", "arguments": {}}
        assert "Refused" in str(session.answer_to(session.request("tools/call", params)))
    refusals = f"_SYSTEMD_UNIT=mcpwrap-gate.service MESSAGE_ID={REFUSAL_ID} MCPWRAP_RULE=no-drop"
    (entry,) = [
        entry
        for entry in machine.journal(*refusals.split())
        if entry["MCPWRAP_AGENT"] == str(machine.uid_of("bob"))
    ]
    assert {key: entry[f"MCPWRAP_{key}"] for key in ("SERVER", "TOOL", "DECISION", "RULE")} == {
        "SERVER": "probe", "TOOL": "drop", "DECISION": "blocked", "RULE": "no-drop",
    }  # fmt: skip
    session_id = entry["MCPWRAP_SESSION"]
    show = "mcpwrap audit show --agent bob --decision blocked --json"
    (record,) = [json.loads(line) for line in machine.look(show).splitlines()]
    assert (record["session"], record["rule"]) == (session_id, "no-drop")
    said = machine.look(f"journalctl -x -b {refusals}")
    assert "Decision of the gate on a message to or from MCP server probe" in said
    assert f"In session {session_id} of UID" in said


@only_in_test_all("a long session; the fast tier has sessions of one part")
def test_a_session_goes_on_in_the_next_part(machine: Machine) -> None:
    """By the real monitor, past the real filter; with parts of 4 KiB instead of 32 MiB."""
    size = "MAX_PART_BYTES = 32 * 1024 * 1024"
    with machine.patched("core/audit/records", size, "MAX_PART_BYTES = 4096"):
        with machine.session("probe") as session:
            assert [session.evaluate(f"result = {n}") for n in range(60)] == list(range(60))
        machine.await_idle_gate()
        folder = last_run(machine)
        assert len([*machine.path(folder).glob("1-*")]) > 4
    assert verified(machine)["findings"] == []
    edits = ["rm 1-2.jsonl", "sed -i 1d 1-3.jsonl", "cat 1-2.jsonl >> 1-1.jsonl"]
    assert all(edited(machine, folder, edits))
    assert verified(machine)["findings"] == []

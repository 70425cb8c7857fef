"""The audit in a booted machine: who changes the past is found out, whoever they are.

The attacks are made on a copy of a real log, by root without its key; and in the place of the gate,
with all the keys that it has in its memory at that moment.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mcpwrap.core.audit import REFUSAL_ID
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE

SERVERS = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
agents = ["alice", "bob"]
audit = "sealed"
"""
POLICY = "version: 1\nrules: [{name: no-drop, tool: drop, action: block}]\n"
AUDIT = "/var/log/mcpwrap/audit"
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
    "all is written anew": "python3 /opt/forge.py",
}
# All of the last epoch with a key of one's own, and else as the gate would have written it.
FORGE = """
import sys, glob, os
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from mcpwrap.core.audit import decode_event, Opened, part_file
from mcpwrap.core.chain import Chain, record_of
def again(path, chain):
    lines = open(path, "rb").readlines()
    with open(path, "wb") as file:
        for line in lines:
            event = decode_event(record_of(line)) if path == "master.jsonl" else None
            if isinstance(event, Opened):
                part = part_file(event.session, 1)
                if os.path.exists(part): again(part, Chain(chain.child_key(event.session)))
            new = chain.line(record_of(line))
            file.write(new)
            chain.advance(new)
again("master.jsonl", Chain(bytes(32)))
"""
# The keys of each record of the last epoch's chains, by root's key: of the master, and of the last
# session, which is open. The last of each is what the gate holds now.
KEYS = """
import sys, glob, json, os
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
import msgspec
from mcpwrap.core.audit import Keys, Opened, decode_event, folder_of, part_file, start_of
from mcpwrap.core.chain import Chain, record_of
keys = msgspec.json.decode(open("/var/lib/mcpwrap/audit.json", "rb").read(), type=Keys)
os.chdir("/var/log/mcpwrap/audit/" + folder_of(keys.epochs))
master = Chain(start_of(keys.root_key, keys.epochs).key)
held = []
for line in open("master.jsonl", "rb"):
    event = decode_event(record_of(line))
    if isinstance(event, Opened): opened, key = event, master.child_key(event.session)
    held.append(bytes(master._key).hex())
    assert master.accepts(line)
held.append(bytes(master._key).hex())
session, of_session = Chain(key), [bytes(key).hex()]
name = part_file(opened.session, 1)
for line in open(name, "rb"):
    assert session.accepts(line)
    of_session.append(bytes(session._key).hex())
print(json.dumps([held, of_session, name]))
"""
# In the place of the gate: the last record is another, or gone, or one more is put behind it.
NOW = """
import sys
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from mcpwrap.core.chain import Chain, mac_of, record_of
key, name, what = sys.argv[1:]
lines = open(name, "rb").readlines()
last = record_of(lines[-1])
if what != "append": lines.pop()
chain = Chain(bytes.fromhex(key), len(lines), mac_of(lines[-1]))
if what == "append": last = last.replace(b'{"n":%d' % (len(lines) - 1), b'{"n":%d' % len(lines))
if what != "cut off": lines.append(chain.line(last.replace(b"allowed", b"blocked")))
with open(name, "r+b") as file:
    file.writelines(lines)
    file.truncate()
"""
# What of these keys is in the memory of this process, which root may read: proc(5), mem.
SEARCH = """
import json, re, sys
pid, *keys = sys.argv[1:]
found = []
for line in open(f"/proc/{pid}/maps"):
    first, last, flags = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
    if "r" not in flags or "[v" in line: continue
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(int(first, 16))
        content, size = b"", int(last, 16) - int(first, 16)
        try:
            while len(content) < size and (piece := memory.read(size - len(content))):
                content += piece
        except (OSError, OverflowError): pass
    found += [number for number, key in enumerate(keys) if bytes.fromhex(key) in content]
print(json.dumps(sorted(set(found))))
"""

# In turn: a call of `drop`, one of `run` with an even number, and one with an odd number.
MANY = """
import json, subprocess, sys, threading
count = int(sys.argv[1])
stub = subprocess.Popen(["mcpwrap-connect", "probe"], stdin=-1, stdout=-1)
def say():
    for n in range(count):
        turn, number = n % 3, 2 * n + (n % 3 == 2)
        arguments = {"code": "pass", "called": f"number {number}"}
        params = {"name": "run" if turn else "drop", "arguments": arguments}
        line = json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
        stub.stdin.write(line.encode() + b"\\n")
    stub.stdin.flush()
threading.Thread(target=say).start()
print(sum(bool(stub.stdout.readline()) for _ in range(count)))
stub.stdin.close()
stub.wait()
"""


@pytest.fixture(scope="module")
def audited() -> Iterator[Machine]:
    """Boot a machine with two closed sessions: of one release, as nothing here depends on it."""
    machine = installed.installed_machine("bookworm")
    try:
        for person in ("alice", "bob"):
            machine.add_person(person, groups="mcpwrap,adm")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/forge.py", FORGE)
        machine.write("/opt/search.py", SEARCH)
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("systemctl reload mcpwrap-gate")
        for person in ("alice", "bob"):
            with machine.session("probe", user=person) as session:
                for n in range(10):
                    session.evaluate(f"result = {n}")
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(audited: Machine) -> Iterator[Machine]:
    yield audited
    assert audited.unannounced() == []


def verified(machine: Machine, status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        machine.as_root("mcpwrap audit verify --json", status=status).out
    )
    return found


def last_epoch(machine: Machine) -> str:
    return machine.as_root(f"ls -d {AUDIT}/0* | tail -1").out.strip()


def await_anchor(machine: Machine, last: str) -> None:
    """Wait until the journal has how far the master chain is, and what its last record is about."""
    master = f"{last_epoch(machine)}/master.jsonl"
    count = f"$(wc -l < {master})"
    anchored = f'journalctl -u mcpwrap-gate -b -o cat | grep -q "has {count} records"'
    machine.as_root(f"until tail -1 {master} | grep -q '{last}' && {anchored}; do sleep 0.2; done")


def edited(machine: Machine, folder: str, edit: str) -> dict[str, Any]:
    """Return what is found after an edit, which is then undone."""
    files = "first=$(ls [0-9]*-1.jsonl | head -1); second=$(ls [0-9]*-1.jsonl | tail -1)"
    machine.as_root(f"rm -rf /root/copy; cp -a {folder} /root/copy; cd {folder}; {files}; {edit}")
    try:
        return verified(machine, status=1)
    finally:
        machine.as_root(f"rm -rf {folder} && cp -a /root/copy {folder}")


def test_each_change_of_the_past_is_found(machine: Machine) -> None:
    machine.await_idle_gate()
    folder = last_epoch(machine)
    machine.as_root("systemctl restart mcpwrap-gate")  # or it would go on writing to what is gone
    before = verified(machine)
    assert (before["findings"], before["records"]) == ([], 20)
    for name, edit in EDITS.items():
        found = edited(machine, folder, edit)
        assert found["findings"], name
        what = found["findings"][0]
        print(f"{name}: {what['file']} line {what['line']}: {what['what']}")
    after = verified(machine)
    assert after["findings"] == before["findings"]


def test_the_gate_has_no_key_of_the_past(machine: Machine) -> None:
    """And who has all that it has can forge what comes, but nothing that was."""
    with machine.session("probe") as session:
        for n in range(10):
            session.evaluate(f"result = {n}")
        await_anchor(machine, r"heads.*\[10,")
        of_master, of_session, name = machine.probe(KEYS)
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        child = machine.as_root(f"pgrep -P {gate}").out.strip()
        # Both hold the last key of their own chain, so the search finds what is there.
        master_keys, session_keys = " ".join(of_master), " ".join(of_session)
        in_gate = machine.as_root(f"python3 /opt/search.py {gate} {master_keys}").out
        assert json.loads(in_gate) == [len(of_master) - 1]
        in_child = machine.as_root(f"python3 /opt/search.py {child} {session_keys}").out
        assert json.loads(in_child) == [len(of_session) - 1]
        assert (
            json.loads(machine.as_root(f"python3 /opt/search.py {child} {master_keys}").out) == []
        )
        assert (
            json.loads(machine.as_root(f"python3 /opt/search.py {gate} {session_keys}").out) == []
        )
        forge_as_the_gate(machine, of_session[-1], name)
    machine.await_idle_gate()


def forge_as_the_gate(machine: Machine, key: str, name: str) -> None:
    """Change the file of the open session by the key that the gate has now, in each way."""
    as_gate = "setpriv --reuid=mcpwrap-gate --regid=mcpwrap-gate --clear-groups python3 /opt/now.py"
    machine.write("/opt/now.py", NOW)
    path = f"{last_epoch(machine)}/{name}"
    machine.as_root(f"cp {path} /root/before")
    for what, status in {"rewrite": 1, "cut off": 1, "append": 0}.items():
        machine.as_root(f"cd {last_epoch(machine)} && {as_gate} {key} {name} '{what}'")
        found = verified(machine, status)["findings"]
        assert bool(found) == bool(status), what
        machine.as_root(f"cat /root/before > {path}")


NASTY = (
    "a\nb", 'a"b\\', "a\r\x1b[31mred\x1b]0;title\x07", "a\u2028b\u2029c\x85d", "a\u202eb\u200b",
    "a\x00\x7f\x9b", "x" * 8000, "x" * 1_000_000, '"}\n{"n":0}', "\U0001f600" * 300,
)  # fmt: skip


def test_one_record_is_one_line_whatever_is_in_it(machine: Machine) -> None:
    """Names of tools as an agent likes to make them; each is one record, line, and entry."""
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
        lines = machine.as_root(f"mcpwrap audit {show}").out.splitlines()
        shown = [line for line in lines if "probe" in line]
        assert len(shown) == len(NASTY), show
        assert all(line.isascii() and line.isprintable() for line in shown)
    raw = machine.as_root(f"tail -q -n 10 $(ls -t {last_epoch(machine)}/*-1.jsonl | head -1)").out
    assert len([json.loads(line) for line in raw.splitlines()]) == len(NASTY)


def test_ten_thousand_calls_replayed(machine: Machine) -> None:
    """Sealed, so root alone replays them; a third is of a tool that the other policy blocks."""
    machine.write("/opt/many.py", MANY)
    since = machine.as_root("date +%Y-%m-%dT%H:%M:%S.%6N%:z").out.strip()
    assert machine.as_user("alice", "python3 /opt/many.py 10000").out == "10000\n"
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
    text = machine.as_root(f"mcpwrap policy replay --since {since} /opt/other.yaml").out
    assert f"3333 of {found['judged']} would now be blocked\n  by the rule no-even: 3333\n" in text
    # Who cannot open them is told so.
    assert (
        "have sealed params, which root alone can open"
        in machine.as_user("bob", "mcpwrap policy replay /opt/other.yaml").out
    )


def replayed(machine: Machine, since: str, policy: str) -> dict[str, Any]:
    out = machine.as_root(f"mcpwrap policy replay --since {since} --json {policy}").out
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
    (record,) = [json.loads(line) for line in machine.as_root(show).out.splitlines()]
    assert (record["session"], record["rule"]) == (session_id, "no-drop")
    said = machine.as_root(f"journalctl -x -b {refusals}").out
    assert "The gate says something of a message to or from MCP server probe" in said
    assert f"In session {session_id} of UID" in said


def test_a_session_goes_on_in_the_next_part(machine: Machine) -> None:
    """By the real monitor, past the real filter; with parts of 4 KiB in place of 32 MiB."""
    size = "MAX_PART_BYTES = 32 * 1024 * 1024"
    with machine.patched("core/audit", size, "MAX_PART_BYTES = 4096"):
        with machine.session("probe") as session:
            assert [session.evaluate(f"result = {n}") for n in range(60)] == list(range(60))
        machine.await_idle_gate()
        folder = last_epoch(machine)
        assert int(machine.as_root(f"ls {folder} | grep -c '^1-'").out) > 4
    assert verified(machine)["findings"] == []
    for edit in ("rm 1-2.jsonl", "sed -i 1d 1-3.jsonl", "cat 1-2.jsonl >> 1-1.jsonl"):
        assert edited(machine, folder, edit)["findings"], edit
    assert verified(machine)["findings"] == []

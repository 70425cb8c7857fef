"""Attacks on the audit, with keys and without. Runs inside the machine, as root or as the gate."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, "/usr/lib/mcpwrap/site")
sys.path.insert(0, "/usr/lib/mcpwrap")

import msgspec

from mcpwrap.core.audit.hash_chain import Chain, mac_of, record_of
from mcpwrap.core.audit.records import (
    Keys,
    SessionOpened,
    decode_event,
    folder_of,
    part_file,
    start_of,
)

AUDIT = Path("/var/log/mcpwrap/audit")
KEYS = Path("/var/lib/mcpwrap/audit.json")
MASTER = "master.jsonl"
COPY = "/root/copy"
# In the records of closed sessions in the folder of a run.
FILES = "first=$(ls [0-9]*-1.jsonl | head -1); second=$(ls [0-9]*-1.jsonl | tail -1)"


def found_after(folder: str, edits: list[str]) -> list[list[Any]]:
    """Return the findings after each edit in the folder of a run, which is then undone."""
    found = []
    _shell(f"rm -rf {COPY}; cp -a {folder} {COPY}")
    for edit in edits:
        _shell(f"cd {folder}; {FILES}; {edit}")
        verify = ["mcpwrap", "audit", "verify", "--json"]
        out = subprocess.run(verify, stdout=subprocess.PIPE).stdout
        found.append(json.loads(out)["findings"])
        _shell(f"rm -rf {folder} && cp -a {COPY} {folder}")
    return found


def _shell(command: str) -> None:
    subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL)


def write_anew() -> None:
    """Write the whole run in this folder with a key of our own, and else as the gate would."""
    _again(MASTER, Chain(bytes(32)))


def _again(path: str, chain: Chain) -> None:
    lines = Path(path).read_bytes().splitlines(keepends=True)
    with Path(path).open("wb") as file:
        for line in lines:
            event = decode_event(record_of(line)) if path == MASTER else None
            if isinstance(event, SessionOpened):
                part = part_file(event.session, 1)
                if Path(part).exists():
                    _again(part, Chain(chain.child_key(event.session)))
            new = chain.line(record_of(line))
            file.write(new)
            chain.advance(new)


def all_keys() -> tuple[list[str], list[str], str]:
    """Return the keys of each record of the list and of the last session, and its file.

    They are derived from root's key. The session is open, so the last key of each is the one that
    the gate holds now.
    """
    keys = msgspec.json.decode(KEYS.read_bytes(), type=Keys)
    folder = AUDIT / folder_of(keys.epochs)
    master = Chain(start_of(keys.root_key, keys.epochs).key)
    of_master, opened, key = [], "", b""
    for line in (folder / MASTER).read_bytes().splitlines(keepends=True):
        event = decode_event(record_of(line))
        if isinstance(event, SessionOpened):
            opened, key = event.session, bytes(master.child_key(event.session))
        of_master.append(_key_of(master, line))
    of_master.append(bytes(master._key).hex())
    session, name = Chain(bytearray(key)), part_file(opened, 1)
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    of_session = [_key_of(session, line) for line in lines]
    return of_master, [*of_session, bytes(session._key).hex()], name


def _key_of(chain: Chain, line: bytes) -> str:
    """Return the key of the line, and advance to the next."""
    key = bytes(chain._key).hex()
    if not chain.accepts(line):
        raise ValueError(line)
    return key


def forge_now(key: str, path: str, what: str) -> None:
    """Make every change that the present key allows: replace, remove or add the last record."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    last = record_of(lines[-1])
    if what != "append":
        lines.pop()
    chain = Chain(bytearray.fromhex(key), len(lines), mac_of(lines[-1]))
    if what == "append":
        last = last.replace(b'{"n":%d' % (len(lines) - 1), b'{"n":%d' % len(lines))
    if what != "cut off":
        lines.append(chain.line(last.replace(b"allowed", b"blocked")))
    with Path(path).open("r+b") as file:
        file.writelines(lines)
        file.truncate()


def keys_in_memory(pid: str, keys: list[str]) -> list[int]:
    """Return which of these keys are in the memory of a process: proc(5), mem."""
    found: set[int] = set()
    wanted = [bytes.fromhex(key) for key in keys]
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        first, last, flags = _area(line)
        if "r" in flags and "[v" not in line:
            content = _memory(pid, first, last - first)
            found |= {number for number, key in enumerate(wanted) if key in content}
    return sorted(found)


def _area(line: str) -> tuple[int, int, str]:
    area, flags = line.split()[:2]
    first, _, last = area.partition("-")
    return int(first, 16), int(last, 16), flags


def _memory(pid: str, first: int, size: int) -> bytes:
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        memory.seek(first)
        content = b""
        try:
            while len(content) < size and (piece := memory.read(size - len(content))):
                content += piece
        except (OSError, OverflowError):
            pass
    return content

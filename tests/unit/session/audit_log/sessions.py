"""Helpers for tests of recorded sessions."""

from pathlib import Path

import msgspec

from mcpwrap.core.audit import records
from mcpwrap.core.audit.hash_chain import Chain, record_of
from mcpwrap.core.audit.records import MasterEvent
from mcpwrap.session.audit_log.master_chain import MasterChain

ROOT_KEY = bytes(range(32))
EPOCH = 3


def ledger_in(folder: Path) -> MasterChain:
    return MasterChain(folder, records.start_of(ROOT_KEY, EPOCH), "1.2")


def names_in(folder: Path) -> set[str]:
    """Return the file names of the epoch."""
    return {path.name for path in (folder / records.folder_of(EPOCH)).iterdir()}


def events_in(folder: Path) -> list[MasterEvent]:
    """Return the events of the master chain; each record must be authentic."""
    chain = Chain(records.start_of(ROOT_KEY, EPOCH).key)
    text = (folder / records.folder_of(EPOCH) / records.MASTER).read_bytes()
    lines = [line for line in text.splitlines(keepends=True) if chain.accepts(line)]
    return [records.decode_event(record_of(line)) for line in lines]


def told(event: MasterEvent) -> dict[str, object]:
    """Return the fields of an event, without its times and the gate's PID."""
    said: dict[str, object] = msgspec.to_builtins(event)
    without = {"at", "up", *({"pid"} if said["what"] == "began" else ())}
    return {key: value for key, value in said.items() if key not in without}

"""Keys to verify and open an audit (the system's, or a user's own), and anchors in the journal."""

from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.core.audit.records import ANCHOR_ID, Anchor, Keys
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux.systemd.systemctl import run
from mcpwrap.machine.logs import tail
from mcpwrap.plan import paths

JOURNALCTL = "/usr/bin/journalctl"
_FIELDS = "MCPWRAP_EPOCH,MCPWRAP_COUNT,MCPWRAP_MAC,_PID"
USERS_FILE = "keys.json"
_USERS_FILE_BYTES = 64 * 1024  # a few hundred of them are used


class _Entry(msgspec.Struct, frozen=True):
    """Anchor entry of the gate in the journal; systemd.journal-fields(7) has `_SYSTEMD_UNIT`.

    Fields that begin with `_` are set by the journal itself, not by the sender.
    """

    epoch: str = msgspec.field(name="MCPWRAP_EPOCH")
    count: str = msgspec.field(name="MCPWRAP_COUNT")
    mac: str = msgspec.field(name="MCPWRAP_MAC")
    pid: str = msgspec.field(name="_PID", default="0")


def of_system() -> Keys:
    """Return the keys of the system's audit, as root's program prints them. Needs root."""
    return _decoded(run(paths.AUDIT_PROGRAM, "keys").encode(), paths.AUDIT_PROGRAM)


def of_user(folder: Path) -> Keys:
    """Return the keys of a user's own audit.

    Raises:
        UsageError: there are no keys, or they cannot be opened.
        McpwrapError: they cannot be parsed.
    """
    path = folder / USERS_FILE
    lines = tail.whole(path, _USERS_FILE_BYTES)
    if lines is None:
        raise UsageError(
            "there is no audit yet, or its keys are missing",
            where=str(path),
            fix="the audit begins with the first `mcpwrap run`",
            code="E-AUDIT-NO-KEYS",
        )
    return _decoded(b"".join(lines), str(path))


def anchors() -> list[Anchor]:
    """Return all anchors in the journal, as far back as it goes."""
    of_gate = (f"MESSAGE_ID={ANCHOR_ID}", "_SYSTEMD_UNIT=mcpwrap-gate.service")
    text = run(JOURNALCTL, "-q", "-o", "json", f"--output-fields={_FIELDS}", *of_gate)
    found = []
    for line in text.splitlines():
        # An attacker who controls the gate can write anything here, but cannot remove an entry.
        with suppress(msgspec.MsgspecError, ValueError):
            entry = msgspec.json.decode(line, type=_Entry)
            epoch, count, pid = int(entry.epoch), int(entry.count), int(entry.pid)
            found.append(Anchor(epoch, count, entry.mac, pid))
    return found


def _decoded(text: bytes, where: str) -> Keys:
    try:
        return msgspec.json.decode(text, type=Keys)
    except msgspec.MsgspecError:
        # Without the parser's message, which may quote part of the key.
        raise McpwrapError(
            "the keys of the audit cannot be parsed",
            where=where,
            fix="restore them from a backup",
            code="E-AUDIT-KEYS-DAMAGED",
        ) from None

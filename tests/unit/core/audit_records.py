"""Records, params sealed to root, and texts that are hard to print."""

from base64 import b64encode
from datetime import UTC, datetime

import msgspec
from nacl.public import PublicKey, SealedBox

from mcpwrap.core.audit.params import unsealing_box
from mcpwrap.core.audit.records import Record, start_of
from tests.unit.core.audits import ROOT_KEY, keys

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
NASTY = [
    'quotes " and \\ backslashes',
    "new\nlines\r\n\x0b\x0c\x1c\x85",
    "\u2028 and \u2029 begin a line for some",
    "\x1b[2J\x7f\x00\x9b",
    "\u202e turned round \u2066",
    "\U0001f600 and \ud7ff",
    '","mac":"00"}\n{"n":1',
]
OPENS = unsealing_box(keys())


def sealed(text: bytes, key: bytes = ROOT_KEY) -> str:
    return b64encode(SealedBox(PublicKey(start_of(key, 1).box)).encrypt(text)).decode()


def record(**fields: object) -> Record:
    values: dict[str, object] = {
        "n": 3,
        "at": NOW,
        "server": "sqlite",
        "uid": 1000,
        "session": "12-7",
        "sender": "agent",
        "decision": "blocked",
        "method": "tools/call",
        "target": "read_query",
        **fields,
    }
    return msgspec.convert(values, Record)

"""Audit record types: decisions of a session, and events of the master chain over all sessions.

Each run of the gate is an epoch, and has a folder: `master.jsonl`, and `SESSION-PART.jsonl` for
each session, in parts of a bounded size. One record is one line of JSON in ASCII.

A full disk can leave an unfinished line, which is not a record. After it the file has a `!`, a
newline, and a record whose `torn` is the number of bytes between the previous record and that `!`:
of one or several unfinished lines. An unfinished line at the end of a file is the last attempt.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec
from nacl.public import PrivateKey

from mcpwrap.core.audit.hash_chain import KEY_BYTES, derived
from mcpwrap.core.gate.executed_code import RunReport, SubmittedCode

_EPOCH_BYTES, _BOOT_BYTES = 8, 16
_HEAD_BYTES = _EPOCH_BYTES + _BOOT_BYTES
NOTHING = msgspec.Raw(b"")
MASTER = "master.jsonl"
MAX_PART_BYTES = 32 * 1024 * 1024
MAX_FILE_BYTES = MAX_PART_BYTES + 1024 * 1024  # with the record that filled it, and a reserve
MAX_MASTER_BYTES = 64 * 1024**3  # a hundred sessions that are always active write 45 MB a day
# Of the number of a session, and of its parts, so that no name is too long for a file system.
MAX_NUMBER_DIGITS, MAX_PART_DIGITS = 10, 5
ANCHOR_ID = "fde583b95f6c495489486b782a81a44c"  # MESSAGE_ID of systemd.journal-fields(7)
APPROVAL_ID = "8d6f7c52b1604e2f9ad3f1c0a9ee4c1b"
PINS_ID = "8a3a4252c7364754b6612457be044c98"
REFUSAL_ID = "c4f6220607074209b8ed4c6fdba56c4c"
MAX_TEXT_CHARS = 256  # of a name from an agent or server; a longer one is cut


@dataclass(frozen=True, slots=True)
class Start:
    """Keys and ids of one epoch, from root to the gate: `/run/mcpwrap/audit/start`, in this order.

    The file is binary, not text, so that parsing leaves no copy of the key in the gate's memory.
    """

    epoch: int  # 8 bytes, big-endian
    boot: bytes  # 16 bytes: id of the machine's boot (random(4), boot_id)
    digest_key: bytes  # 32 bytes, for hashes of params: the same in all epochs
    box: bytes  # 32 bytes: the public key to which params are sealed (libsodium crypto_box_seal)
    key: bytearray  # 32 bytes, of the first record of the master chain


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Audit keys and counters, known to root alone: `mcpwrap-audit keys` prints them."""

    root_key: bytes
    epochs: int  # number of the last epoch
    is_begun: bool = True  # False if the gate could not write the last epoch: it may lack a folder
    first_epoch: int = 1  # earlier epochs were removed as a whole
    removed_before: float = 0.0  # files of sessions that ended before this time may be removed


class Anchor(msgspec.Struct, frozen=True):
    """Anchor of the master chain in the journal: its number of records, and the MAC of the last."""

    epoch: int
    count: int
    mac: str
    pid: int = 0  # of the process that sent it, as the journal recorded it


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision. Times are seconds since 1970; `us` is microseconds from arrival to decision."""

    n: int  # the first of a session is 0
    at: float
    server: str
    uid: int
    session: str
    via: str = ""  # the session of a hub for which it was opened
    project: str = ""  # the agent's folder that the server sees; "" if it sees none
    sender: str  # agent or server; gate, of a preview
    decision: str
    method: str = ""
    target: str = ""  # a tool, a URI or a prompt
    id: int | str | None = None
    era: str = ""
    rule: str = ""
    why: str = ""
    watched: tuple[str, ...] = ()
    policy: str = ""  # its digest
    size: int = 0  # of the message, in bytes
    us: int = 0
    approval: str = ""  # id of the approval question
    shown: str = ""  # SHA-256 of the document that was shown
    by: str = ""  # the approver, and the channel
    # Params of a request, in one of three forms: see `Keep`. Large ones are always hashed.
    hash: str = ""
    sealed: str = ""  # Base64
    plain: msgspec.Raw = NOTHING
    code: SubmittedCode | None = None  # of a call to a server that executes code
    run: RunReport | None = None  # of the response to one
    # Since the last record, on a full disk.
    torn: int = 0  # bytes of unfinished lines
    unrecorded: int = 0  # messages that were refused because they could not be recorded
    left_out: int = 0  # refused messages that were not recorded: too many at a time


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what"):
    n: int = 0
    at: float = 0.0
    up: float = 0.0  # the same moment by a clock that cannot be set: seconds since the boot
    torn: int = 0


class EpochBegan(_Event, frozen=True, kw_only=True, tag="began"):
    """Start of the gate."""

    epoch: int
    boot: str  # /proc/sys/kernel/random/boot_id
    version: str
    pid: int = 0  # of the process that writes anchors; 0 in records of older versions


class PolicyInForce(_Event, frozen=True, kw_only=True, tag="policy"):
    """New policy, in force from this record on."""

    digest: str


class SessionOpened(_Event, frozen=True, kw_only=True, tag="opened"):
    """Start of a session. Its chain's key is `Chain.child_key` of its id, before this record."""

    session: str
    server: str
    uid: int
    pid: int  # of the agent's stub


class ChainHead(msgspec.Struct, frozen=True, array_like=True):
    """Head of a session's chain: its number of records, and the MAC of the last."""

    count: int
    mac: str


class SessionHeads(_Event, frozen=True, kw_only=True, tag="heads"):
    """Chain heads of the sessions that have written records since the last event of this type."""

    heads: dict[str, ChainHead]


class SessionPart(_Event, frozen=True, kw_only=True, tag="part"):
    """Continuation of a session in another file."""

    session: str
    part: int  # the number of the new file; the first is 1
    head: ChainHead


class SessionClosed(_Event, frozen=True, kw_only=True, tag="closed"):
    """End of a session."""

    session: str
    head: ChainHead


AnswerOutcome = Literal["approved", "denied", "refused"]


class ApprovalAnswered(_Event, frozen=True, kw_only=True, tag="answered"):
    """Answer to an approval question, or a refused attempt to answer."""

    outcome: AnswerOutcome
    approval: str
    uid: int  # account that connected, and its process
    pid: int
    channel: str
    proof: str = ""
    user: str = ""  # account whose password was given
    server: str = ""
    agent_uid: int = -1
    target: str = ""
    shown: str = ""  # SHA-256 of the document that was shown
    why: str = ""  # reason of a refusal


PinsOutcome = Literal["first use", "accepted", "rejected", "reset", "recovered", "in force"]


class PinsChanged(_Event, frozen=True, kw_only=True, tag="pins"):
    """Change of the pins of a server, recorded before it is in force.

    One that a killed gate has not completed is recorded once more, as recovered. At each start of
    the gate the pins in force are recorded, with two equal digests.
    """

    outcome: PinsOutcome
    server: str
    before: str  # SHA-256 of the pins, which is the first line of their file; "" without a file
    after: str
    names: tuple[str, ...] = ()  # of the first definitions
    count: int = 0  # of all
    approval: str = ""  # id of the question
    by: str = ""  # the approver, and the channel


RuleOutcome = Literal[
    "saved", "not stored", "revoked", "used up", "expired", "session over", "server removed"
]


class ApprovalRuleChanged(_Event, frozen=True, kw_only=True, tag="rule"):
    """Approval rule that was saved, recorded before it is in force; or that is in force no more.

    It has no value of an argument.
    """

    outcome: RuleOutcome
    rule: str  # its id
    server: str
    agent_uid: int
    method: str
    target: str
    approval: str = ""  # id of the question that was approved
    by: str = ""  # who saved or revoked it, and the channel; "" if it ended by itself
    answers: tuple[str, ...] = ()  # policy rules whose questions it answers
    ticked: tuple[str, ...] = ()  # names of the arguments that may differ
    shown: str = ""  # SHA-256 of the approved document
    until: float = 0.0  # 0: not bounded by time
    times: int = 0  # calls that are left; 0: not bounded by count
    session: str = ""  # the only one; "": any


class EpochEnded(_Event, frozen=True, kw_only=True, tag="ended"):
    """Orderly stop of the gate; a gate that was killed does not write this event."""


MasterEvent = (
    EpochBegan
    | PolicyInForce
    | SessionOpened
    | SessionHeads
    | SessionPart
    | SessionClosed
    | ApprovalAnswered
    | ApprovalRuleChanged
    | PinsChanged
    | EpochEnded
)


def start_of(root_key: bytes, epoch: int, boot: bytes = bytes(_BOOT_BYTES)) -> Start:
    """Return keys and ids for an epoch of the gate. `root_key` is known to root alone."""
    return Start(
        epoch,
        boot,
        derived(root_key, "digest"),
        bytes(box_of(root_key).public_key),
        bytearray(derived(root_key, f"epoch {epoch}")),
    )


def encode_start(start: Start) -> bytes:
    """Return the content of the file."""
    head = start.epoch.to_bytes(_EPOCH_BYTES) + start.boot
    return head + start.digest_key + start.box + start.key


def decode_start(file: bytearray) -> Start:
    """Return the keys and ids in the file, and overwrite `file` with zeros.

    Raises:
        ValueError: the file has the wrong length.
    """
    if len(file) != _HEAD_BYTES + 3 * KEY_BYTES:
        raise ValueError(f"{len(file)} bytes")
    digest_key, box, key = (
        file[at : at + KEY_BYTES] for at in range(_HEAD_BYTES, len(file), KEY_BYTES)
    )
    start = Start(
        int.from_bytes(file[:_EPOCH_BYTES]),
        bytes(file[_EPOCH_BYTES:_HEAD_BYTES]),
        bytes(digest_key),
        bytes(box),
        key,
    )
    file[:] = bytes(len(file))
    return start


def box_of(root_key: bytes) -> PrivateKey:
    """Return the private key that unseals params."""
    return PrivateKey(derived(root_key, "box"))


def folder_of(epoch: int) -> str:
    """Return the folder name of an epoch."""
    return f"{epoch:08}"


def part_file(session: str, part: int) -> str:
    """Return the file name of a session part; `session` is EPOCH-NUMBER."""
    return f"{session.partition('-')[2]}-{part}.jsonl"


def encode(record: Record | MasterEvent) -> bytes:
    """Return a record as a JSON object in ASCII, on one line."""
    encoded = msgspec.json.encode(record)
    if encoded.isascii():
        return encoded
    # Not by a codec, which Python would load from a file: a session's process may not open files.
    return "".join(map(_escaped, encoded.decode())).encode()


def _escaped(character: str) -> str:
    """Return a character of JSON as ASCII: RFC 8259, section 7."""
    code = ord(character)
    if code < 0x80:
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def decode_record(line: bytes) -> Record:
    """Return a session's record.

    Raises:
        msgspec.MsgspecError: it is not such a record.
    """
    return _RECORD.decode(line)


def decode_event(line: bytes) -> MasterEvent:
    """Return a record of the master chain.

    Raises:
        msgspec.MsgspecError: it is not such a record.
    """
    return _EVENT.decode(line)


def cut(text: str) -> str:
    """Return a text from an agent or server, cut to `MAX_TEXT_CHARS`."""
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}..."


_RECORD: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)
_EVENT: msgspec.json.Decoder[MasterEvent] = msgspec.json.Decoder(MasterEvent)

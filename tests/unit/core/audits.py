"""An honest gate's audit, in memory, for tests that then tamper with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path

from mcpwrap.core.audit import records
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import (
    Anchor,
    ChainHead,
    Keys,
    MasterEvent,
    Record,
    folder_of,
    part_file,
    start_of,
)
from mcpwrap.core.audit.verify import EpochFolder, check
from mcpwrap.core.audit.verify_pins import PinsFileState

ROOT_KEY = bytes(range(32))
T0 = 1_795_000_000.0
Files = dict[str, bytes]  # by EPOCH/NAME


@dataclass
class Session:
    """Open session, as in the gate's process that writes its records."""

    id: str
    chain: Chain
    server: str
    uid: int
    part: int = 1

    def head(self) -> ChainHead:
        return ChainHead(self.chain.count, self.chain.mac.hex())


@dataclass
class Gate:
    """Run of the gate, which writes into `files`."""

    files: Files
    epoch: int = 1
    root_key: bytes = ROOT_KEY
    anchors: list[Anchor] = field(default_factory=list)
    now: float = T0
    pid: int = 0

    def __post_init__(self) -> None:
        self.now += 10_000 * (self.epoch - 1)
        self.chain = Chain(start_of(self.root_key, self.epoch).key)
        self._numbers = count(1)
        began = records.EpochBegan(
            n=0, at=self.now, epoch=self.epoch, boot="b", version="0.1.0", pid=self.pid
        )
        self.write(began)
        self.anchor()

    def path(self, name: str) -> str:
        return f"{folder_of(self.epoch)}/{name}"

    def at(self) -> float:
        self.now += 1
        return self.now

    def append(self, name: str, what: bytes) -> None:
        self.files[self.path(name)] = self.files.get(self.path(name), b"") + what

    def write(self, event: MasterEvent) -> None:
        """Write the next record of the master chain."""
        line = self.chain.line(records.encode(event))
        self.append(records.MASTER, line)
        self.chain.advance(line)

    def anchor(self) -> None:
        self.anchors.append(Anchor(self.epoch, self.chain.count, self.chain.mac.hex(), self.pid))

    def open(self, server: str = "sqlite", uid: int = 1000) -> Session:
        name = f"{self.epoch}-{next(self._numbers)}"
        session = Session(name, Chain(self.chain.child_key(name)), server, uid)
        self.write(
            records.SessionOpened(
                n=self.chain.count, session=name, server=server, uid=uid, pid=7, at=self.at()
            )
        )
        self.append(part_file(name, 1), b"")
        return session

    def line(self, session: Session, torn: int = 0, **fields: object) -> bytes:
        """Return the next line of a session."""
        values = {
            "n": session.chain.count,
            "at": self.at(),
            "server": session.server,
            "uid": session.uid,
            "session": session.id,
            "sender": "agent",
            "decision": "allowed",
            "method": "tools/call",
            "target": "read_query",
            "id": session.chain.count,
            "torn": torn,
            **fields,
        }
        return session.chain.line(records.encode(Record(**values)))  # type: ignore[arg-type]

    def record(self, session: Session, torn: int = 0, times: int = 1, **fields: object) -> None:
        for _ in range(times):
            line = self.line(session, torn, **fields)
            self.append(part_file(session.id, session.part), line)
            session.chain.advance(line)

    def heads(self, *sessions: Session) -> None:
        told = {session.id: session.head() for session in sessions}
        self.write(records.SessionHeads(n=self.chain.count, heads=told, at=self.at()))

    def next_part(self, session: Session) -> None:
        session.part += 1
        head, number = session.head(), self.chain.count
        self.write(
            records.SessionPart(
                n=number, session=session.id, part=session.part, head=head, at=self.at()
            )
        )
        self.append(part_file(session.id, session.part), b"")

    def close(self, session: Session, head: ChainHead | None = None) -> None:
        head = head or session.head()
        self.write(
            records.SessionClosed(n=self.chain.count, session=session.id, head=head, at=self.at())
        )

    def answered(self, outcome: records.AnswerOutcome = "approved") -> None:
        event = records.ApprovalAnswered(
            n=self.chain.count,
            at=self.at(),
            outcome=outcome,
            approval="a1",
            uid=1001,
            pid=7,
            channel="command",
        )
        self.write(event)

    def rule_saved(self) -> None:
        event = records.ApprovalRuleChanged(
            n=self.chain.count, at=self.at(), outcome="saved", rule="7f3a", server="git",
            agent_uid=1000, method="tools/call", target="delete", ticked=("id",), times=5,
        )  # fmt: skip
        self.write(event)

    def end(self) -> None:
        self.write(records.EpochEnded(n=self.chain.count, at=self.at()))
        self.anchor()


def keys(epochs: int = 1, **others: float) -> Keys:
    return Keys(root_key=ROOT_KEY, epochs=epochs, **others)  # type: ignore[arg-type]


def checked(
    files: Files,
    anchors: Iterable[Anchor] = (),
    known: Keys | None = None,
    dropped: str = "",
    now: float = T0,
    pins: Mapping[str, PinsFileState] | None = None,
) -> AuditReport:
    """Verify the audit in `files`; `dropped` is an epoch whose folder is missing too."""
    known = known or keys()
    names: dict[str, set[str]] = {}
    for path in files:
        folder, _, name = path.partition("/")
        names.setdefault(folder, set()).add(name)
    folders = {
        folder: EpochFolder(frozenset(within), partial(read, files, folder))
        for folder, within in names.items()
        if folder != dropped
    }
    return check(known, folders, anchors, now, pins)


def read(files: Files, folder: str, name: str) -> BytesIO | None:
    path = f"{folder}/{name}"
    return BytesIO(files[path]) if path in files else None


def put(folder: Path, files: Files) -> None:
    """Write the files of an audit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)

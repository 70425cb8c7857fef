"""The monitor's pins, with real processes and files, sessions that offer, and persons."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.pin_packets import DefinitionsOffered, OfferPageRequest
from mcpwrap.as_gate.pins import files, questions
from mcpwrap.core.audit.records import PinsChanged, start_of
from mcpwrap.core.audit.verify import check
from mcpwrap.core.pins import acceptance, pins_report, pins_view
from mcpwrap.core.pins.acceptance import OfferedDefinitions
from mcpwrap.core.pins.definitions import Kind
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.wire.approval_socket import (
    DecideRequest,
    FromApprover,
    PinsReply,
    PinsRequest,
    Verdict,
)
from mcpwrap.core.wire.server_files import AccessList, Pins
from mcpwrap.linux.unix_socket import fd_passing, memfd
from mcpwrap.machine.logs import audit_files, pins_files
from mcpwrap.session.audit_log.master_chain import MasterChain
from tests.unit.as_gate.approving_world import Session, Somebody, World, Written
from tests.unit.as_gate.hub_world import ADMISSIONS, ALICE
from tests.unit.core.audits import ROOT_KEY, keys


class ChainedAudit(Written):
    """Audit with a real master chain, of the pins only."""

    def __init__(self, folder: Path, epoch: int) -> None:
        super().__init__()
        self._chain = MasterChain(folder, start_of(ROOT_KEY, epoch), "0.1.0")

    @property
    def path(self) -> str:
        return str(self._chain.path)

    def pins_changed(self, changed: PinsChanged) -> bool:
        if not self.is_broken:
            self._chain.pins_changed(changed)
        return super().pins_changed(changed)


def tool(name: str, description: str = "", **others: Json) -> Json:
    return {"name": name, "description": description, **others}


def page(
    *entries: Json, kind: Kind = "tool", is_first: bool = True, is_last: bool = True
) -> OfferedDefinitions:
    """Return a page of tools, or of other entries with a name."""
    names = [str(entry["name"]) for entry in entries if isinstance(entry, dict)]
    texts = [msgspec.Raw(encode_sorted(entry)) for entry in entries]
    return OfferedDefinitions(
        kind=kind,
        is_first_page=is_first,
        is_last_page=is_last,
        version="1.2.0",
        entries=tuple(zip(names, texts, strict=True)),
    )


class PinsWorld(World):
    """Monitor of one run of the gate, without its loop."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        epoch: int = 1,
        mode: Pins = "first-use",
    ) -> None:
        self.folder, self.audit_folder = tmp_path / "pins", tmp_path / "audit"
        for folder in (self.folder, self.audit_folder):
            folder.mkdir(exist_ok=True)
        monkeypatch.setattr(files, "FOLDER", self.folder)
        monkeypatch.setattr(pins_files, "FOLDER", self.folder)
        self.epoch = epoch
        run = tmp_path / str(epoch)
        run.mkdir()
        super().__init__(run, monkeypatch, ChainedAudit(self.audit_folder, epoch))
        self.now_s = 100.0
        self.set_mode(mode)

    def set_mode(self, mode: Pins) -> None:
        git = msgspec.structs.replace(ADMISSIONS.by_server["git"], pins=mode)
        self.admissions.admissions = AccessList(by_server={**ADMISSIONS.by_server, "git": git})
        self.pins.follow(self.admissions.admissions)

    def alice(self, pid: int = 1) -> Session:
        return self.session(pid, ALICE, "git")

    def start_due(self) -> list[int]:
        """Start the processes that are due; return those that run."""
        self.pins.catch_up(self.now_s)
        return list(self.pins._jobs._by_pid)

    def work(self) -> None:
        """Do all that is due, wait for the ends of processes, and until people are asked."""
        while running := self.start_due():
            for pid in running:
                os.waitpid(pid, 0)
                self.pins.ended(pid)
        self.now_s += questions.SETTLE_S
        self.pins.catch_up(self.now_s)

    def give(self, session: Session, content: bytes, *, waits: bool = True) -> None:
        """Give a page to the monitor, as the session's process does."""
        self.pins.handle(session.child, OfferPageRequest())
        *_, (_, fds) = received(session)
        os.write(fds[0], content)
        fd_passing.close_all(fds)
        self.pins.handle(session.child, DefinitionsOffered(waits=waits))

    def offer(
        self, session: Session, offered: OfferedDefinitions, *, waits: bool = True
    ) -> PinsView | str | None:
        """Offer definitions; return the answer: pins, a reason, or nothing."""
        self.give(session, acceptance.encode_offer(offered), waits=waits)
        self.work()
        return next((view for kind, view in self.told(session) if kind == "U"), None)

    def told(self, session: Session) -> list[tuple[str, PinsView | str]]:
        """Return what a session received about pins: the kind of the packet, and the pins."""
        told = list[tuple[str, PinsView | str]]()
        for packet, fds in received(session):
            if fds:
                view: PinsView | str = pins_view.decode(memfd.read_all(fds[0]))
                fd_passing.close_all(fds)
            else:
                view = packet[1:].decode()
            told.append((packet[:1].decode(), view))
        return told

    def decide(self, person: Somebody, verdict: Verdict, **others: object) -> str:
        """Have a person decide on what is listed, by its digest; return the reply."""
        (pending,) = person.listed()
        decide = DecideRequest(id=pending.id, digest=pending.digest, verdict=verdict)
        return self.reply(person, msgspec.structs.replace(decide, **others))

    def reply(self, person: Somebody, packet: FromApprover) -> str:
        """Send a packet, and return the one reply, which may follow when the work is done."""
        answers = person.says(packet)
        self.work()
        (answer,) = answers + person.hears()
        return str(getattr(answer, "why", "") or getattr(answer, "text", ""))

    def report(self, person: Somebody) -> PinsReport:
        assert person.says(PinsRequest("git")) == []
        self.work()
        [answer] = person.hears()
        assert isinstance(answer, PinsReply)
        report = pins_report.decode(memfd.read_all(person.fds.pop()))
        return msgspec.structs.replace(report, may=answer.may)

    def accepted(self) -> dict[str, int]:
        """Return the number of accepted definitions of each name, as the file has them."""
        pins, _ = files.PinsFiles("git").read()
        names = [one.name for one in pins.accepted]
        return {name: names.count(name) for name in names}

    def verified(self) -> list[str]:
        """Return the findings of `audit verify`."""
        folders = audit_files.to_check(self.audit_folder)
        report = check(keys(self.epoch), folders, [], 0.0, pins_files.states())
        return [f"{one.file}: {one.what}" for one in report.findings]


def received(session: Session) -> list[tuple[bytes, list[int]]]:
    """Return the packets on a session's channel."""
    got = list[tuple[bytes, list[int]]]()
    while True:
        try:
            got.append(
                fd_passing.receive(
                    session.to_monitor._socket, packets.MAX_BYTES, socket.MSG_DONTWAIT
                )
            )
        except BlockingIOError:
            return got


@contextmanager
def gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int = 1, mode: Pins = "first-use"
) -> Iterator[PinsWorld]:
    """Yield one run of the gate."""
    world = PinsWorld(tmp_path, monkeypatch, epoch, mode)
    try:
        yield world
    finally:
        world.pins.questions.keep_only(set())
        world.close()

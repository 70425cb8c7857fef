"""Scripted gate on its own socket: shows what a test gives it, and records the answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.core.approval import document
from mcpwrap.core.approval.approval_rule import ApprovalRule, TickedArgument
from mcpwrap.core.approval.document import Question
from mcpwrap.core.pins import pin_question, pins_report
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    FromApprover,
    ListRequest,
    May,
    Paused,
    Pending,
    PinsReply,
    PinsRequest,
    RefusedReply,
    ResetPinsRequest,
    RevokeRequest,
    RulesReply,
    RulesRequest,
    SavedRulesReply,
    SavedRulesRequest,
    ShowRequest,
    ToApprover,
    WatchRequest,
)
from mcpwrap.gate_client import approvals
from mcpwrap.linux.unix_socket import fd_passing, memfd

NOW = 1_700_000_000.0


def question(**arguments: Json) -> Question:
    return Question(
        agent_uid=0,
        server="sqlite",
        method="tools/call",
        target="write_query",
        definition="d1",
        params={"name": "write_query", "arguments": arguments},
        policy="p1",
    )


def saved_rule(of: Question, name: str, id_: str, **fields: object) -> ApprovalRule:
    """Return an approval as a rule, with one argument ticked; `fields` are not as in most."""
    made = ApprovalRule(
        id=id_,
        agent_uid=of.agent_uid,
        server=of.server,
        method=of.method,
        target=of.target,
        answers=("no-delete",),
        approved=document.document(of).decode(),
        ticked=(TickedArgument(name),),
        by="bob (command)",
        made_at=NOW,
        until=0.0,
        times=20,
        session="",
    )
    return replace(made, **fields)


class ScriptedGate:
    """Scripted gate at `path`. `decided` has the verdicts it received; `answer` is its reply."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decided: list[DecideRequest] = []
        self.answer: DoneReply | RefusedReply = DoneReply(text="approved")
        self.paused: list[Paused] = []
        self.rules: list[ApprovalRule] = []
        self.reset: list[str] = []  # servers
        self.damaged: set[str] = set()
        self.reports: dict[str, PinsReport] = {}  # by server
        self.policies: dict[str, Policy] = {}  # by server
        self.hidden: set[str] = set()  # listed, and gone when its document is requested
        self.watched = threading.Event()
        self._pending: dict[str, tuple[Pending, bytes, bytes | None]] = {}
        self._watchers: list[socket.socket] = []
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listen()

    def _listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def put(
        self,
        id_: str,
        asked: Question,
        *,
        before: Question | None = None,
        may: May = "yes",
        may_save: May = "yes",
        rule: str = "no-delete",
        message: str = "Think.",
        expires_at: float = NOW + 300,
        asking: AskingRules = AskingRules(),  # noqa: B008  # it is frozen
    ) -> Pending:
        """Add a pending question, and send the list to the watchers."""
        shown = document.document(asked)
        pending = Pending(
            id=id_,
            digest=document.digest(shown),
            size=len(shown),
            agent_uid=asked.agent_uid,
            server=asked.server,
            session="1-2",
            method=asked.method,
            target=asked.target,
            rule=rule,
            message=message,
            asked_at=NOW,
            expires_at=expires_at,
            times=1,
            waiting=1,
            may=may,
            may_save=may_save,
            asking=asking.rules or (rule,),
            deciding=asking.deciding,
            exact=asking.exact,
        )
        with self._lock:
            last = document.document(before) if before else None
            self._pending[id_] = (pending, shown, last)
        self.tell()
        return pending

    def report(self, report: PinsReport, *, may: May = "yes", id_: str = "9c1d") -> PinsReport:
        """Have a report on the pins of a server, with its question if something is held back."""
        if report.changes.changes or report.changes.rejected:
            shown = pin_question.document_of(report.server, 0, report.changes)
            report = replace(report, question=id_, digest=document.digest(shown), may=may)
            asked = document.read(shown)
            self.put(id_, asked, may=may, rule="", message="definitions changed", expires_at=0.0)
        self.reports[report.server] = report
        return report

    def take(self, id_: str) -> None:
        """Remove a question, and send the list to the watchers."""
        with self._lock:
            del self._pending[id_]
        self.tell()

    def tell(self) -> None:
        """Send the list to the watchers."""
        with self._lock:
            for connection in self._watchers:
                self._list(connection)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Reply to nothing meanwhile."""
        with self._lock:
            yield

    def hang_up(self) -> None:
        """End, as a gate that is stopped."""
        self._listener.close()
        self.path.unlink(missing_ok=True)
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._watchers.clear()

    def come_back(self) -> None:
        """Listen again, with an empty list."""
        self._pending.clear()
        self.paused.clear()
        self.watched.clear()
        self._listen()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while packet := connection.recv(approval_socket.MAX_BYTES):
                with self._lock:
                    self._reply(connection, approval_socket.decode_question(packet))

    def _reply(self, connection: socket.socket, asked: FromApprover) -> None:
        match asked:
            case ListRequest():
                self._list(connection)
            case WatchRequest():
                self._watchers.append(connection)
                self._list(connection)
                self.watched.set()
            case ShowRequest(id_) if id_ in self._pending.keys() - self.hidden:
                self._show(connection, id_)
            case DecideRequest():
                self.decided.append(asked)
                _send(connection, self.answer)
            case SavedRulesRequest():
                fd = memfd.sealed("test", msgspec.json.encode(self.rules))
                fd_passing.send(connection, approval_socket.encode(SavedRulesReply()), [fd])
                fd_passing.close_all([fd])
            case RevokeRequest(id_) if id_ in {rule.id for rule in self.rules}:
                self.rules = [rule for rule in self.rules if rule.id != id_]
                _send(connection, DoneReply(text=f"rule {id_} is revoked"))
            case _:
                self._reply_on_server(connection, asked)

    def _reply_on_server(self, connection: socket.socket, asked: FromApprover) -> None:
        match asked:
            case PinsRequest(server) if server in self.damaged:
                why = "its pins are damaged [E-PINS-DAMAGED]"
                _send(connection, RefusedReply(code="gone", why=why))
            case PinsRequest(server) if server in self.reports:
                self._report(connection, self.reports[server])
            case RulesRequest(server) if server in self.policies:
                fd = memfd.sealed("test", rules.encode(self.policies[server]))
                fd_passing.send(connection, approval_socket.encode(RulesReply()), [fd])
                fd_passing.close_all([fd])
            case RulesRequest("broken"):
                why = "the policy has errors [E-SESSION-POLICY]"
                _send(connection, RefusedReply(code="gone", why=why))
            case ResetPinsRequest(server) if server in self.reports:
                self.reset.append(server)
                _send(connection, self.answer)
            case _:
                _send(connection, RefusedReply(code="gone", why="no such request waits"))

    def _list(self, connection: socket.socket) -> None:
        waiting: list[ToApprover] = [pending for pending, _, _ in self._pending.values()]
        for one in [*waiting, *self.paused, EndOfList()]:
            _send(connection, one)

    def _show(self, connection: socket.socket, id_: str) -> None:
        pending, shown, before = self._pending[id_]
        fds = [memfd.sealed("test", text) for text in (shown, before) if text is not None]
        packet = approval_socket.encode(DocumentReply(id=id_, digest=pending.digest))
        fd_passing.send(connection, packet, fds)
        fd_passing.close_all(fds)

    def _report(self, connection: socket.socket, report: PinsReport) -> None:
        fd = memfd.sealed("test", pins_report.encode(report))
        fd_passing.send(connection, approval_socket.encode(PinsReply(may=report.may)), [fd])
        fd_passing.close_all([fd])


def _send(connection: socket.socket, packet: ToApprover) -> None:
    with suppress(OSError):
        connection.send(approval_socket.encode(packet))


@contextmanager
def scripted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedGate]:
    """Point the commands to a scripted gate."""
    gate = ScriptedGate(folder / "approve.sock")
    monkeypatch.setattr(approvals, "PATH", str(gate.path))
    try:
        yield gate
    finally:
        gate.hang_up()

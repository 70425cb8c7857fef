"""Request handler of `approve.sock`, in the monitor. `decisions` carries out decisions."""

import os
import time
from functools import partial

import msgspec
from msgspec.structs import replace

from mcpwrap.as_gate.approvals.authentication import AuthResult, account_of, by_password
from mcpwrap.as_gate.approvals.connections import ApproverConnection
from mcpwrap.as_gate.approvals.decisions import DecisionExecutor, not_pending
from mcpwrap.as_gate.pins.questions import NO_AGENT, PinQuestion
from mcpwrap.as_gate.pins.tasks import RefusalCode
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.approval.authorization import sees
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire.approval_socket import (
    ApprovalProtocolError,
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    FromApprover,
    ListRequest,
    LoginRequest,
    Paused,
    PinsReply,
    PinsRequest,
    RefusedReply,
    ResetPinsRequest,
    RevokeRequest,
    RulesReply,
    RulesRequest,
    SavedRulesReply,
    SavedRulesRequest,
    Scope,
    ShowRequest,
    WatchRequest,
    decode_question,
)
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.unix_socket import memfd

_SHOW_EVERY_S = 0.1  # an agent can change the list with each request
_ONE_AT_A_TIME = RefusedReply(code="busy", why="one document at a time")
_NOT_OWN_ACCOUNT = RefusedReply(code="not-you", why="the user is not the account that connects")


class ApproverRequestHandler:
    """Handler of approvers' requests. It handles one packet at a time, and never blocks."""

    def __init__(self, deciding: DecisionExecutor, policies: Policies) -> None:
        self._deciding, self._policies = deciding, policies
        self._people, self._book = deciding.people, deciding.book
        self._documents, self._pins = deciding.documents, deciding.pins
        self._shown_at_s = 0.0

    def handle(self, person: ApproverConnection) -> None:
        """Handle a packet of an approver."""
        packet = self._people.receive(person)
        if not packet:
            return
        try:
            asked = decode_question(packet)
        except ApprovalProtocolError as error:
            self._people.send(person, RefusedReply(code="wrong", why=str(error)))
            return
        if person.is_busy:
            self._people.send(
                person,
                RefusedReply(
                    code="busy", why="a proof is being checked; send one request at a time"
                ),
            )
        else:
            self._do(person, asked)

    def show_changes(self, now_s: float) -> None:
        """Send the list to watching connections, if it has changed, and not too often."""
        if self.due_in_s(now_s) != 0.0:
            return
        self._deciding.has_changes = self._pins.questions.has_changes = False
        self._shown_at_s = now_s
        for person in self._people.watching():
            self._list(person)

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `show_changes` has work to do; None without changes."""
        if not (self._deciding.has_changes or self._pins.questions.has_changes):
            return None
        return max(0.0, self._shown_at_s + _SHOW_EVERY_S - now_s)

    def _do(self, person: ApproverConnection, asked: FromApprover) -> None:
        match asked:
            case ListRequest():
                self._list(person)
            case WatchRequest():
                person.is_watching = True
                self._list(person)
            case ShowRequest(id_):
                self._show(person, id_)
            case PinsRequest() | RulesRequest() | ResetPinsRequest():
                self._do_at_server(person, asked)
            case LoginRequest():
                self._log_in(person, asked)
            case SavedRulesRequest() | RevokeRequest():
                self._do_with_saved_rules(person, asked)
            case DecideRequest():
                self._deciding.decide(person, asked)

    def _do_at_server(
        self, person: ApproverConnection, asked: PinsRequest | RulesRequest | ResetPinsRequest
    ) -> None:
        match asked:
            case PinsRequest(server):
                self._report_pins(person, server)
            case RulesRequest(server):
                self._send_rules(person, server)
            case ResetPinsRequest(server):
                self._reset_pins(person, server)

    def _list(self, person: ApproverConnection) -> None:
        rights, now_s = self._deciding.rights(), time.monotonic()
        for entry in self._deciding.entries():
            if allowed := self._deciding.may(person, entry):
                has_preview = self._documents.preview(entry.id) is not None
                may_save = self._deciding.may(person, entry, Scope.RULE) or "no"
                listed = entry.pending(allowed, may_save)
                self._people.send(person, replace(listed, has_preview=has_preview))
        for pause in self._book.fatigue.pauses(now_s):
            if sees(person.who, pause.agent_uid, rights):
                until = round(pause.until_s + time.time() - now_s)
                paused = Paused(
                    agent_uid=pause.agent_uid, server=pause.server, why=pause.why, until=until
                )
                self._people.send(person, paused)
        self._people.send(person, EndOfList())

    def _show(self, person: ApproverConnection, id_: str) -> None:
        entry = self._deciding.find(person, id_)
        if entry is None:
            self._people.send(person, not_pending(id_))
            return
        if not person.has_read_all():
            self._people.send(person, _ONE_AT_A_TIME)
            return
        if isinstance(entry, PinQuestion):
            fds, has_preview = [entry.document_fd], False
        else:
            before = self._documents.last_approved(entry.about.tool)
            preview = self._documents.preview(id_)
            found = (self._documents.find(id_), preview, before)
            fds = [fd for fd in found if fd is not None]
            has_preview = preview is not None
        reply = DocumentReply(id=id_, digest=entry.about.digest, has_preview=has_preview)
        self._people.send(person, reply, fds)

    def _report_pins(self, person: ApproverConnection, server: str) -> None:
        """Send a report on the pins of a server to approvers, and to its agents."""
        rule = self._pins.rule_of(server)
        if rule is None or not self._may_read(person, rule):
            self._people.send(person, _not_pinned(server))
        elif not person.has_read_all():
            self._people.send(person, _ONE_AT_A_TIME)
        else:
            person.is_busy = True
            done = partial(self._send_report, person, server)
            self._pins.report(server, done, partial(self._pins_failed, person))

    def _send_rules(self, person: ApproverConnection, server: str) -> None:
        """Send the rules for a server to approvers, and to its agents."""
        rule = self._pins.access_rule_of(server)
        if rule is None or not self._may_read(person, rule):
            why = f"{shown(server)} is not a server that this account may use"
            self._people.send(person, RefusedReply(code="gone", why=why))
        elif not person.has_read_all():
            self._people.send(person, _ONE_AT_A_TIME)
        else:
            try:
                rules_fd = self._policies.copy_for_agents(server, rule)
            except RefusalError as refusal:
                self._people.send(person, RefusedReply(code="gone", why=refusal.why))
                return
            self._people.send(person, RulesReply(), [rules_fd])
            os.close(rules_fd)

    def _do_with_saved_rules(
        self, person: ApproverConnection, asked: SavedRulesRequest | RevokeRequest
    ) -> None:
        match asked:
            case SavedRulesRequest():
                self._send_saved_rules(person)
            case RevokeRequest(id_):
                self._deciding.revoke(person, id_)

    def _send_saved_rules(self, person: ApproverConnection) -> None:
        """Send the approval rules of the agents whose questions the account sees."""
        if not person.has_read_all():
            self._people.send(person, _ONE_AT_A_TIME)
            return
        rights = self._deciding.rights()
        seen = [
            rule
            for rule in self._deciding.rules.rules()
            if sees(person.who, rule.agent_uid, rights)
        ]
        try:
            rules_fd = memfd.sealed("approval rules", msgspec.json.encode(seen))
        except OSError as error:
            self._people.send(person, RefusedReply(code="busy", why=str(error.strerror)))
            return
        self._people.send(person, SavedRulesReply(), [rules_fd])
        os.close(rules_fd)

    def _may_read(self, person: ApproverConnection, rule: AccessRule) -> bool:
        is_agent = rule.may_have_agent(person.who.uid, person.who.gids)
        agent_uid = person.who.uid if is_agent else NO_AGENT
        return sees(person.who, agent_uid, self._deciding.rights())

    def _reset_pins(self, person: ApproverConnection, server: str) -> None:
        if person.who.uid != 0:
            self._people.send(person, RefusedReply(code="not-you", why="only root may do this"))
        elif self._pins.rule_of(server) is None:
            self._people.send(person, _not_pinned(server))
        else:
            person.is_busy = True
            done = partial(self._pins_are_reset, person, server)
            self._pins.reset(server, "root", done, partial(self._pins_failed, person))

    def _send_report(self, person: ApproverConnection, server: str, report_fd: int) -> None:
        person.is_busy = False
        question = self._pins.questions.of(server)
        allowed = self._deciding.may(person, question) if question else None
        self._people.send(person, PinsReply(may=allowed or "no"), [report_fd])

    def _pins_are_reset(self, person: ApproverConnection, server: str, _: int) -> None:
        person.is_busy = False
        self._people.send(person, DoneReply(text=f"the pins of {server} begin anew"))

    def _pins_failed(self, person: ApproverConnection, code: RefusalCode, why: str) -> None:
        person.is_busy = False
        self._people.send(person, RefusedReply(code=code, why=why))

    def _log_in(self, person: ApproverConnection, asked: LoginRequest) -> None:
        if not self._deciding.is_page(person) and asked.user != account_of(person.peer.uid):
            self._people.send(person, _NOT_OWN_ACCOUNT)
            return
        check = partial(by_password, asked.user, asked.password)
        then = partial(self._logged_in, person, asked.user)
        self._deciding.prove(person, asked.user, check, then)

    def _logged_in(self, person: ApproverConnection, user: str, proven: AuthResult) -> None:
        person.is_busy = False
        if proven.uid >= 0:
            self._people.send(person, DoneReply(text="logged in", user=user))
        else:
            self._people.send(person, RefusedReply(code="proof", why=proven.why))


def _not_pinned(server: str) -> RefusedReply:
    return RefusedReply(code="gone", why=f"{shown(server)} is not a server with pins")

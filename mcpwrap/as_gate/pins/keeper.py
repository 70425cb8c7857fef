"""Keeper of the pins of all servers, in the monitor: it has processes change them, one change each.

A process writes the next version of a file. The monitor records the change in the audit, and has
the version put in force by another process, since it must not wait for a disk. Then it sends the
pins to the sessions of that server, and asks a person about what is held back.
"""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from mcpwrap.as_gate.ipc import approval_packets, packets, pin_packets
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.as_gate.ipc.session_pages import SessionPages
from mcpwrap.as_gate.pins.files import PinsFiles, servers_with_files
from mcpwrap.as_gate.pins.jobs import NO_FD, PinJob, PinJobs, RunningJob
from mcpwrap.as_gate.pins.questions import PinQuestion, PinQuestions
from mcpwrap.as_gate.pins.tasks import (
    DecideTask,
    LoadTask,
    OfferTask,
    RefusalCode,
    ReportTask,
    ResetTask,
    WorkResult,
)
from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.core.audit.records import PinsChanged
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.pins.acceptance import MAX_OFFER_BYTES, Offerer
from mcpwrap.core.wire.approval_socket import DecideRequest, Verdict
from mcpwrap.core.wire.server_files import AccessList, AccessRule, Pins
from mcpwrap.linux.seccomp.gate_session import FILE_CALLS, Filter
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import memfd

MAX_OFFERS_OF_SESSION = 32
_ID_BYTES = 4
_NO_ROOM = "the gate has too many definitions to look at [E-PINS-NOT-WRITTEN]"
_FAILED = "the gate's process for it has failed: see the journal of mcpwrap-gate"
_NO_AUDIT = "the audit cannot be written, so nothing was changed [E-AUDIT-NOT-WRITABLE]"
Done = Callable[[int], None]
Fail = Callable[[RefusalCode, str], None]


class PinsKeeper:
    """Keeper of pins. It handles one event at a time, and never blocks. Times are monotonic."""

    def __init__(self, family: ChildTable, access_list: AccessListFile, audit: AuditWriter) -> None:
        self.pages = SessionPages("definitions in question")
        self.questions = PinQuestions(lambda: secrets.token_hex(_ID_BYTES), self.rule_of)
        self._filter = Filter(FILE_CALLS)
        self._jobs = PinJobs(self._mode_of, self._restrict)
        self._family, self._access_list, self._audit = family, access_list, audit
        self._followed = set[str]()
        self._settled = set[str]()  # servers that have no next version which was recorded
        self._view_by_server = dict[str, str]()  # digest of the one that was sent last
        self._lines = LogRateLimit(1)

    def access_rule_of(self, server: str) -> AccessRule | None:
        """Return the access rule of a server."""
        return self._access_list.last_read().by_server.get(server)

    def rule_of(self, server: str) -> AccessRule | None:
        """Return the access rule of a server that is not a hub, whose members have the pins."""
        rule = self.access_rule_of(server)
        return None if rule is None or rule.hub else rule

    def follow(self, admissions: AccessList) -> None:
        """Load the pins of servers that are new in the access list, or have pins now."""
        pinned = {name for name in admissions.by_server if self._mode_of(name) != "off"}
        self.questions.keep_only(pinned)
        new, self._followed = pinned - self._followed, pinned
        with suppress(OSError):
            with_files = servers_with_files() if new else set[str]()
            self._settled |= new - with_files
            for server in sorted(new & with_files):
                self._jobs.add(PinJob(server=server, task=LoadTask(), fail=partial(_log, server)))

    def handle(self, child: Child, packet: pin_packets.FromChild) -> None:
        """Handle a packet of a session's process.

        Raises:
            ChannelError: a session's process does not send this packet.
            OSError: the reply cannot be sent.
        """
        if child.entry is None:
            raise ChannelError("it offered definitions before it named its server")
        match packet:
            case pin_packets.OfferPageRequest():
                if self._mode_of(child.server) == "off":
                    packets.refuse_page(child.channel)
                else:
                    self.pages.hand_out(child.pid, child.channel)
            case pin_packets.DefinitionsOffered(waits):
                self._take_offer(child, child.entry.session, waits=waits)

    def decide(
        self,
        question: PinQuestion,
        decide: DecideRequest,
        by: str,
        before_record: Callable[[], bool],
        replies: tuple[Done, Fail],
    ) -> None:
        """Accept or reject what a document shows; the reply follows when that cannot be lost."""
        server, (done, fail) = question.about.server, replies
        task = DecideTask(
            question=question.id,
            is_approval=decide.verdict is Verdict.APPROVE,
            subset=decide.subset,
            with_findings=decide.with_findings,
            by=by,
            now=_now(),
        )
        job = PinJob(server=server, task=task, before_record=before_record, done=done, fail=fail)
        self._add_on(question, job)

    def reset(self, server: str, by: str, done: Done, fail: Fail) -> None:
        """Begin the pins of a server anew."""
        self._add(PinJob(server=server, task=ResetTask(by), done=done, fail=fail))

    def report(self, server: str, done: Done, fail: Fail) -> None:
        """Write a report on the pins of a server, and on the pending question."""
        question = self.questions.of(server)
        task = ReportTask(question.id if question else "")
        self._add_on(question, PinJob(server=server, task=task, done=done, fail=fail))

    def catch_up(self, now_s: float) -> None:
        """Start jobs and renew questions that are due."""
        self._jobs.catch_up(now_s)
        self.questions.catch_up(now_s)

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `catch_up` has work to do; None if there is none."""
        due = (self._jobs.due_in_s(now_s), self.questions.due_in_s(now_s))
        return min((one for one in due if one is not None), default=None)

    def ended(self, pid: int) -> None:
        """Continue after the end of a process; that of another kind is ignored."""
        running = self._jobs.ended(pid)
        if running is None:
            return
        if running.stage == "work":
            self._worked(running)
        else:
            self._committed(running)

    def _restrict(self) -> None:
        """In a process: give up what only the monitor needs, before anything is parsed."""
        self._audit.forget()
        self._filter.enter()

    def _mode_of(self, server: str) -> Pins:
        rule = self.rule_of(server)
        return rule.pins if rule else "off"

    def _take_offer(self, child: Child, session: str, *, waits: bool) -> None:
        fd = self.pages.take(child.pid)
        if os.fstat(fd).st_size > MAX_OFFER_BYTES:
            os.close(fd)
            raise ChannelError(f"its definitions have over {MAX_OFFER_BYTES} bytes")
        job = PinJob(
            server=child.server,
            task=OfferTask(Offerer(session, child.who.uid, _now())),
            input_fd=fd,
            session=child,
            is_awaited=waits,
            fail=partial(self._offer_failed, child, waits),
        )
        if self._jobs.count_of(child) >= MAX_OFFERS_OF_SESSION:
            job.close()
            job.fail("busy", _NO_ROOM)
        else:
            self._add(job)

    def _add_on(self, question: PinQuestion | None, job: PinJob) -> None:
        """Queue a job whose input is the document of a question, if there is one."""
        try:
            job.input_fd = os.dup(question.document_fd) if question else NO_FD
        except OSError as error:
            job.fail("busy", str(error))
        else:
            self._add(job)

    def _add(self, job: PinJob) -> None:
        if not self._jobs.add(job):
            job.close()
            job.fail("busy", _NO_ROOM)

    def _worked(self, running: RunningJob) -> None:
        """Record the change that a process has prepared, and have it put in force."""
        job, result = running.job, running.result
        if result is None or result.problem:
            self._give_up(running, result)
        elif result.change is None or result.change.before == result.change.after:
            self._settled.add(job.server)
            self._record(running, result)  # a start of the gate, with or without a record
            self._publish(running, result)
        elif not (result.is_recovery or job.before_record()) or not self._record(running, result):
            if not result.is_recovery:  # else it was recorded before, perhaps
                self._remove_next(job.server)
            self._fail(running, "busy", _NO_AUDIT)
        else:
            self._settled.discard(job.server)
            running.prepared = result
            if not self._jobs.commit(running, self._audit.path):
                self._fail(running, "busy", _FAILED)

    def _record(self, running: RunningJob, result: WorkResult) -> bool:
        change = result.change
        if change is None:
            return True
        task = running.job.task
        return self._audit.pins_changed(
            PinsChanged(
                outcome=change.outcome,
                server=running.job.server,
                before=change.before,
                after=change.after,
                names=change.names,
                count=change.count,
                approval=task.question if isinstance(task, DecideTask) else "",
                by=change.by,
            )
        )

    def _committed(self, running: RunningJob) -> None:
        prepared = running.prepared
        if running.result is not None:
            self._settled.add(running.job.server)
        if running.result is None or prepared is None:  # the next job completes the change
            self._fail(running, "busy", _FAILED)
        elif prepared.is_recovery:
            running.close()
            server = running.job.server
            load = LoadTask(is_start=False)  # sessions and people have not got what is in force now
            self._jobs.add_first(running.job)
            self._jobs.add_first(PinJob(server=server, task=load, fail=partial(_log, server)))
        else:
            self._publish(running, prepared)

    def _publish(self, running: RunningJob, result: WorkResult) -> None:
        """Send the pins to sessions, renew the question, and reply."""
        job = running.job
        if isinstance(job.task, ReportTask):
            job.done(running.text_fd)
        else:
            self._send_view(running, result.view_digest)
            if isinstance(job.task, DecideTask | ResetTask):
                self.questions.decided(job.server)
            text_fd = running.take_text()
            memfd.seal(text_fd)
            self.questions.renew(job.server, result.question, text_fd)
            job.done(text_fd)
        running.close()
        job.close()

    def _send_view(self, running: RunningJob, digest: str) -> None:
        memfd.seal(running.view_fd)
        job = running.job
        is_new = self._view_by_server.get(job.server) != digest
        self._view_by_server[job.server] = digest
        for child in self._family:
            if child.server != job.server or child.entry is None or child.door == "login":
                continue  # a login reads nothing of it
            try:
                if child is job.session and job.is_awaited:
                    pin_packets.answer_recorded(child.channel, running.view_fd)
                elif is_new:
                    pin_packets.push_view(child.channel, running.view_fd)
                    child.bell.raise_flag()
                    approval_packets.send_outcome(child.verdicts, None)
            except OSError:
                self._family.kill(child)  # or it would go on by pins that are no more

    def _give_up(self, running: RunningJob, result: WorkResult | None) -> None:
        if result is None:
            if running.job.server in self._settled:  # the process may have written one, unrecorded
                self._remove_next(running.job.server)
            self._fail(running, "busy", _FAILED)
            return
        child = running.job.session
        if result.is_malformed and child is not None:
            log_line(
                f"the session of uid {child.who.uid} at {child.server!r} is ended: {result.problem}"
            )
            self._family.kill(child)
        self._fail(running, result.code, result.problem)

    @staticmethod
    def _remove_next(server: str) -> None:
        with suppress(OSError):
            PinsFiles(server).remove_next()

    @staticmethod
    def _fail(running: RunningJob, code: RefusalCode, why: str) -> None:
        running.close()
        running.job.close()
        running.job.fail(code, why)

    def _offer_failed(self, child: Child, waits: bool, code: RefusalCode, why: str) -> None:  # noqa: FBT001 - of a partial call
        if self._lines.admits(time.monotonic()):
            _log(child.server, code, why)
        if waits and child.channel.fileno() >= 0:
            try:
                pin_packets.answer_not_recorded(child.channel, why)
            except OSError:
                self._family.kill(child)


def _log(server: str, _: RefusalCode, why: str) -> None:
    log_line(f"definitions of {server!r}: {why}")


def _now() -> float:
    return round(time.time(), 3)

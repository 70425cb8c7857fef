"""Message gate of one session, with its policy, limits, audit and journal notes."""

from dataclasses import replace

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.as_gate.hubs.outer_calls import OuterCalls
from mcpwrap.as_gate.session.approval_client import SessionApprovals
from mcpwrap.as_gate.session.call_limiter import SessionCallLimiter
from mcpwrap.as_gate.session.definitions_client import SessionDefinitions
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.pins_client import SessionOffers
from mcpwrap.as_gate.session.project import SessionProject
from mcpwrap.core.audit.records import REFUSAL_ID
from mcpwrap.core.gate.definitions.collector import DefinitionsCollector
from mcpwrap.core.gate.definitions.pin_check import PinnedServer, SessionPins
from mcpwrap.core.gate.gate import Action, Gate
from mcpwrap.core.gate.ports import PolicyOwner
from mcpwrap.core.gate.session import JournalNote, NoteKind
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux.systemd.journal import Journal
from mcpwrap.machine.server_contexts import server_context
from mcpwrap.session.audit_log.journal_notes import JournalNotes
from mcpwrap.session.audit_log.recorder import Recorder


class SessionJudge:
    """Message gate of one session, with the monitor's latest policy, its audit and its notes."""

    def __init__(
        self,
        policy: CompiledPolicy,
        recorder: Recorder,
        monitor: ToMonitor,
        agent: AgentIdentity,
        admissions: AccessList,
    ) -> None:
        """`admissions` has the rule of the session's server, and of the hub that opened it."""
        admission = admissions.by_server[recorder.about.server]
        self._about = recorder.about
        self._who = f"uid {self._about.uid}, {self._about.server!r}"
        self._monitor = monitor
        self._recorder = recorder
        self._journal = Journal()
        self.note = JournalNotes(self._who, self._write).note
        self._limits = SessionCallLimiter(policy, monitor, self._note_held_back)
        outer_calls = OuterCalls(agent.hub, recorder.about.server, admissions)
        approvals = SessionApprovals(monitor, recorder, outer_calls)
        self.gate = Gate(policy, self._limits, recorder, approvals, executes=admission.executes)
        self.gate.name_owner(PolicyOwner(recorder.about.server))
        self.gate.preview(admission.previews)
        if admission.is_member:
            self.gate.collect(DefinitionsCollector(SessionDefinitions(self._who, monitor)))
        self._pins = admission.pins
        self._context = server_context(admission)
        self._policy = policy

    def pin(self, view: PinsView) -> None:
        """Have what the server lists compared with these pins, before the first message."""
        about = self._about
        server = PinnedServer(about.server, self._pins, about.session, about.uid)
        self.gate.pin(SessionPins(server, view, SessionOffers(self._monitor)))

    def see(self, seen: SessionProject) -> None:
        """Judge by the project that the server sees, or tell the agent why it sees none.

        It is called before the first message.
        """
        self._recorder.project = seen.path
        self._context = replace(self._context, project=seen.path)
        self._take(self._policy.in_project(seen.path))
        if seen.why_none:
            self.gate.advise(seen.why_none)

    @property
    def is_of_hub(self) -> bool:
        """Return whether a hub has opened the session, for its agent."""
        return bool(self._about.via)

    def renew(self, gate: Gate) -> list[Action]:
        """Take a new policy and changed pins from the monitor, and start the decision's clock."""
        self._recorder.arrived()
        update = self._monitor.policy_update()
        if update.text:
            policy = rules.decode(update.text)
            self._take(compile_policy(policy, self._about.server, self._context))
            self._recorder.policy = update.digest
        view = self._monitor.pins_update()
        return [] if view is None else gate.take_pins(view)

    def _take(self, policy: CompiledPolicy) -> None:
        self._policy = self.gate.policy = policy
        self._limits.renew(policy)

    def _note_held_back(self, tool: str, why: str) -> None:
        text = f"{tool!a} is held back: {why}"
        self.note(JournalNote(NoteKind.LIMITED, text, target=tool))

    def _write(self, note: JournalNote) -> None:
        self._journal.write(
            f"{self._who}: {note.kind}: {note.text}",
            MESSAGE_ID=REFUSAL_ID,
            MCPWRAP_SERVER=self._about.server,
            MCPWRAP_SESSION=self._about.session,
            MCPWRAP_AGENT=str(self._about.uid),
            MCPWRAP_TOOL=shown(bare(note.target)),
            MCPWRAP_DECISION=note.kind,
            MCPWRAP_RULE=note.rule,
        )

"""Gate of `mcpwrap run` with a scripted audit, and a policy that a test may exchange."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mcpwrap.as_agent.run.local_gate import PolicySource, ReadPolicy, RunPolicy
from mcpwrap.as_agent.run.user_audit import UserAuditLog
from mcpwrap.core.audit.records import ApprovalAnswered, ApprovalRuleChanged
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.gate.ports import NO_APPROVALS, Approvals
from mcpwrap.core.policy.compiled import NO_CONTEXT, ServerContext
from mcpwrap.core.policy.rules import Policy
from mcpwrap.machine.user_policy import UserPolicy
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder
from tests.unit.core.scripted import ScriptedAudit

NO_FILES = UserPolicy(Path("/nonexistent"))


@dataclass
class ScriptedRecorder(ScriptedAudit):
    """Recorder that stores its records, unless it is broken."""

    about: RecordedSession = field(default_factory=lambda: RecordedSession("1-1", "notes", 1000))
    policy: str = "digest"
    arrivals: int = 0

    def arrived(self) -> None:
        self.arrivals += 1


class ScriptedUserAudit(UserAuditLog):
    """Audit of a run in memory, unless it is broken."""

    def __init__(self) -> None:
        self.records = ScriptedRecorder()
        self.recorder = cast(Recorder, self.records)
        self.answers: list[ApprovalAnswered] = []
        self.changes: list[ApprovalRuleChanged] = []
        self.policies: list[str] = []
        self.is_broken = False

    def answered(self, answer: ApprovalAnswered) -> bool:
        self.answers += [] if self.is_broken else [answer]
        return not self.is_broken

    def rule_changed(self, changed: ApprovalRuleChanged) -> bool:
        self.changes += [] if self.is_broken else [changed]
        return not self.is_broken

    def policy(self, digest: str) -> bool:
        self.policies += [] if self.is_broken else [digest]
        return not self.is_broken


class ScriptedSource(PolicySource):
    """Policy that a run reads first; after that there are no files."""

    _first: list[Policy]

    def __init__(self, policy: Policy) -> None:
        super().__init__(None, NO_FILES)
        object.__setattr__(self, "_first", [policy])  # the class is frozen

    def read(self) -> ReadPolicy:
        return ReadPolicy(self._first.pop(), ()) if self._first else super().read()


def run_policy(policy: Policy, server: str = "notes") -> RunPolicy:
    """Return this policy as the one that a run has read."""
    return RunPolicy(ScriptedSource(policy), server)


def gate_for(
    policy: Policy,
    audit: ScriptedUserAudit | None = None,
    approvals: Approvals = NO_APPROVALS,
    context: ServerContext = NO_CONTEXT,
) -> Gate:
    """Return the gate of a run of the server `notes`."""
    return run_policy(policy).gate(audit or ScriptedUserAudit(), approvals, context)

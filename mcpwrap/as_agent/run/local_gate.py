"""Policy decisions of `mcpwrap run`, in the relay's process: policy, limits, circuit breaker."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.as_agent.run.user_audit import UserAuditLog
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.gate.gate import Action, Gate
from mcpwrap.core.gate.ports import Approvals, PolicyOwner
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.compiled import CompiledPolicy, ServerContext, compile_policy
from mcpwrap.core.policy.limits.session_limiter import SessionLimiter
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.text.counts import counted
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.user_policy import UserPolicy, unreadable

_WHO = "mcpwrap run"


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """Policy with the names of the files that it comes from."""

    policy: Policy
    files: tuple[str, ...]

    def describe(self) -> str:
        """Return which policy it is, in one line."""
        own = counted(len(self.policy.rules) + len(self.policy.results), "rule")
        of_files = f"{own} of {', '.join(self.files)}" if self.files else "no policy file"
        default = len(self.policy.default_rules)
        shipped_rules = f"the default policy, {counted(default, 'rule')}" if default else ""
        return f"policy: {of_files}; {shipped_rules or 'the default policy is disabled'}"


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Policy files of a run: the named one, or the user's own."""

    named: Path | None
    own: UserPolicy

    def read(self) -> ReadPolicy:
        """Read the files, and extend them by the default policy.

        Raises:
            UsageError: a file cannot be read, or has errors.
        """
        files = self.own.files() if self.named is None else [_named(self.named)]
        policy = shipped.extended(parse_policy(files))
        return ReadPolicy(policy, tuple(file.name for file in files))


class RunPolicy:
    """Policy in force in one run, which its user may reload. A faulty one changes nothing."""

    def __init__(self, source: PolicySource, server: str) -> None:
        """Read the files of `source`.

        Raises:
            UsageError: one cannot be read, or has errors.
        """
        self._source, self._read, self.server = source, source.read(), server
        self._context = ServerContext()
        self._next: CompiledPolicy | None = None
        self._changing = threading.Lock()
        self.has_changed: Callable[[], None] = lambda: None

    @property
    def policy(self) -> Policy:
        """Policy in force."""
        return self._read.policy

    def describe(self) -> str:
        """Return which policy is in force, in one line."""
        return self._read.describe()

    def gate(self, audit: UserAuditLog, approvals: Approvals, context: ServerContext) -> Gate:
        """Return the message gate of the session, with its compiled policy and its call limiter.

        Other sessions of the agent have limits of their own, whatever the scope of an entry.
        """
        self._audit, self._context = audit, context
        compiled = compile_policy(self._read.policy, self.server, context)
        self._limits = SessionLimiter(compiled, ("agent", "session"), time.monotonic, _log)
        gate = Gate(compiled, self._limits, audit.recorder, approvals)
        gate.name_owner(PolicyOwner(self.server, is_user=True))
        return gate

    def reload(self) -> None:
        """Read the files again; the next message is judged by the new policy."""
        try:
            read = self._source.read()
        except McpwrapError as error:
            log_line(f"{_WHO}: the policy stays as it was: {error}")
            return
        if read.policy == self._read.policy:
            log_line(f"{_WHO}: the policy is as it was")
            return
        if not self._audit.policy(rules.digest(read.policy)):
            log_line(f"{_WHO}: the policy stays as it was: that cannot be recorded")
            return
        compiled = compile_policy(read.policy, self.server, self._context)
        with self._changing:
            self._read, self._next = read, compiled
        log_line(f"{_WHO}: reloaded: {read.describe()}")
        self.has_changed()

    def renew(self, gate: Gate) -> list[Action]:
        """Put a new policy in force, and start the decision's clock: before a message is judged."""
        self._audit.recorder.arrived()
        if self._next is None:
            return []
        with self._changing:
            compiled, policy, self._next = self._next, self._read.policy, None
        gate.policy = compiled
        self._limits.renew(compiled)
        self._audit.recorder.policy = rules.digest(policy)
        return []


def _named(file: Path) -> SourceFile:
    try:
        return SourceFile(str(file), file.read_bytes())
    except OSError as error:
        raise unreadable(file, error) from error


def _log(tool: str, why: str) -> None:
    log_line(f"{_WHO}: {tool!r} is held back: {why}")

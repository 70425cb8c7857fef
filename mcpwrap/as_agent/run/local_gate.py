"""Policy decisions of `mcpwrap run`, in the relay's process: policy, limits, circuit breaker."""

import os
import time
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.gate.ports import Audit
from mcpwrap.core.policy.circuit_breaker import CircuitBreaker
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.policy.rules import Policy
from mcpwrap.errors import UsageError
from mcpwrap.linux.systemd.stderr_log import log_line


def read_policy(named: Path | None, default: Path) -> Policy:
    """Read the policy from the named file, or the default one; if that is missing, without rules.

    Raises:
        UsageError: it cannot be read, or has errors.
    """
    file = named or default
    try:
        return parse_policy([SourceFile(str(file), file.read_bytes())])
    except FileNotFoundError as error:
        if named is None:
            return Policy()
        raise _unreadable(file, error) from error
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot be read: {error.strerror}",
        where=str(file),
        fix="name a file that this account can read",
        code="E-USAGE-UNREADABLE-FILE",
    )


def gate_for(server: str, policy: Policy, audit: Audit) -> Gate:
    """Return the message gate of one session, with its compiled policy and its call limiter."""
    compiled = compile_policy(policy, server)
    return Gate(compiled, _LocalCallLimiter(server, compiled), audit)


class _LocalCallLimiter:
    """Limits and circuit breaker of one session; other sessions of the agent have their own."""

    def __init__(self, server: str, policy: CompiledPolicy) -> None:
        self._server = server
        self._policy = policy
        self._breaker = CircuitBreaker()

    def counts(self, tool: str) -> bool:
        limits = self._policy.limits_for(tool)
        return limits is not None and bool(limits.identical_calls)

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        limits = self._policy.limits_for(tool)
        if limits is None:
            return None
        return self._breaker.ask(self._key(tool), limits, call_digest, time.monotonic())

    def report(self, tool: str, *, failed: bool) -> None:
        limits = self._policy.limits_for(tool)
        if limits is None:
            return
        now_s = time.monotonic()
        if why := self._breaker.report(self._key(tool), limits, now_s, failed=failed):
            log_line(f"mcpwrap run: {tool!r} is held back: {why}")

    def _key(self, tool: str) -> tuple[int, str, str]:
        return os.getuid(), self._server, tool

"""Policy decisions of `mcpwrap run`, in the relay's process: policy, limits, circuit breaker."""

import time
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.gate.ports import Audit, PolicyOwner
from mcpwrap.core.policy.compiled import NO_CONTEXT, ServerContext, compile_policy
from mcpwrap.core.policy.limits.session_limiter import SessionLimiter
from mcpwrap.core.policy.rules import Policy
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.user_policy import UserPolicy, unreadable


def read_policy(named: Path | None, own: UserPolicy) -> Policy:
    """Read the named file, or the user's own files, and extend them by the default policy.

    Raises:
        UsageError: a file cannot be read, or has errors.
    """
    files = own.files() if named is None else [_named(named)]
    return shipped.extended(parse_policy(files))


def _named(file: Path) -> SourceFile:
    try:
        return SourceFile(str(file), file.read_bytes())
    except OSError as error:
        raise unreadable(file, error) from error


def gate_for(
    server: str, policy: Policy, audit: Audit, context: ServerContext = NO_CONTEXT
) -> Gate:
    """Return the message gate of one session, with its compiled policy and its call limiter.

    Other sessions of the agent have limits of their own, whatever the scope of an entry.
    """
    compiled = compile_policy(policy, server, context)
    limiter = SessionLimiter(compiled, ("agent", "session"), time.monotonic, _log)
    gate = Gate(compiled, limiter, audit)
    gate.name_owner(PolicyOwner(server, is_user=True))
    return gate


def _log(tool: str, why: str) -> None:
    log_line(f"mcpwrap run: {tool!r} is held back: {why}")

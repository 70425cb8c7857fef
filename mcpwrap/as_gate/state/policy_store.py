"""Policy in force, compiled for each server, and sealed copies for the sessions."""

from collections.abc import Callable

import msgspec

from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.compiled import (
    NO_CONTEXT,
    CompiledPolicy,
    ServerContext,
    compile_policy,
)
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.policy_files import gone, policy_files
from mcpwrap.machine.server_contexts import server_context


class Policies:
    """Policy in force. An invalid one changes nothing; without any, sessions are refused."""

    def __init__(self) -> None:
        self._policy: Policy | None = None
        self._compiled_by_server: dict[str, CompiledPolicy] = {}
        self.digest = ""
        self.problem = ""  # of the files as they were last read; "" without one
        self.why_none = ""  # for agents, while no policy is in force
        self.vanished: tuple[str, ...] = ()  # recorded files that were missing at the last read
        self._files: frozenset[str] = frozenset()  # of the policy in force

    def reload(self, admissions: Callable[[], AccessList] = AccessList) -> bool:
        """Read the files again; return whether another policy is in force now.

        If a file is missing that `apply` has recorded in the access list, the policy in force
        stays. If there is none yet, the servers of that file are refused: see `missing`.
        """
        try:
            recorded = [f for one in admissions().by_server.values() for f in one.policy]
            files = policy_files()
            policy = shipped.extended(parse_policy(files))
        except (McpwrapError, OSError, msgspec.MsgspecError) as error:
            self.problem = str(error)
            self.why_none = _why_none(error)
            return False
        names = frozenset(file.name for file in files)
        self.vanished = tuple(sorted(set(recorded) - names))
        if self.vanished and self._policy is not None:
            self.problem = self.what_vanished()
            return False
        self.problem, self._files = "", names
        is_new = policy != self._policy
        if is_new:
            self._policy = policy
            self._compiled_by_server.clear()
            self.digest = rules.digest(policy)
        return is_new

    def what_vanished(self) -> str:
        """Return the error about recorded files that were missing at the last read, or ""."""
        if not self.vanished:
            return ""
        files = ", ".join(self.vanished)
        return f"{files}: gone; if that is intended, `sudo mcpwrap apply` [E-POLICY-FILE-MISSING]"

    def missing(self, admission: AccessRule) -> tuple[str, ...]:
        """Return the files of a server's policy that are missing, and whose rules are not in force.

        A file that exists and was not read yet needs a `systemctl reload`.
        """
        left_out = [name for name in admission.policy if name not in self._files]
        return tuple(name for name in left_out if name in self.vanished or gone([name]))

    def describe(self) -> str:
        """Return the policy in force, as a text that `reload` and `mcpwrap status` compare."""
        if self._policy is None:
            return "no policy: all are refused until /etc/mcpwrap/policy.yaml is right"
        return f"policy {self.digest}" + (", not that of the files" if self.problem else "")

    def compiled(self, server: str, context: ServerContext | None = None) -> CompiledPolicy | None:
        """Return the rules for one server; None without a valid policy.

        Without a context it is the last one, which the operator's rules and limits do not need.
        """
        if self._policy is None:
            return None
        known = self._compiled_by_server.get(server)
        if known is None or context not in {None, known.context}:
            known = compile_policy(self._policy, server, context or NO_CONTEXT)
            self._compiled_by_server[server] = known
        return known

    def rules_for(self, server: str, admission: AccessRule) -> CompiledPolicy:
        """Return the rules for the session of a server.

        Raises:
            RefusalError: there is no valid policy, or a file with rules for the server is missing.
        """
        policy = self.compiled(server, server_context(admission))
        if policy is None:
            raise RefusalError(session_socket.Exit.UNAVAILABLE, self.why_none)
        if missing := self.missing(admission):
            why = (
                f"its policy {', '.join(missing)} is gone: `sudo mcpwrap apply`, if that is "
                "intended [E-POLICY-FILE-MISSING]"
            )
            raise RefusalError(session_socket.Exit.UNAVAILABLE, why)
        return policy

    def copy_for_agents(self, server: str, admission: AccessRule) -> int:
        """Return a descriptor of the rules for one server, without the names of other servers.

        Raises:
            RefusalError: as of `rules_for`.
        """
        self.rules_for(server, admission)
        if self._policy is None:
            raise ValueError("no policy is in force")
        part = rules.for_agents(self._policy, server)
        if admission.hub:  # whose members' calls are judged for themselves
            part = msgspec.structs.replace(part, default_rules=(), default_limits=())
        return memfd.sealed(f"rules-{server}", rules.encode(part))

    def sealed_copy(self, server: str) -> int:
        """Return a descriptor of the rules for one server, sealed against changes.

        Source: memfd_create(2), fcntl(2) on F_ADD_SEALS.
        """
        if self._policy is None:
            raise ValueError("no policy is in force")
        part = rules.for_server(self._policy, server)
        return memfd.sealed(f"policy-{server}", rules.encode(part))


def _why_none(error: Exception) -> str:
    """Return the reason for which no policy is in force, in one line."""
    if isinstance(error, UsageError) and not isinstance(error, PolicyError):
        return f"{error.where}: {error.problem} [E-SESSION-ROOT-FILE]"  # not root's alone
    return (
        "the policy has errors: `mcpwrap policy check` lists them; then reload the gate "
        "[E-SESSION-POLICY]"
    )

"""RUNS AS mcpwrap-gate: the policy in force, and what each server's sessions are given of it."""

from mcpwrap.config.policy import parse_policy
from mcpwrap.core import rules
from mcpwrap.core.policy import CompiledPolicy, compile_policy
from mcpwrap.core.rules import Policy
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import memfd
from mcpwrap.linux.policy_files import policy_files


class Policies:
    """One policy at a time. A wrong one changes nothing; before a right one all are refused."""

    def __init__(self) -> None:
        self._policy: Policy | None = None
        self._compiled_by_server: dict[str, CompiledPolicy] = {}
        self.digest = ""
        self.problem = ""  # with the files as they were last read; "" is none

    def reload(self) -> bool:
        """Read the files anew; say whether what is in force is another policy now."""
        try:
            policy = parse_policy(policy_files())
        except (McpwrapError, OSError) as error:
            self.problem = str(error)
            return False
        self.problem = ""
        is_new = policy != self._policy
        if is_new:
            self._policy = policy
            self._compiled_by_server.clear()
            self.digest = rules.digest(policy)
        return is_new

    def standing(self) -> str:
        """Say which policy is in force, in the words that a reload and `status` look for."""
        if self._policy is None:
            return "no policy: all are refused until /etc/mcpwrap/policy.yaml is right"
        return f"policy {self.digest}" + (", not that of the files" if self.problem else "")

    def compiled(self, server: str) -> CompiledPolicy | None:
        """Return the rules for one server; without any valid policy there are none."""
        if self._policy is None:
            return None
        if server not in self._compiled_by_server:
            self._compiled_by_server[server] = compile_policy(self._policy, server)
        return self._compiled_by_server[server]

    def sealed_copy(self, server: str) -> int:
        """Return a descriptor of the rules for one server, which nobody can change any more.

        Source: memfd_create(2), fcntl(2) on F_ADD_SEALS.
        """
        if self._policy is None:
            raise ValueError("there is no policy to hand out")
        part = rules.for_server(self._policy, server)
        return memfd.sealed(f"policy-{server}", rules.encode(part))

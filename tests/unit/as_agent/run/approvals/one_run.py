"""One run in a test: gate, broker and serving thread, with the streams of agent and server."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from mcpwrap.as_agent.run.approvals.broker import UserApprovals
from mcpwrap.as_agent.run.approvals.serving import ApproverServing
from mcpwrap.core.policy.compiled import NO_CONTEXT
from mcpwrap.core.policy.decision import ApprovalTimeouts
from mcpwrap.core.policy.rules import Policy, Rule
from mcpwrap.session.approvals.client_forms_file import ClientFormsFile
from mcpwrap.session.approvals.user_rules import UserRules
from mcpwrap.session.relay.gate_relay import GateRelay, RelayOutputs
from mcpwrap.session.relay.writer import MessageWriter
from tests.shared import pace
from tests.unit.as_agent.run.scripted_run import ScriptedUserAudit, run_policy

RULE = Rule(name="asks", action="allow_with_approval", tools=("drop*",))


class Run:
    """One run of the server `notes`, of which `drop` needs approval."""

    def __init__(self, folder: Path, number: int = 1, expires_s: float | None = None) -> None:
        self.audit = ScriptedUserAudit()
        self.rules = UserRules(folder / "rules")
        self.forms = ClientFormsFile(folder / "forms.json")
        self.approvals = UserApprovals(self.audit, self.rules, self.forms)
        policy = Policy(rules=(RULE,), approval=ApprovalTimeouts(expires_s))
        self.policy = run_policy(policy)
        gate = self.policy.gate(self.audit, self.approvals, NO_CONTEXT)
        self.policy.has_changed = self.approvals.void
        self.told: list[str] = []
        (from_us, agents), (from_gate, servers) = os.pipe(), os.pipe()
        self._fds = (agents, servers)
        self._agent, self._server = os.fdopen(from_us, "rb"), os.fdopen(from_gate, "rb")
        outputs = RelayOutputs(
            MessageWriter(agents, lambda: None),
            MessageWriter(servers, lambda: None),
            lambda _: None,
            self.told.append,
        )
        self.relay = GateRelay(gate, outputs, self.policy.renew)
        self.stopped = threading.Event()
        self.socket = folder / f"sockets/{number}.sock"
        self.serving = ApproverServing(self.approvals, self.rules, self.socket, has_desktop=False)
        serve = (self.relay, self.stopped.set)
        self._its_input, self._input_fd = os.pipe()
        self._threads = (
            threading.Thread(target=self.serving.run, args=serve),
            threading.Thread(target=self.relay.from_agent, args=(self._its_input,)),
        )
        for thread in self._threads:
            thread.start()

    def ends(self) -> None:
        """End the threads, and close all descriptors."""
        self.serving.close()
        os.close(self._input_fd)
        for thread in self._threads:
            thread.join(pace.WAIT_S)
        for fd in (self._its_input, *self._fds):
            with suppress(OSError):  # the relay has closed it
                os.close(fd)
        self._agent.close()
        self._server.close()

    def sends(self, message: dict[str, Any]) -> None:
        """Have the agent send a message."""
        os.write(self._input_fd, msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def begins(self) -> None:
        """Have the agent declare that it draws forms, as the client `trial`."""
        info = {"name": "trial", "version": "1"}
        params = {"capabilities": {"elicitation": {}}, "clientInfo": info}
        self.sends({"id": 0, "method": "initialize", "params": params})
        assert self.server_reads()["method"] == "initialize"

    def calls(self, request_id: int, tool: str = "drop", **arguments: Any) -> None:
        """Have the agent call a tool."""
        params = {"name": tool, "arguments": arguments}
        self.sends({"id": request_id, "method": "tools/call", "params": params})

    def agent_reads(self) -> dict[str, Any]:
        """Return the next message to the agent."""
        return msgspec.json.decode(self._agent.readline(), type=dict[str, Any])

    def server_reads(self) -> dict[str, Any]:
        """Return the next message to the server."""
        return msgspec.json.decode(self._server.readline(), type=dict[str, Any])

    def text_read(self) -> str:
        """Return the text of the next result that the agent gets."""
        return str(self.agent_reads()["result"]["content"][0]["text"])

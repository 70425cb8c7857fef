"""Dispatcher of packets from the sessions' processes, in the monitor.

It also sends new policies, and applies rate limits and the circuit breaker to the calls of all
sessions.
"""

import os
import time
from typing import assert_never

from mcpwrap.as_gate.agent_identity import HUB_CLAIM, AgentIdentity, agent_of
from mcpwrap.as_gate.approvals.broker import ApprovalBroker
from mcpwrap.as_gate.hubs.definitions_store import DefinitionsWriter
from mcpwrap.as_gate.hubs.inner_sessions import InnerSessions
from mcpwrap.as_gate.ipc import approval_packets, hub_packets, packets, pin_packets
from mcpwrap.as_gate.ipc.packets import CallFinished, CallLimitRequest, ChannelError
from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import MAX_PER_UID, TOO_MANY, Child, ChildTable
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core import session_shares
from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.limits.circuit_breaker import CircuitBreaker
from mcpwrap.core.policy.rules import LimitsEntry
from mcpwrap.core.text.sanitise import harmless
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.machine.server_contexts import server_context


class CallCounters:
    """Call counters by account (from the kernel), server (access list) and tool (as reported).

    Limits of the scope `session`, and those of the default policy, are counted in the session.
    """

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._breaker = CircuitBreaker()

    def ask(self, child: Child, asked: CallLimitRequest, now_s: float) -> LimitExceeded | None:
        """Count a call; return the limit that it exceeds, or None."""
        limits = self._limits(child.server, asked.tool)
        if limits is None:
            return None
        key = (child.who.uid, child.server, asked.tool)
        return self._breaker.counter(key, limits).ask(asked.digest, now_s)

    def report(self, child: Child, finished: CallFinished, now_s: float) -> None:
        """Report the outcome of a call to the circuit breaker."""
        limits = self._limits(child.server, finished.tool)
        key = (child.who.uid, child.server, finished.tool)
        answer = b"" if finished.answer_digest == packets.NO_DIGEST else finished.answer_digest
        outcome = CallOutcome(finished.failed, finished.digest, answer)
        if limits is None:
            self._breaker.repeated(child.who.uid, child.server).report(outcome)
            return
        if why := self._breaker.counter(key, limits).report(outcome, now_s):
            tool = f"{finished.tool!a}"
            log_line(f"uid {child.who.uid}, {child.server!r}: {tool} is held back: {why}")

    def forget_all(self) -> None:
        """Reset all counters, for a new policy."""
        self._breaker.forget_all()

    def _limits(self, server: str, tool: str) -> LimitsEntry | None:
        policy = self._policies.compiled(server)
        limits = policy.limits_for(tool) if policy else None
        return limits if limits is not None and limits.scope == "agent" else None


class MonitorDispatcher:
    """Packet dispatcher. It handles one packet at a time, and never blocks."""

    def __init__(
        self,
        family: ChildTable,
        access_list: AccessListFile,
        policies: Policies,
        audit: AuditWriter,
        approving: ApprovalBroker,
    ) -> None:
        self.counting = CallCounters(policies)
        self.backoff = Backoff()
        self.inner = InnerSessions(family, access_list)
        self.definitions = DefinitionsWriter()
        self._family = family
        self._access_list = access_list
        self._policies = policies
        self._audit = audit
        self._approving = approving

    def dispatch(self, each: Child, packet: bytes) -> None:
        """Handle a packet.

        Raises:
            ValueError: a child does not send this packet.
            OSError: the reply cannot be sent.
        """
        if about_approval := approval_packets.decode(packet):
            self._approving.handle(each, about_approval, time.monotonic())
        elif about_hub := hub_packets.decode(packet):
            self._answer_about_hub(each, about_hub)
        elif about_pins := pin_packets.decode(packet):
            self._approving.pins.handle(each, about_pins)
        else:
            self._answer(each, packets.decode(packet))

    def send_policy(self, each: Child) -> None:
        """Send the policy in force; a child to which it cannot be sent is killed."""
        if not each.server:
            return  # it has the policy in force at its fork until it names its server
        fd = self._policies.sealed_copy(each.server)
        try:
            packets.hand_out(each.channel, self._policies.digest, fd)
            each.bell.raise_flag()
        except OSError:
            self._family.kill(each)  # or it would go on by rules that are no more
        finally:
            os.close(fd)

    def _answer(self, each: Child, packet: packets.FromChild) -> None:
        now_s = time.monotonic()
        match packet:
            case packets.SessionNamed(server, claim):
                self._take_name(each, server, claim)
            case packets.StartSucceeded(wrapper_id, project):
                self._take_start(each)
                each.wrapper_id, each.project = wrapper_id, project
                self.backoff.forget(each.server)
            case packets.StartFailed(why):
                self._take_start(each)
                self.backoff.note(each.server, harmless(why), now_s)
            case packets.CallLimitRequest():
                packets.answer(each.channel, self.counting.ask(each, packet, now_s))
            case packets.PartIsFull():
                self._send_next_part(each)
            case packets.CallFinished():
                self.counting.report(each, packet, now_s)
            case _:
                assert_never(packet)

    def _answer_about_hub(self, each: Child, packet: hub_packets.FromChild) -> None:
        match packet:
            case hub_packets.OuterQuery(session):
                outer = None if each.server else self.inner.describe(each.who, session)
                hub_packets.describe_outer(each.channel, outer)
            case hub_packets.DefinitionsRequest():
                self._hand_definitions_page(each)
            case hub_packets.DefinitionsWritten():
                self.definitions.take(each.pid, (each.who.uid, each.server))
            case _:
                assert_never(packet)

    def _hand_definitions_page(self, each: Child) -> None:
        """Give a session of a member a file for the definitions; of another server none is kept."""
        rule = self._access_list.last_read().by_server.get(each.server)
        if each.entry is None or rule is None or not rule.is_member:
            packets.refuse_page(each.channel)
        else:
            self.definitions.pages.hand_out(each.pid, each.channel)

    @staticmethod
    def _take_start(each: Child) -> None:
        """Accept the report of a start once, so that a later one cannot cause a backoff."""
        if each.has_started or not each.server:
            raise ChannelError("it reported a start before it named its server, or twice")
        each.has_started = True

    def _take_name(self, each: Child, server: str, claim: str) -> None:
        """Set the server and agent of a session, once, if that agent may use the server."""
        admission = self._access_list.last_read().by_server.get(server)
        if claim.startswith(HUB_CLAIM):
            agent = self.inner.agent_of(each.who, server, claim)
        else:
            agent = agent_of(each.who, server, claim)
        if each.server or not admission or not agent.may_use(admission):
            raise ChannelError("it named a server twice, or one that its agent may not use")
        if why := self._no_room_for(agent, server, admission):
            packets.refuse_more(each.channel, why)
            return
        each.who, each.server = agent.who, server
        each.door, each.via, each.is_hub = agent.door, agent.via, bool(admission.hub)
        if each.policy_digest != self._policies.digest:
            self.send_policy(each)
        opened = self._audit.open(server, each.who, each.tally)
        if opened is None:
            packets.refuse_audit(each.channel)
            return
        each.entry, opening = opened
        try:
            packets.open_audit(each.channel, opening)
        finally:
            os.close(opening.fd)
        # For children that are forked from now on.
        self._policies.compiled(server, server_context(admission))

    def _no_room_for(self, agent: AgentIdentity, server: str, admission: AccessRule) -> str:
        """Return why an agent may open no further session of a server; "" if it may."""
        if agent.door == "login":  # its account need not be an agent of the server
            return ""
        if agent.via:
            self.inner.end_older(agent, server)
            if why := self.inner.why_full(agent):
                return why
        elif agent.door == "http" and self._family.count_of(agent.who.uid) >= MAX_PER_UID:
            return TOO_MANY
        holders = self._family.holders_at(server, but_via=agent.via)
        return session_shares.refusal(server, admission, agent.who.uid, holders)

    def _send_next_part(self, each: Child) -> None:
        """Send a session the next part of its audit."""
        if each.entry is None:
            raise ChannelError("it requested a part before it had an audit file")
        fd = self._audit.next_part(each.entry)
        if fd is None:
            packets.refuse_audit(each.channel)
            return
        try:
            packets.next_part(each.channel, fd)
        finally:
            os.close(fd)

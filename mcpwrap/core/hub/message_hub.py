"""Hub of one session: lines of the agent and of members in, actions out."""

from mcpwrap.core.hub import agent_messages, errors, member_messages, member_start, subscriptions
from mcpwrap.core.hub.state.actions import Action
from mcpwrap.core.hub.state.hub_state import HubState
from mcpwrap.core.hub.state.member_side import MemberSide, Phase
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.raw_message import NotAMessageError
from mcpwrap.core.wire.hub.hub_catalogue import Catalogue
from mcpwrap.core.wire.server_files import HubSpec


class MessageHub:
    """One MCP server made of several. Its actions are carried out in order."""

    def __init__(self, name: str, version: str, spec: HubSpec, catalogue: Catalogue) -> None:
        """`version` is mcpwrap's; the catalogue has what is known of the members at the start."""
        known = {member.name: member for member in catalogue.members}
        members = {}
        for member in sorted(spec.members, key=lambda one: one.name):
            found = known.get(member.name)
            members[member.name] = MemberSide(
                name=member.name,
                namespace=member.namespace,
                refusal=found.refusal if found else "the gate does not know it",
                definitions=found.definitions if found else None,
            )
            members[member.name].note_unlisted("tools", found.held_tools if found else ())
            members[member.name].note_unlisted("prompts", found.held_prompts if found else ())
        instructions = {member.name: member.instructions for member in spec.members}
        self._state = HubState(name, version, members, instructions)
        self._state.expose_again()

    def at(self, now_s: float) -> None:
        """Set the time, in seconds of a monotonic clock, before any other call."""
        self._state.now_s = now_s

    def begun(self) -> list[Action]:
        """Return the actions for the start: what is known, in the journal."""
        self._state.log(self._state.loaded())
        return self._taken()

    def from_agent(self, line: bytes) -> list[Action]:
        """Return the actions for a line of the agent."""
        try:
            messages = raw_message.decode(line)
        except NotAMessageError:
            self._state.log("a line of the agent is not a message")
            return self._taken()
        for message in messages:
            agent_messages.handle(self._state, message)
        return self._taken()

    def from_member(self, name: str, line: bytes) -> list[Action]:
        """Return the actions for a line of a member."""
        member = self._state.members[name]
        try:
            messages = raw_message.decode(line)
        except NotAMessageError:
            member_start.failed(self._state, member, "a line of it is not a message")
            return self._taken()
        for message in messages:
            if member.phase in {Phase.HANDSHAKE, Phase.READY}:  # it may be cut at any of them
                line_bytes = len(line) // len(messages)
                member_messages.handle(self._state, member, message, line_bytes)
        return self._taken()

    def member_opened(self, name: str) -> list[Action]:
        """Return the actions after the gate has started a member."""
        member_start.has_opened(self._state, self._state.members[name])
        return self._taken()

    def member_failed(self, name: str, why: str) -> list[Action]:
        """Return the actions after a member could not be started, has ended, or was cut."""
        member_start.failed(self._state, self._state.members[name], errors.reason(why))
        return self._taken()

    def agent_closed(self) -> list[Action]:
        """Return the actions after the agent has closed its end: it answers no question."""
        agent_messages.closed(self._state)
        return self._taken()

    def is_waited_for(self) -> bool:
        """Return whether the agent waits for a response."""
        state = self._state
        return bool(state.waiting_lists) or any(
            member.waiting or any(opened.is_awaited() for opened in member.open_by_id.values())
            for member in state.members.values()
        )

    def has_sent_all(self, name: str) -> bool:
        """Return whether a member gets nothing more, once the agent has closed its end."""
        member = self._state.members[name]
        return member.phase is Phase.READY and not member.waiting

    def tick(self) -> list[Action]:
        """Return the actions that are due because time has passed."""
        state = self._state
        for member in state.members.values():
            if member.is_starting() and member.due_s <= state.now_s:
                part = "lists" if member.phase is Phase.READY else member.phase.value
                why = f"it took too long ({part})"
                member_start.failed(state, member, why)
            for own_id, own in list(member.own_by_id.items()):
                if own.due_s <= state.now_s and own_id in member.own_by_id:
                    del member.own_by_id[own_id]
                    member_start.expired(state, member, own)
            member_start.read_stale(state, member)
        return self._taken()

    def due_in_s(self) -> float | None:
        """Return the seconds until `tick` may have something to do; None if nothing is due."""
        state = self._state
        due = [state.change_due_s] if state.changed else []
        if state.waiting_lists and state.lists_due_s is not None:
            due.append(state.lists_due_s)
        for member in state.members.values():
            if member.is_starting():
                due.append(member.due_s)
            due += [own.due_s for own in member.own_by_id.values() if own.due_s < float("inf")]
            if (reread_s := member.reread_due_s()) is not None:
                due.append(reread_s)
        return max(0.0, min(due) - state.now_s) if due else None

    def _taken(self) -> list[Action]:
        """Return all actions, after the lists and changes that are due by now."""
        state = self._state
        if state.waiting_lists:
            agent_messages.answer_lists(state)
        subscriptions.notify_if_due(state)
        actions, state.actions = state.actions, []
        return actions

"""Messages of a member: requests to the agent, notifications, and responses."""

from mcpwrap.core.hub import delivery, member_start, rounds, subscriptions
from mcpwrap.core.hub.lists.list_reader import lists_of
from mcpwrap.core.hub.state.hub_state import HubState, MemberQuestion
from mcpwrap.core.hub.state.member_side import MemberSide
from mcpwrap.core.protocol import methods, raw_message
from mcpwrap.core.protocol.jsonrpc import METHOD_NOT_FOUND, Id
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    encoded,
    fields_at,
    fields_of,
    id_at,
    text_at,
)

_LIST_CHANGED = {
    f"notifications/{kind}/list_changed": kind for kind in ("tools", "prompts", "resources")
}
# Forwarded as they are.
_PLAIN = frozenset({methods.LOG, "notifications/elicitation/complete"})
_TASK_STATES = frozenset({methods.TASK_STATE, methods.TASK_STATUS})
MAX_ASKED = 256  # requests of one member that the agent has not answered
_OF_AGENT_TASKS = frozenset({methods.TASKS_GET, methods.TASKS_RESULT, "tasks/cancel"})


def handle(state: HubState, member: MemberSide, message: RawMessage, line_bytes: int) -> None:
    """Handle a message of a member whose session is open, in a line of this length."""
    is_awaited = not message.method and (
        message.id in member.open_by_id or message.id in member.own_by_id
    )
    if not is_awaited and not member.meter.admits(state.now_s, line_bytes):
        member_start.failed(state, member, "it sent too much without a request")
    elif message.method and message.id is not None:
        _request(state, member, message, message.id)
    elif message.method:
        _notification(state, member, message)
    elif message.id is not None:
        _response(state, member, message.id, message)


def _request(state: HubState, member: MemberSide, request: RawMessage, request_id: Id) -> None:
    if request.method == "ping":
        state.to_member(member, raw_message.result(request_id, {}))
        return
    can = _can_ask(state, member, request)
    if can and state.agent.is_modern and rounds.ask_in_result(state, member, request):
        return
    asked = sum(one.member == member.name for one in state.question_by_id.values())
    if can and state.agent.handshake is not None and asked < MAX_ASKED:
        _ask(state, member, request, request_id)
    else:
        text = f"The agent cannot answer {request.method[:80]!a} now"
        state.to_member(member, raw_message.failure(request_id, METHOD_NOT_FOUND, text))


def _can_ask(state: HubState, member: MemberSide, request: RawMessage) -> bool:
    """Return whether a request of a member can be delivered, and concerns no other member.

    `tasks/list` would name the tasks of all members.
    """
    if member.era is not ProtocolEra.HANDSHAKE or state.agent.is_gone:
        return False
    if request.method in _OF_AGENT_TASKS:
        return text_at(fields_of(request.params), "taskId") in member.agent_tasks
    capability = rounds.capability_for(request.method)
    return bool(capability) and state.agent.can(capability)


def _ask(state: HubState, member: MemberSide, request: RawMessage, member_id: Id) -> None:
    """Forward a request under an id of the hub's own: those of two members may be the same."""
    agent_id = state.new_id()
    params = fields_of(request.params)
    meta = fields_at(params, "_meta")
    token = id_at(meta, "progressToken")
    if token is not None:
        params["_meta"] = encoded({**meta, "progressToken": encoded(agent_id)})
    state.question_by_id[agent_id] = MemberQuestion(member.name, member_id, token)
    state.to_agent(raw_message.request(agent_id, request.method, params))


def _notification(state: HubState, member: MemberSide, notification: RawMessage) -> None:
    method, params = notification.method, fields_of(notification.params)
    if kind := _LIST_CHANGED.get(method):
        if kind in member.capabilities:
            member.stale |= set(lists_of([kind]))
            member_start.read_stale(state, member)
    elif method == methods.PROGRESS:
        _progress(state, member, params)
    elif method == methods.CANCELLED:
        _cancel(state, member, params)
    elif method == "notifications/resources/updated":
        if subscriptions.concerns(member.followed, text_at(params, "uri")):
            subscriptions.notify_update(state, notification)
    elif _may_pass(state, member, method, params):
        state.to_agent(raw_message.notification(method, notification.params))


def _may_pass(state: HubState, member: MemberSide, method: str, params: Fields) -> bool:
    """Return whether the agent is sent a notification as it is."""
    if method in _TASK_STATES:
        return text_at(params, "taskId") in member.tasks
    if method == methods.LOG and state.agent.handshake is None:  # source: 2026-07-28, "Logging"
        return any(opened.has_log_level for opened in member.open_by_id.values())
    return method in _PLAIN


def _progress(state: HubState, member: MemberSide, params: Fields) -> None:
    """Forward progress of a request of the agent."""
    own = id_at(params, "progressToken")
    token = None if own is None else member.token_by_own.get(own)
    if token is not None:
        changed = {**params, "progressToken": encoded(token)}
        state.to_agent(raw_message.notification(methods.PROGRESS, changed))


def _cancel(state: HubState, member: MemberSide, params: Fields) -> None:
    """Cancel a request of the member to the agent."""
    member_id = id_at(params, "requestId")
    for agent_id, question in state.question_by_id.items():
        is_it = isinstance(question, MemberQuestion) and question.id == member_id
        if is_it and question.member == member.name:
            changed = {**params, "requestId": encoded(agent_id)}
            state.to_agent(raw_message.notification(methods.CANCELLED, changed))
            del state.question_by_id[agent_id]
            return


def _response(state: HubState, member: MemberSide, member_id: Id, answer: RawMessage) -> None:
    if own := member.own_by_id.pop(member_id, None):
        member_start.own_response(state, member, own, answer)
        return
    opened = member.open_by_id.get(member_id)
    if opened is None:  # answered already, or another member's
        return
    member.failures = 0
    if opened.is_suspended:
        opened.answer = answer
        return
    is_question = (
        member.era is ProtocolEra.MODERN
        and not (opened.is_modern or opened.is_cancelled)
        and opened.request.method in methods.IN_ROUNDS
        and b'"input_required"' in bytes(answer.result)
        and text_at(fields_of(answer.result), "resultType") == "input_required"
    )
    if is_question:
        rounds.ask_in_requests(state, member, member_id, opened, answer.result)
    else:
        delivery.respond(state, member, member_id, opened, answer)

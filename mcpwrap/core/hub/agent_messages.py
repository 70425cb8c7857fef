"""Messages of the agent: each is answered by the hub, or belongs to one member."""

from collections.abc import Callable, Mapping

from mcpwrap.core.hub import (
    delivery,
    member_start,
    replies,
    rounds,
    routing,
    subscriptions,
)
from mcpwrap.core.hub.names import STATUS_TOOL
from mcpwrap.core.hub.state.agent_side import has_envelope
from mcpwrap.core.hub.state.hub_state import HubState, MemberQuestion
from mcpwrap.core.hub.state.member_side import MemberSide, Phase
from mcpwrap.core.protocol import methods, raw_message, server_revisions
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Id, Request
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    encoded,
    fields_at,
    fields_of,
    id_at,
    text_at,
    value_of,
)
from mcpwrap.core.protocol.server_revisions import McpRequestError
from mcpwrap.core.wire.hub.hub_catalogue import LISTS

_LEVELS = frozenset(
    {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
)


def handle(state: HubState, message: RawMessage) -> None:
    """Handle a message of the agent."""
    if not message.method:
        _response(state, message)
    elif message.id is None:
        _notification(state, message)
    else:
        _request(state, message, message.id)


def _request(state: HubState, request: RawMessage, request_id: Id) -> None:
    params = fields_of(request.params)
    try:
        _note_revision(state, request, request_id, params)
        handler = _HANDLERS.get(request.method, _forward)
        handler(state, request, request_id, params)
    except McpRequestError as error:
        state.fail(request_id, error.code, str(error), error.data)


def _note_revision(state: HubState, request: RawMessage, request_id: Id, params: Fields) -> None:
    meta = fields_at(params, "_meta")
    decoded = {"_meta": value_of(params["_meta"])} if "_meta" in params else {}
    revision = server_revisions.revision_of(
        Request(request_id, request.method, decoded), state.agent.handshake
    )
    era = ProtocolEra.MODERN if has_envelope(request) else ProtocolEra.HANDSHAKE
    if methods.agent_request(request.method, era) is None:
        raise server_revisions.unknown_method(request.method)
    state.agent.sends(revision, meta)
    if state.agent.profile is not state.exposed_for:
        state.expose_again()


def _initialize(state: HubState, _request: RawMessage, request_id: Id, params: Fields) -> None:
    wanted = {"protocolVersion": text_at(params, "protocolVersion") or None}
    state.agent.shake_hands(server_revisions.negotiated(wanted), params)
    if state.agent.profile is not state.exposed_for:
        state.expose_again()
    state.to_agent(raw_message.result(request_id, replies.handshake(state)))
    member_start.start_unknown(state)


def _discover(state: HubState, _request: RawMessage, request_id: Id, _params: Fields) -> None:
    state.to_agent(raw_message.result(request_id, replies.discovery(state)))
    member_start.start_unknown(state)


def _ping(state: HubState, _request: RawMessage, request_id: Id, _params: Fields) -> None:
    state.to_agent(raw_message.result(request_id, {}))


def _list(state: HubState, request: RawMessage, _request_id: Id, params: Fields) -> None:
    server_revisions.check_cursor({"cursor": text_at(params, "cursor") or None})
    member_start.start_unknown(state)
    state.waiting_lists.append(request)
    answer_lists(state)


def answer_lists(state: HubState) -> None:
    """Answer the lists that wait, if each member's first one is there, or the time is over."""
    is_waiting = any(member.is_first_start() for member in state.members.values())
    if is_waiting and state.lists_due_s is not None and state.now_s < state.lists_due_s:
        return
    waiting, state.waiting_lists = state.waiting_lists, []
    for request in waiting:
        result = replies.listed(state, request.method)
        if has_envelope(request):
            result = {**replies.cached(state), **result}
        if request.id is not None:
            state.to_agent(raw_message.result(request.id, result))


def _call(state: HubState, request: RawMessage, request_id: Id, params: Fields) -> None:
    if text_at(params, "name") != STATUS_TOOL:
        _forward(state, request, request_id, params)
        return
    member_start.start_unknown(state)
    replies.reply(state, request_id, replies.status(state))


def _forward(state: HubState, request: RawMessage, _request_id: Id, params: Fields) -> None:
    member, renamed = routing.target_of(state, request, params)
    if not rounds.resume(state, member, renamed, params):
        member_start.route(state, member, renamed)


def _set_level(state: HubState, _request: RawMessage, request_id: Id, params: Fields) -> None:
    level = text_at(params, "level")
    if level not in _LEVELS:
        raise McpRequestError(INVALID_PARAMS, f"level must be one of {', '.join(sorted(_LEVELS))}")
    state.agent.log_level = level
    for member in state.members.values():
        if member.phase is Phase.READY and member.era is ProtocolEra.HANDSHAKE:
            delivery.set_log_level(state, member, state.agent.log_level)
    state.to_agent(raw_message.result(request_id, {}))


def _listen(state: HubState, _request: RawMessage, request_id: Id, params: Fields) -> None:
    if len(state.listens) >= subscriptions.MAX_LISTENS:
        raise McpRequestError(INVALID_PARAMS, "too many subscriptions")
    owner_by_uri: dict[str, MemberSide] = {}
    for uri in subscriptions.wanted_uris(params):
        try:
            owner_by_uri[uri] = routing.owner_of(state, uri)
        except McpRequestError as error:
            state.log(f"no subscription: {error}")
    subscriptions.listen(state, request_id, params, owner_by_uri)
    for uri, member in owner_by_uri.items():
        subscriptions.follow(state, member, uri)
        if member_start.may_start(state, member):
            member_start.open_member(state, member)


_Handler = Callable[[HubState, RawMessage, Id, Fields], None]
_HANDLERS: Mapping[str, _Handler] = {
    methods.INITIALIZE: _initialize,
    methods.DISCOVER: _discover,
    methods.TOOLS_CALL: _call,
    methods.LISTEN: _listen,
    "ping": _ping,
    "logging/setLevel": _set_level,
    **dict.fromkeys(LISTS, _list),
}


def _notification(state: HubState, notification: RawMessage) -> None:
    method, params = notification.method, fields_of(notification.params)
    if method == methods.CANCELLED:
        _cancel(state, params)
    elif method == methods.PROGRESS:
        _progress(state, params)
    for member in state.members.values():
        is_ready = member.phase is Phase.READY and member.era is ProtocolEra.HANDSHAKE
        is_for_it = method == "notifications/roots/list_changed" or (
            method == methods.TASK_STATUS and text_at(params, "taskId") in member.agent_tasks
        )
        if is_ready and is_for_it:
            state.to_member(member, raw_message.notification(method, notification.params))


def _cancel(state: HubState, params: Fields) -> None:
    request_id = id_at(params, "requestId")
    if request_id is None:
        return
    subscriptions.unlisten(state, request_id)
    state.waiting_lists = [one for one in state.waiting_lists if one.id != request_id]
    for member in state.members.values():
        member.waiting = [one for one in member.waiting if one.id != request_id]
        for member_id, opened in list(member.open_by_id.items()):
            if opened.agent_id == request_id and opened.is_awaited():
                _cancel_at(state, member, member_id, params)


def _cancel_at(state: HubState, member: MemberSide, member_id: Id, params: Fields) -> None:
    opened = member.open_by_id[member_id]
    if opened.round is not None and opened.round.missing:  # the member has answered
        rounds.end_round(state, member, member_id)
        return
    opened.is_cancelled = True
    changed = {**params, "requestId": encoded(member_id)}
    state.to_member(member, raw_message.notification(methods.CANCELLED, changed))


def _progress(state: HubState, params: Fields) -> None:
    """Forward progress of a request that a member has sent."""
    token = id_at(params, "progressToken")
    question = None if token is None else state.question_by_id.get(token)
    if isinstance(question, MemberQuestion) and question.token is not None:
        changed = {**params, "progressToken": encoded(question.token)}
        line = raw_message.notification(methods.PROGRESS, changed)
        state.to_member(state.members[question.member], line)


def _response(state: HubState, answer: RawMessage) -> None:
    question = None if answer.id is None else state.question_by_id.pop(answer.id, None)
    if question is None or answer.id is None:
        return
    if not isinstance(question, MemberQuestion):
        rounds.answered(state, question, answer)
        return
    member = state.members[question.member]
    if bytes(answer.error):
        line = raw_message.failure_as_is(question.id, answer.error)
    else:
        member.agent_tasks.add(delivery.task_id_of(fields_of(answer.result)))
        line = raw_message.result(question.id, answer.result)
    state.to_member(member, line)


def closed(state: HubState) -> None:
    """Answer what members have asked: the agent has closed its end, and will not."""
    state.agent.is_gone = True
    for question_id in list(state.question_by_id):
        error = encoded({"code": INTERNAL_ERROR, "message": "The agent has gone"})
        _response(state, RawMessage(id=question_id, error=error))
    for member in state.members.values():
        for member_id, opened in list(member.open_by_id.items()):
            if opened.is_suspended:
                rounds.abandon(state, member, member_id)

"""Delivery of requests to members and of their responses to the agent, in the era of each."""

import msgspec

from mcpwrap.core.hub import errors, subscriptions
from mcpwrap.core.hub.state.agent_side import ENVELOPE_KEYS, LOG_LEVEL
from mcpwrap.core.hub.state.hub_state import OWN_IDS, HubState
from mcpwrap.core.hub.state.member_side import MemberSide, OpenRequest, OwnKind, OwnRequest
from mcpwrap.core.protocol import methods, raw_message
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.methods import PROTOCOL_VERSION, ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    elements_of,
    encoded,
    fields_at,
    fields_of,
    id_at,
    text_at,
)

_SUBSCRIBE = "resources/subscribe"
_SUBSCRIBING = frozenset({_SUBSCRIBE, "resources/unsubscribe"})
_OF_ROUNDS = ("inputResponses", "requestState")  # keys of params that older servers do not have
_COMPLETE = msgspec.Raw(b'"complete"')
_CACHE = {"ttlMs": msgspec.Raw(b"0"), "cacheScope": msgspec.Raw(b'"private"')}


def deliver(state: HubState, member: MemberSide, request: RawMessage) -> None:
    """Send a request to a member that is ready. It keeps its id: the session has one agent.

    Only an id that the member has already, or that looks like one of the hub's own, is replaced.
    """
    if request.id is None:
        return
    if request.method in _SUBSCRIBING:
        _subscribe(state, member, request, request.id)
    else:
        send(state, member, request, request.id, _free_id(state, member, request.id))


def _free_id(state: HubState, member: MemberSide, agent_id: Id) -> Id:
    is_own = isinstance(agent_id, str) and agent_id.startswith(OWN_IDS)
    return state.own_id() if is_own or agent_id in member.open_by_id else agent_id


def _subscribe(state: HubState, member: MemberSide, request: RawMessage, request_id: Id) -> None:
    """Subscribe to a resource, or end that; a member of 2026-07-28 has no such requests."""
    uri = text_at(fields_of(request.params), "uri")
    if member.era is not ProtocolEra.MODERN:
        if request.method == _SUBSCRIBE:
            member.followed.add(uri)
        else:
            member.followed.discard(uri)
        member.follows.pop(uri, None)
        send(state, member, request, request_id, _free_id(state, member, request_id))
        return
    if request.method == _SUBSCRIBE:
        subscriptions.follow(state, member, uri)
    else:
        subscriptions.unfollow(state, member, uri)
    state.to_agent(raw_message.result(request_id, {}))


def send(
    state: HubState, member: MemberSide, request: RawMessage, agent_id: Id, member_id: Id
) -> None:
    """Send a request under one id; its response goes to the agent under another."""
    params = fields_of(request.params)
    meta = fields_at(params, "_meta")
    token = id_at(meta, "progressToken")
    is_modern = PROTOCOL_VERSION in meta
    if is_modern is not (member.era is ProtocolEra.MODERN):
        params = _translated(state, member, params, meta)
    member.open_by_id[member_id] = OpenRequest(
        agent_id, request, is_modern=is_modern, has_log_level=LOG_LEVEL in meta, token=token
    )
    if token is not None:
        member.token_by_own[token] = token
    state.to_member(member, raw_message.request(member_id, request.method, params))


def _translated(state: HubState, member: MemberSide, params: Fields, meta: Fields) -> Fields:
    """Return params with the envelope that the member's era has, or without one."""
    if member.era is ProtocolEra.MODERN:
        return {**params, "_meta": encoded({**meta, **state.agent.envelope()})}
    if level := text_at(meta, LOG_LEVEL):
        set_log_level(state, member, level)
    rest = {key: raw for key, raw in meta.items() if key not in ENVELOPE_KEYS}
    without = {key: raw for key, raw in params.items() if key not in {"_meta", *_OF_ROUNDS}}
    return {**without, "_meta": encoded(rest)} if rest else without


def set_log_level(state: HubState, member: MemberSide, level: str) -> None:
    """Set the log level of a member that has a handshake; the agent may change it at any time."""
    if member.log_level == level or "logging" not in member.capabilities:
        return
    member.log_level = level
    params = {"level": encoded(level)}
    state.send_own(member, OwnRequest(OwnKind.SETTING), "logging/setLevel", params)


def respond(
    state: HubState, member: MemberSide, member_id: Id, opened: OpenRequest, answer: RawMessage
) -> None:
    """Send a member's response to the agent."""
    member.take(member_id)
    if bytes(answer.error):
        state.to_agent(raw_message.failure_as_is(opened.agent_id, answer.error))
        return
    result = answer.result
    if _may_name_something(result) and (why := _note_names(state, member, opened, result)):
        errors.unavailable(state, opened.as_agent_sent(), member, why)
        return
    if opened.is_modern and member.era is ProtocolEra.HANDSHAKE:
        result = _completed(opened.request.method, result)
    state.to_agent(raw_message.result(opened.agent_id, result))


def _completed(method: str, result: msgspec.Raw) -> msgspec.Raw:
    """Return a result of the handshake era in the form of 2026-07-28."""
    found = fields_of(result)
    added = {} if "resultType" in found else {"resultType": _COMPLETE}
    if method == "resources/read":
        added |= {key: raw for key, raw in _CACHE.items() if key not in found}
    return encoded({**added, **found})


def _may_name_something(result: msgspec.Raw) -> bool:
    """Return whether a result may have a URI or a task; to look for them takes time."""
    text = bytes(result)
    return b'"uri"' in text or b'"taskId"' in text


def _note_names(
    state: HubState, member: MemberSide, opened: OpenRequest, result: msgspec.Raw
) -> str:
    """Note the URIs and the task of a result; return why the task cannot be this member's."""
    found = fields_of(result)
    task_id = task_id_of(found)
    if task_id and opened.request.method == methods.TOOLS_CALL:
        for other in state.members.values():
            if task_id in other.tasks and other is not member:
                return f"its task has the id of one of {other.name}"
        member.tasks.add(task_id)
    if "resources" in member.capabilities:
        messages = map(fields_of, elements_of(found.get("messages")))
        contents = [message["content"] for message in messages if "content" in message]
        for block in map(fields_of, [*elements_of(found.get("content")), *contents]):
            inner = fields_at(block, "resource") if "resource" in block else block
            member.uris.add(text_at(inner, "uri"))
    return ""


def task_id_of(result: Fields) -> str:
    """Return the id of the task that a result names; "" if it names none."""
    return text_at(fields_at(result, "task") if "task" in result else result, "taskId")


def withdraw_questions(state: HubState, member: MemberSide) -> None:
    """Cancel the requests to the agent that a member has open: it does not read the responses."""
    for question_id, question in list(state.question_by_id.items()):
        if question.member == member.name:
            withdraw(state, question_id)


def withdraw(state: HubState, question_id: Id) -> None:
    """Cancel a request of the hub to the agent."""
    del state.question_by_id[question_id]
    params = {"requestId": question_id, "reason": "its server waits for no response"}
    state.to_agent(raw_message.notification(methods.CANCELLED, params))

"""Notifications to the agent of changed lists and resources, in the form of its era."""

from collections.abc import Collection, Iterable

import msgspec

from mcpwrap.core.hub.state.hub_state import HubState, Listen
from mcpwrap.core.hub.state.member_side import MemberSide, OwnKind, OwnRequest, Phase
from mcpwrap.core.protocol import methods, raw_message
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    elements_of,
    encoded,
    fields_at,
    fields_of,
    text_at,
    value_of,
)

# Agents read a list again after each of these, and pay for it.
QUIET_S = 2.0  # several members that start change the lists one by one
MAX_LISTENS = 64
_FILTERS = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
_URIS = "resourceSubscriptions"


def wanted_uris(params: Fields) -> list[str]:
    """Return the URIs that a subscription of 2026-07-28 is to have."""
    elements = elements_of(fields_at(params, "notifications").get(_URIS))
    return sorted({uri for raw in elements if isinstance(uri := value_of(raw), str)})


def listen(state: HubState, request_id: Id, params: Fields, uris: Collection[str]) -> None:
    """Begin a subscription with these of its URIs, and acknowledge them."""
    wanted = fields_at(params, "notifications")
    kinds = [kind for kind, key in _FILTERS.items() if wanted.get(key) == msgspec.Raw(b"true")]
    state.listens[request_id] = Listen(frozenset(kinds), frozenset(uris))
    state.listed.update(kinds)  # its lists may be of an earlier session
    accepted: dict[str, object] = dict.fromkeys((_FILTERS[kind] for kind in kinds), True)
    if uris:
        accepted[_URIS] = list(uris)
    method = "notifications/subscriptions/acknowledged"
    _notify(state, request_id, method, {"notifications": encoded(accepted)})


def unlisten(state: HubState, request_id: Id) -> None:
    """End a subscription, and those to resources that no other one has."""
    ended = state.listens.pop(request_id, None)
    if ended is None:
        return
    kept = {uri for listened in state.listens.values() for uri in listened.uris}
    for member in state.members.values():
        for uri in (member.followed & ended.uris) - kept:
            unfollow(state, member, uri)


def follow(state: HubState, member: MemberSide, uri: str) -> None:
    """Subscribe to a resource of a member, in its era, if it is ready and this is not done."""
    member.followed.add(uri)
    if member.phase is not Phase.READY or uri in member.follows:
        return
    if member.era is ProtocolEra.MODERN:
        method = methods.LISTEN
        params = {
            "_meta": encoded(state.agent.envelope()),
            "notifications": encoded({_URIS: [uri]}),
        }
    else:
        method, params = "resources/subscribe", {"uri": encoded(uri)}
    member.follows[uri] = state.send_own(member, OwnRequest(OwnKind.SETTING), method, params)


def unfollow(state: HubState, member: MemberSide, uri: str) -> None:
    """End the subscription to a resource of a member."""
    member.followed.discard(uri)
    request_id = member.follows.pop(uri, None)
    if request_id is None:
        return
    if member.era is ProtocolEra.MODERN:
        member.own_by_id.pop(request_id, None)
        params: Fields = {"requestId": encoded(request_id)}
        state.to_member(member, raw_message.notification(methods.CANCELLED, params))
    else:
        params = {"uri": encoded(uri)}
        own = OwnRequest(OwnKind.SETTING)
        state.send_own(member, own, "resources/unsubscribe", params)


def notify_soon(state: HubState) -> None:
    """Have the agent notified of changes at once, unless it was notified just before.

    A change in a session that runs is waited for: a person may have accepted a definition.
    """
    state.change_due_s = max(state.now_s, state.notified_s + QUIET_S)


def notify_if_due(state: HubState) -> None:
    """Notify the agent of changes, if the first one is some time ago."""
    if not state.changed:
        state.change_due_s = 0.0
        return
    state.change_due_s = state.change_due_s or state.now_s + QUIET_S
    if state.now_s >= state.change_due_s:
        state.change_due_s, state.notified_s = 0.0, state.now_s
        notify_changes(state)


def notify_changes(state: HubState) -> None:
    """Notify the agent of all changed lists, once each."""
    kinds = state.changed_kinds()
    state.changed.clear()
    for kind in kinds:
        method = f"notifications/{kind}/list_changed"
        if state.agent.handshake is not None:
            state.to_agent(raw_message.notification(method, {}))
        for listen_id, listened in state.listens.items():
            if kind in listened.kinds:
                _notify(state, listen_id, method, {})


def notify_update(state: HubState, notification: RawMessage) -> None:
    """Notify the agent that a resource has changed, as its member reports."""
    params = fields_of(notification.params)
    uri = text_at(params, "uri")
    for listen_id, listened in state.listens.items():
        if concerns(listened.uris, uri):
            _notify(state, listen_id, notification.method, params)
    if state.agent.handshake is not None:
        meta = fields_at(params, "_meta")
        if meta.pop(methods.SUBSCRIPTION, None):
            del params["_meta"]
            params |= {"_meta": encoded(meta)} if meta else {}
        state.to_agent(raw_message.notification(notification.method, params))


def concerns(followed: Iterable[str], uri: str) -> bool:
    """Return whether a change of a resource is one of these, or of a part of one.

    Source: `ResourceUpdatedNotification` in schema.ts, "a sub-resource of the one".
    """
    return any(uri.startswith(one) for one in followed)


def _notify(state: HubState, listen_id: Id, method: str, params: Fields) -> None:
    meta = fields_at(params, "_meta")
    meta[methods.SUBSCRIPTION] = encoded(listen_id)
    state.to_agent(raw_message.notification(method, {**params, "_meta": encoded(meta)}))

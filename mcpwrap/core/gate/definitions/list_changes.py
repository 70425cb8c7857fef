"""Notifications to the agent that a list has changed without the server: more of it is accepted."""

from collections.abc import Collection, Mapping

from mcpwrap.core.gate.session import SessionState
from mcpwrap.core.pins.definitions import Kind
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode

# An agent gets what a server reports of itself once, so there is no notification of that.
_LISTS: Mapping[Kind, str] = {"tool": "tools", "prompt": "prompts", "template": "resources"}


def notifications(session: SessionState, kinds: Collection[Kind]) -> list[bytes]:
    """Return the notifications, in the form of the agent's era; none that it does not wait for.

    Source: 2026-07-28, subscriptions: each has the id of the request that it belongs to.
    """
    sent = list[bytes]()
    for list_ in (list_ for kind, list_ in _LISTS.items() if kind in kinds):
        method = f"notifications/{list_}/list_changed"
        if session.has_handshake:
            sent.append(encode({"jsonrpc": "2.0", "method": method}))
        for listen_id, context in session.requests_from_agent.open_by(methods.LISTEN):
            if list_ in context.listens:
                params: Json = {"_meta": {methods.SUBSCRIPTION: listen_id}}
                sent.append(encode({"jsonrpc": "2.0", "method": method, "params": params}))
    return sent

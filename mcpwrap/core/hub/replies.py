"""Replies that a hub gives itself: handshake, lists, and the tool `mcpwrap_status`."""

import msgspec

from mcpwrap.core.hub.lists.exposed_lists import ExposedEntry
from mcpwrap.core.hub.lists.instructions import combined
from mcpwrap.core.hub.names import STATUS_TOOL
from mcpwrap.core.hub.state.hub_state import HubState
from mcpwrap.core.hub.state.member_side import MemberSide, Phase
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.protocol.raw_message import Fields, encoded, fields_at, fields_of
from mcpwrap.core.protocol.server_revisions import MODERN, SERVER_INFO
from mcpwrap.core.wire.hub.hub_catalogue import LISTS

# A hub declares all of these while it does not know what a member has: agents ask once.
_FORMS: dict[str, Json] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
# Those of which a hub forwards all methods; /ui has none of its own.
_EXTENSIONS = ("io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui")
_STATUS: dict[str, Json] = {
    "name": STATUS_TOOL,
    "title": "Status of the servers behind this one",
    "description": "Lists the servers behind this one, and says which is missing and why.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


def handshake(state: HubState) -> Fields:
    """Return the result of `initialize`."""
    return {
        "protocolVersion": encoded(state.agent.revision),
        "capabilities": encoded(_capabilities(state)),
        "serverInfo": encoded(_info(state)),
        **_instructions(state),
    }


def discovery(state: HubState) -> Fields:
    """Return the result of `server/discover`."""
    return {
        **cached(state),
        "supportedVersions": encoded([MODERN]),
        "capabilities": encoded(_capabilities(state)),
        **_instructions(state),
    }


def listed(state: HubState, method: str) -> Fields:
    """Return the result of a list, which has one page."""
    lists, kind = state.lists, LISTS[method]
    match kind.field:
        case "tools":
            entries = {**lists.tools, STATUS_TOOL: ExposedEntry("", "", encoded(_STATUS))}
            values = [entries[name].definition for name in sorted(entries)]
        case "prompts":
            values = [entry.definition for entry in lists.prompts.values()]
        case "resources":
            values = lists.resources
        case _:
            values = lists.templates
    state.listed.add(kind.field)
    state.changed.discard(kind.field)
    return {kind.key: encoded(values)}


def cached(state: HubState) -> Fields:
    """Return the keys that a list has since 2026-07-28."""
    return {
        "resultType": encoded("complete"),
        "ttlMs": encoded(0),  # `list_changed` is what tells an agent
        "cacheScope": encoded("private"),  # it is the list of this agent
        "_meta": encoded({SERVER_INFO: _info(state)}),
    }


def reply(state: HubState, request_id: Id, result: Fields) -> None:
    """Answer a request of the agent with a result of the hub's own."""
    if state.agent.is_modern:
        result = {"resultType": encoded("complete"), **result}
    state.to_agent(raw_message.result(request_id, result))


def status(state: HubState) -> Fields:
    """Return the result of the tool `mcpwrap_status`."""
    lines = [_line(state, member) for member in state.members.values()]
    lines += [
        f"{one.member}: {one.name!a} is left out: {one.reason}" for one in state.lists.omitted
    ]
    text = "\n".join([state.loaded(), *lines])
    content: Json = [{"type": "text", "text": text}]
    return {"content": encoded(content), "isError": msgspec.Raw(b"false")}


def _line(state: HubState, member: MemberSide) -> str:
    tools = sum(entry.member == member.name for entry in state.lists.tools.values())
    if member.refusal:
        return f"{member.name}: {member.refusal}"
    about = "nothing known yet" if member.definitions is None else f"{tools} tools"
    if member.why:
        is_there = member.phase is Phase.READY
        why = f"{member.why} (`mcpwrap status {member.name}`)"
        return f"{member.name}: {about}, {'' if is_there else 'does not answer: '}{why}"
    return f"{member.name}: {about}, {member.phase.value}"


def _info(state: HubState) -> dict[str, Json]:
    return {"name": state.hub, "version": state.version}


def _capabilities(state: HubState) -> dict[str, object]:
    """Return what the members can do, and all that a hub can while one of them is not known."""
    members = [member for member in state.members.values() if not member.refusal]
    names = {"tools"}
    tasks: Fields = {}
    extensions: Fields = {}
    for member in members:
        if member.definitions is None:
            names |= _FORMS.keys()
            continue
        found = fields_of(member.definitions.capabilities)
        names |= found.keys() & _FORMS.keys()
        tasks |= fields_at(found, "tasks")
        extensions |= fields_at(found, "extensions")
    tasks.pop("list", None)  # ids are mapped one by one
    kept = {name: extensions[name] for name in _EXTENSIONS if name in extensions}
    more = {"tasks": tasks, "extensions": kept}
    return {**{n: _FORMS[n] for n in sorted(names)}, **{n: v for n, v in more.items() if v}}


def _instructions(state: HubState) -> Fields:
    offered = [member for member in state.members.values() if not member.refusal]
    text = combined(
        {member.name: (member.namespace, _instructions_of(state, member)) for member in offered}
    )
    return {"instructions": encoded(text)} if text else {}


def _instructions_of(state: HubState, member: MemberSide) -> str:
    """Return the instructions of a member itself, then those of the configuration."""
    own = member.definitions.instructions if member.definitions else ""
    return "\n".join(filter(None, (own, state.instructions.get(member.name, ""))))

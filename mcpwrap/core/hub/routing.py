"""Routing: the one member that a request of the agent is for, found in the lists and never guessed.

A name or URI that two members have, or none, has no owner: the request is refused.
"""

from collections.abc import Collection, Mapping

import msgspec

from mcpwrap.core.hub.errors import AMBIGUOUS
from mcpwrap.core.hub.lists.exposed_lists import ExposedEntry
from mcpwrap.core.hub.names import STATUS_TOOL
from mcpwrap.core.hub.state.hub_state import HubState
from mcpwrap.core.hub.state.member_side import MemberSide
from mcpwrap.core.protocol import methods, server_revisions
from mcpwrap.core.protocol.jsonrpc import INVALID_PARAMS
from mcpwrap.core.protocol.raw_message import Fields, RawMessage, encoded, fields_at, text_at
from mcpwrap.core.protocol.server_revisions import McpRequestError

_BY_URI = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_BY_TASK = frozenset({methods.TASKS_GET, methods.TASKS_RESULT, "tasks/cancel", "tasks/update"})


def target_of(
    state: HubState, request: RawMessage, params: Fields
) -> tuple[MemberSide, RawMessage]:
    """Return the member that a request is for, and the request with the member's own names.

    Raises:
        McpRequestError: there is no such member, or more than one.
    """
    match request.method:
        case methods.TOOLS_CALL:
            lists = state.lists
            return _named(state, request, params, lists.tools, lists.unlisted_tools)
        case "prompts/get":
            lists = state.lists
            return _named(state, request, params, lists.prompts, lists.unlisted_prompts)
        case "completion/complete":
            return _completed(state, request, params)
        case method if method in _BY_URI:
            return owner_of(state, text_at(params, "uri")), request
        case method if method in _BY_TASK:
            return _of_task(state, text_at(params, "taskId")), request
        case method:
            raise server_revisions.unknown_method(method)


def _named(
    state: HubState,
    request: RawMessage,
    params: Fields,
    entries: Mapping[str, ExposedEntry],
    unlisted: Mapping[str, ExposedEntry],
) -> tuple[MemberSide, RawMessage]:
    name = text_at(params, "name")
    entry = entries.get(name) or unlisted.get(name)
    if entry is None:
        kind = "tool" if request.method == methods.TOOLS_CALL else "prompt"
        text = f"Unknown {kind}: {name[:200]!a}. {missing_of(state)}"
        raise McpRequestError(INVALID_PARAMS, text)
    renamed = encoded({**params, "name": encoded(entry.name)})
    return state.members[entry.member], msgspec.structs.replace(request, params=renamed)


def missing_of(state: HubState) -> str:
    """Return which members are not there and why, for an error."""
    missing = "; ".join(state.missing())
    return f"Missing are {missing}" if missing else f"The tool {STATUS_TOOL} shows what is there"


def _completed(
    state: HubState, request: RawMessage, params: Fields
) -> tuple[MemberSide, RawMessage]:
    reference = fields_at(params, "ref")
    if text_at(reference, "type") == "ref/prompt":
        entry = state.lists.prompts.get(text_at(reference, "name"))
        if entry is not None:
            renamed = encoded({**reference, "name": encoded(entry.name)})
            changed = encoded({**params, "ref": renamed})
            return state.members[entry.member], msgspec.structs.replace(request, params=changed)
    elif owners := state.lists.owners_of_template(uri := text_at(reference, "uri")):
        return _only(state, owners, uri), request
    raise McpRequestError(INVALID_PARAMS, "No server behind this one has what `ref` names")


def owner_of(state: HubState, uri: str) -> MemberSide:
    """Return the member that has a resource: by its list, its templates, or a result of it.

    Raises:
        McpRequestError: there is no such member, or more than one.
    """
    members = state.members.values()
    named_by = frozenset(member.name for member in members if uri in member.uris)
    owners = state.lists.owners(uri, named_by)
    if not owners:
        owners = frozenset(member.name for member in members if member.has("resources"))
        if len(owners) != 1:
            raise server_revisions.resource_not_found(uri[:200], state.agent.revision)
    return _only(state, owners, uri)


def _only(state: HubState, owners: Collection[str], uri: str) -> MemberSide:
    first, *others = sorted(owners)
    if others:
        both = " and ".join([first, *others])
        text = f"{uri[:200]!a} is ambiguous: {both} have it. Connect to one of them"
        raise McpRequestError(AMBIGUOUS, text)
    return state.members[first]


def _of_task(state: HubState, task_id: str) -> MemberSide:
    for member in state.members.values():
        if task_id in member.tasks:
            return member
    raise McpRequestError(INVALID_PARAMS, "No server behind this one has this task")

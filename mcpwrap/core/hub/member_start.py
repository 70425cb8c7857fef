"""Start of a member: its session, a handshake in the agent's era or the other one, its lists."""

import math

import msgspec

from mcpwrap.core.hub import delivery, errors, rounds, subscriptions
from mcpwrap.core.hub.lists.list_reader import (
    ListReader,
    has_entries,
    lists_of,
    unchanged_kept,
    with_list,
)
from mcpwrap.core.hub.state.actions import CloseMember, OpenMember
from mcpwrap.core.hub.state.hub_state import HubState
from mcpwrap.core.hub.state.member_side import (
    HANDSHAKE_S,
    LIST_S,
    OPEN_S,
    PROBE_S,
    REREAD_S,
    MemberSide,
    OwnKind,
    OwnRequest,
    Phase,
)
from mcpwrap.core.protocol import methods, raw_message
from mcpwrap.core.protocol.jsonrpc import METHOD_NOT_FOUND
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    elements_of,
    encoded,
    fields_of,
    text_at,
)
from mcpwrap.core.protocol.server_revisions import MODERN
from mcpwrap.core.wire.hub.hub_catalogue import Definitions

NEWEST_HANDSHAKE = "2025-11-25"
FIRST_CALL_S = 60.0  # a call waits so long for the lists of a member that has shaken hands
FIRST_LISTS_S = 2.0  # an agent with nothing known waits so long for its members' first lists
_MAX_CAPABILITIES_BYTES = 64 * 1024
_MAX_INSTRUCTIONS_CHARS = 4096  # twice what agents read
# The list that has to be read before a request: the member's gate refuses what it holds back once
# the server has listed it in this session, and the agent may know it from an earlier one.
_LIST_BEFORE = {methods.TOOLS_CALL: methods.TOOLS_LIST, "prompts/get": methods.PROMPTS_LIST}


def start_unknown(state: HubState) -> None:
    """Start all members that have not listed anything yet, side by side; ask again for lists."""
    for member in state.members.values():
        if member.phase is Phase.READY and member.list_errors and not member.is_reading():
            read_lists(state, member, list(member.list_errors))
        elif member.definitions is None and may_start(state, member):
            open_member(state, member)
            if state.lists_due_s is None:
                state.lists_due_s = state.now_s + FIRST_LISTS_S


def may_start(state: HubState, member: MemberSide) -> bool:
    """Return whether a member is not open, and may be now."""
    is_open = member.phase is not Phase.CLOSED
    return not (member.refusal or is_open or state.now_s < member.retry_at_s)


def route(state: HubState, member: MemberSide, request: RawMessage) -> None:
    """Send a request of the agent to a member, which is started if it must be."""
    if member.phase is Phase.READY and _LIST_BEFORE.get(request.method) not in member.unread:
        delivery.deliver(state, member, request)
    elif member.phase is not Phase.CLOSED:
        member.waiting.append(request)
    elif state.now_s < member.retry_at_s:
        in_s = math.ceil(member.retry_at_s - state.now_s)
        errors.unavailable(state, request, member, f"{member.why}; it is tried again in {in_s} s")
    else:
        member.waiting.append(request)
        open_member(state, member)


def open_member(state: HubState, member: MemberSide) -> None:
    """Have the supervisor open the session of a member."""
    member.phase, member.due_s = Phase.OPENING, state.now_s + OPEN_S
    state.actions.append(OpenMember(member.name))


def has_opened(state: HubState, member: MemberSide) -> None:
    """Begin the handshake: the member's server runs. One that was given up is closed."""
    if member.phase is Phase.CLOSED:
        state.actions.append(CloseMember(member.name))
    if member.phase is not Phase.OPENING:
        return
    member.phase, member.due_s = Phase.HANDSHAKE, state.now_s + HANDSHAKE_S
    _shake_hands(state, member, modern=state.agent.is_modern)


def _shake_hands(state: HubState, member: MemberSide, *, modern: bool) -> None:
    member.eras_tried.add(ProtocolEra.MODERN if modern else ProtocolEra.HANDSHAKE)
    agent = state.agent
    if modern:
        own, method = OwnRequest(OwnKind.PROBE, state.now_s + PROBE_S), methods.DISCOVER
        params: Fields = {"_meta": encoded(agent.envelope())}
    else:
        own, method = OwnRequest(OwnKind.HANDSHAKE), methods.INITIALIZE
        revision = NEWEST_HANDSHAKE if agent.is_modern else agent.revision
        params = {
            "protocolVersion": encoded(revision),
            "capabilities": agent.capabilities,
            "clientInfo": agent.info,
        }
    state.send_own(member, own, method, params)


def own_response(state: HubState, member: MemberSide, own: OwnRequest, answer: RawMessage) -> None:
    """Handle the response to a request of the hub's own."""
    match own.kind:
        case OwnKind.PROBE:
            _probe_answered(state, member, answer)
        case OwnKind.HANDSHAKE:
            _handshake_answered(state, member, answer)
        case OwnKind.LIST if own.reader is not None:
            _page_answered(state, member, own.reader, answer)
        case _:
            pass  # without them there are fewer notifications, and all else works


def _probe_answered(state: HubState, member: MemberSide, answer: RawMessage) -> None:
    found = fields_of(answer.result)
    if encoded(MODERN) in elements_of(found.get("supportedVersions")):
        _ready(state, member, ProtocolEra.MODERN, found)
    else:
        _is_not_modern(state, member)


def _is_not_modern(state: HubState, member: MemberSide) -> None:
    """Try the other handshake, after a member has refused that of 2026-07-28 or not answered."""
    if ProtocolEra.HANDSHAKE in member.eras_tried:
        failed(state, member, f"it refuses the handshake: {member.handshake_error}")
    else:
        _shake_hands(state, member, modern=False)


def _handshake_answered(state: HubState, member: MemberSide, answer: RawMessage) -> None:
    found = fields_of(answer.result)
    member.handshake_error = errors.reason_of(answer.error)
    if found:
        state.to_member(member, raw_message.notification("notifications/initialized", {}))
        _ready(state, member, ProtocolEra.HANDSHAKE, found)
    elif ProtocolEra.MODERN in member.eras_tried:
        failed(state, member, f"it refuses the handshake: {member.handshake_error}")
    else:
        _shake_hands(state, member, modern=True)


def _ready(state: HubState, member: MemberSide, era: ProtocolEra, answer: Fields) -> None:
    capabilities = answer.get("capabilities", msgspec.Raw(b"{}")).copy()
    if len(bytes(capabilities)) > _MAX_CAPABILITIES_BYTES:
        failed(state, member, f"its capabilities take over {_MAX_CAPABILITIES_BYTES} bytes")
        return
    member.era, member.due_s = era, state.now_s + FIRST_CALL_S
    member.capabilities = frozenset(fields_of(capabilities))
    member.mark_ready()
    member.session_definitions = msgspec.structs.replace(
        member.definitions or Definitions(),
        capabilities=capabilities,
        instructions=text_at(answer, "instructions")[:_MAX_INSTRUCTIONS_CHARS],
    )
    if era is ProtocolEra.MODERN:
        _listen(state, member)
    elif state.agent.log_level:
        delivery.set_log_level(state, member, state.agent.log_level)
    for uri in sorted(member.followed):
        subscriptions.follow(state, member, uri)
    lists = lists_of(member.capabilities)
    member.unread = set(lists)
    wanted = {_LIST_BEFORE.get(request.method) for request in member.waiting}
    _deliver_waiting(state, member)
    read_lists(state, member, sorted(lists, key=lambda method: method not in wanted))


def _deliver_waiting(state: HubState, member: MemberSide) -> None:
    """Deliver the requests that wait for no list."""
    waiting, member.waiting = member.waiting, []
    for request in waiting:
        route(state, member, request)


def _listen(state: HubState, member: MemberSide) -> None:
    """Have a member of 2026-07-28 tell when its lists change."""
    kinds = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    params = {
        "_meta": encoded(state.agent.envelope()),
        "notifications": encoded(dict.fromkeys(kinds, True)),
    }
    state.send_own(member, OwnRequest(OwnKind.LISTEN), methods.LISTEN, params)


def read_lists(state: HubState, member: MemberSide, lists: list[str]) -> None:
    """Read these lists of a member, of which none is being read, one after the other."""
    member.to_read = lists
    _read_next(state, member)


def read_stale(state: HubState, member: MemberSide) -> None:
    """Read the lists that a member has reported as changed, if it is time."""
    due_s = member.reread_due_s()
    if due_s is not None and state.now_s >= due_s:
        lists = [method for method in lists_of(member.capabilities) if method in member.stale]
        member.stale.clear()
        read_lists(state, member, lists)


def _read_next(state: HubState, member: MemberSide) -> None:
    if member.to_read:
        _request_page(state, member, ListReader(member.to_read.pop(0)), cursor=None)
    else:
        _adopt_lists(state, member)


def _request_page(
    state: HubState, member: MemberSide, reader: ListReader, cursor: str | None
) -> None:
    params: Fields = {} if cursor is None else {"cursor": encoded(cursor)}
    if member.era is ProtocolEra.MODERN:
        params["_meta"] = encoded(state.agent.envelope())
    own = OwnRequest(OwnKind.LIST, state.now_s + LIST_S, reader)
    state.send_own(member, own, reader.method, params)


def _page_answered(
    state: HubState, member: MemberSide, reader: ListReader, answer: RawMessage
) -> None:
    """Read on. A server that has not the method has an empty list, as the gate stores it too."""
    is_error = bool(bytes(answer.error))
    is_absent = errors.code_of(answer.error) == METHOD_NOT_FOUND and not reader.entries
    if is_error and not is_absent:
        _list_failed(state, member, reader, errors.reason_of(answer.error))
    elif not is_error and (cursor := reader.take(answer.result)) is not None:
        _request_page(state, member, reader, cursor)
    elif reader.error:
        _list_failed(state, member, reader, reader.error)
    else:
        _list_read(state, member, reader)


def _list_failed(state: HubState, member: MemberSide, reader: ListReader, why: str) -> None:
    member.list_errors[reader.method] = why
    state.log(f"{member.name}: {reader.method}: {why}")
    _list_answered(state, member, reader)


def _list_read(state: HubState, member: MemberSide, reader: ListReader) -> None:
    member.list_errors.pop(reader.method, None)
    if reader.cut:
        state.log(f"{member.name}: {reader.method} is cut: {reader.cut}")
    member.session_definitions = with_list(
        member.session_definitions, reader.method, reader.entries
    )
    _list_answered(state, member, reader)


def _list_answered(state: HubState, member: MemberSide, reader: ListReader) -> None:
    member.unread.discard(reader.method)
    _deliver_waiting(state, member)
    _read_next(state, member)


def _adopt_lists(state: HubState, member: MemberSide) -> None:
    """Make the lists that were read the known ones. One that has failed stays as it was before.

    If none is known, nothing is, so that the next list of the agent asks again.
    """
    before, is_first = member.definitions, not member.reread_at_s
    member.reread_at_s = state.now_s + REREAD_S
    member.why = "; ".join(f"{method}: {why}" for method, why in member.list_errors.items())
    if before is not None or has_entries(member.session_definitions) or not member.why:
        member.definitions = unchanged_kept(before, member.session_definitions)
    if member.definitions != before:
        _note_unlisted(state, member)
        state.expose_again()
        if not is_first:
            subscriptions.notify_soon(state)
    if before is None:
        state.log(state.loaded())


def _note_unlisted(state: HubState, member: MemberSide) -> None:
    """Note what this agent was offered of a member until now. What is listed again counts first."""
    lists = state.lists
    for key, entries in (("tools", lists.tools), ("prompts", lists.prompts)):
        names = [one.name for one in entries.values() if one.member == member.name]
        member.note_unlisted(key, names)


def expired(state: HubState, member: MemberSide, own: OwnRequest) -> None:
    """Handle a request of the hub's own that was not answered in time."""
    if own.kind is OwnKind.PROBE:
        _is_not_modern(state, member)
    elif own.reader is not None and member.open_by_id:  # it may be busy with a call
        _list_failed(state, member, own.reader, f"no answer in {LIST_S:g} s")
    else:
        method = own.reader.method if own.reader is not None else own.kind.value
        failed(state, member, f"it does not answer {method}")


def failed(state: HubState, member: MemberSide, why: str) -> None:
    """End the session of a member, and answer the requests that it will not answer.

    None is repeated: the member may have carried it out.
    """
    state.actions.append(CloseMember(member.name))
    if member.phase is Phase.CLOSED:  # a start that was given up, and came to nothing later
        return
    requests = list(member.open_by_id.values())
    waiting, member.waiting = member.waiting, []
    delivery.withdraw_questions(state, member)
    rounds.forget_states(state, member.name)
    member.reset()
    member.has_failed(why, state.now_s)
    state.log(errors.text(member.name, why))
    for opened in requests:
        if opened.is_awaited():
            errors.unavailable(state, opened.as_agent_sent(), member, why)
    for request in waiting:
        errors.unavailable(state, request, member, why)

"""Catalogue for a session of a hub, in the session's process, before the hub's program starts."""

from collections.abc import Iterable

import msgspec

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.as_gate.hubs import definitions_store
from mcpwrap.as_gate.hubs.hub_identity import why_not_member
from mcpwrap.as_gate.pins import initial_view
from mcpwrap.as_gate.state.emergency_stop import expect_no_panic
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.gate.definitions.divided_definitions import UnknownToPinsError, divide
from mcpwrap.core.gate.definitions.filtering import filter_definitions
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy.compiled import CompiledPolicy
from mcpwrap.core.protocol.raw_message import fields_of, text_at
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import MAX_BYTES, Catalogue, CatalogueMember
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux.unix_socket import memfd


def sealed_catalogue(agent: AgentIdentity, admissions: AccessList, policies: Policies) -> int:
    """Return a descriptor of the catalogue for the agent of a hub's session; the caller closes it.

    Where all definitions are too long for one catalogue, the members that come last are without.
    """
    names = sorted(member.name for member in admissions.by_server[agent.hub].hub)
    members, size = list[CatalogueMember](), 0
    for name in names:
        member = _member(name, agent, admissions, policies)
        size += len(hub_catalogue.encode(Catalogue(members=(member,))))
        fits = size <= MAX_BYTES or member.refusal
        members.append(member if fits else CatalogueMember(name=name))
    return memfd.sealed("catalogue", hub_catalogue.encode(Catalogue(members=tuple(members))))


def _member(
    name: str, agent: AgentIdentity, admissions: AccessList, policies: Policies
) -> CatalogueMember:
    """Return a member with what it listed last; or with a refusal, and nothing that it listed."""
    if why := why_not_member(agent.hub, name, agent, admissions):
        return CatalogueMember(name=name, refusal=why)
    try:
        expect_no_panic(name)
        policy = policies.rules_for(name, admissions.by_server[name])
        has_pins = admissions.by_server[name].pins != "off"
        view = initial_view.read(name) if has_pins else None
    except RefusalError as refusal:
        return CatalogueMember(name=name, refusal=refusal.why)
    try:
        return _listed(name, policy, view, agent.who.uid)
    except (UnknownToPinsError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return CatalogueMember(name=name)  # it is listed again


def _listed(name: str, policy: CompiledPolicy, view: PinsView | None, uid: int) -> CatalogueMember:
    """Return a member with what this account was listed last, as policy and pins let it through."""
    found = definitions_store.read(uid, name)
    if found is None:
        return CatalogueMember(name=name)
    if view is None:
        return CatalogueMember(name=name, definitions=filter_definitions(policy, found))
    divided = divide(view, uid, found)
    held = filter_definitions(policy, divided.held)
    return CatalogueMember(
        name=name,
        definitions=filter_definitions(policy, divided.accepted),
        held_tools=_names(held.tools),
        held_prompts=_names(held.prompts),
    )


def _names(entries: Iterable[msgspec.Raw]) -> tuple[str, ...]:
    names = (text_at(fields_of(raw), "name") for raw in entries)
    return tuple(filter(None, names))

"""Catalogue for a session of a hub, in the session's process, before the hub's program starts."""

import msgspec
from msgspec.structs import replace

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.as_gate.hubs import definitions_store
from mcpwrap.as_gate.hubs.hub_identity import why_not_member
from mcpwrap.as_gate.state.emergency_stop import expect_no_panic
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.gate.definitions.filtering import filter_definitions
from mcpwrap.core.policy.compiled import CompiledPolicy
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import MAX_BYTES, Catalogue, CatalogueMember, Definitions
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
        members.append(member if size <= MAX_BYTES else replace(member, definitions=None))
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
    except RefusalError as refusal:
        return CatalogueMember(name=name, refusal=refusal.why)
    return CatalogueMember(name=name, definitions=_listed(policy, agent.who.uid, name))


def _listed(policy: CompiledPolicy, uid: int, name: str) -> Definitions | None:
    found = definitions_store.read(uid, name)
    try:
        return None if found is None else filter_definitions(policy, found)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # it is listed again

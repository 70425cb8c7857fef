"""Lists of a hub: what an agent sees of all members, and the member that each name belongs to.

The table that is listed is the one in which a call is looked up. What a policy or a profile leaves
out of it cannot be called either.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from mcpwrap.core.hub.agent_profiles import AgentProfile, why_refused
from mcpwrap.core.hub.lists.definition_forms import why_malformed
from mcpwrap.core.hub.names import SEPARATOR, STATUS_TOOL, exposed_name
from mcpwrap.core.protocol.raw_message import encoded, fields_of, text_at, value_of
from mcpwrap.core.wire.hub.hub_catalogue import Definitions

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_MAX_OMITTED = 256  # of all members; these are for a person, and for the agent
_MAX_NAME_CHARS = 200
_NO_DEFINITION = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class ExposedEntry:
    """Tool or prompt of a member, under its name at the hub."""

    member: str
    name: str  # the member's own
    definition: msgspec.Raw  # with the name at the hub


@dataclass(frozen=True, slots=True)
class OmittedEntry:
    """Tool or prompt that this agent does not get, and the reason."""

    member: str
    name: str
    reason: str


@dataclass(slots=True)
class ExposedLists:
    """Lists of all members for one agent."""

    tools: dict[str, ExposedEntry] = field(default_factory=dict)  # by name at the hub, sorted
    prompts: dict[str, ExposedEntry] = field(default_factory=dict)
    resources: list[msgspec.Raw] = field(default_factory=list)
    templates: list[msgspec.Raw] = field(default_factory=list)
    members_by_uri: dict[str, tuple[str, ...]] = field(default_factory=dict)
    templates_by_member: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # literals
    unlisted_tools: dict[str, ExposedEntry] = field(default_factory=dict)  # without a definition
    unlisted_prompts: dict[str, ExposedEntry] = field(default_factory=dict)
    omitted: list[OmittedEntry] = field(default_factory=list)

    def owners(self, uri: str, named_by: frozenset[str]) -> frozenset[str]:
        """Return the members that have this resource.

        They list it, have a template of its scheme that it matches, or have named it in a result.
        A result counts only if no member lists the resource: else each could make it ambiguous.
        A template without a scheme, such as `{+url}`, counts only where nothing else does.
        """
        listed = frozenset(self.members_by_uri.get(uri, ()))
        scoped = self._by_template(uri, scoped=True)
        return listed | scoped | (frozenset() if listed else named_by) or self._by_template(
            uri, scoped=False
        )

    def _by_template(self, uri: str, *, scoped: bool) -> frozenset[str]:
        return frozenset(
            member
            for member, templates in self.templates_by_member.items()
            if any(
                (":" in literals[0]) is scoped and _matches(literals, uri)
                for literals in templates.values()
            )
        )

    def owners_of_template(self, template: str) -> tuple[str, ...]:
        """Return the members that list this URI template."""
        found = self.templates_by_member
        return tuple(member for member, templates in found.items() if template in templates)


def expose(
    hub: str,
    namespaces: Mapping[str, str],
    definitions: Mapping[str, Definitions],
    agent: AgentProfile | None,
    unlisted: Mapping[str, Mapping[str, Iterable[str]]] = MappingProxyType({}),
) -> ExposedLists:
    """Return the lists for an agent, of the members whose definitions are known.

    `namespaces` has the namespace of every member: no other member can use its prefix, whether or
    not it is there. `unlisted` has names by member and list that the agent may know, though they
    are held back now, or gone: a call of one goes to the member, whose gate knows the reason.
    """
    lists = ExposedLists()
    prefixes = {f"{one}{SEPARATOR}" for one in namespaces.values() if one}
    naming = _Naming(hub, namespaces, tuple(sorted(prefixes)), agent, lists)
    by_uri: dict[str, list[str]] = {}
    for member in sorted(definitions):
        found = definitions[member]
        naming.add("tool", lists.tools, member, found.tools)
        naming.add("prompt", lists.prompts, member, found.prompts)
        resources = naming.well_formed("resource", member, found.resources)
        templates = naming.well_formed("template", member, found.templates)
        for raw in resources:
            by_uri.setdefault(text_at(fields_of(raw), "uri"), []).append(member)
        lists.resources += resources
        lists.templates += templates
        texts = [text_at(fields_of(raw), "uriTemplate") for raw in templates]
        lists.templates_by_member[member] = {text: _EXPRESSION.split(text) for text in texts}
    for member in sorted(unlisted.keys() & definitions.keys()):
        names, found = unlisted[member], definitions[member]
        tools = naming.unlisted(member, names["tools"], found.tools, lists.tools)
        prompts = naming.unlisted(member, names["prompts"], found.prompts, lists.prompts)
        lists.unlisted_tools = tools | lists.unlisted_tools
        lists.unlisted_prompts = prompts | lists.unlisted_prompts
    lists.members_by_uri = {uri: tuple(dict.fromkeys(by)) for uri, by in by_uri.items()}
    lists.tools = dict(sorted(lists.tools.items()))
    lists.prompts = dict(sorted(lists.prompts.items()))
    return lists


@dataclass(frozen=True, slots=True)
class _Naming:
    hub: str
    namespaces: Mapping[str, str]
    prefixes: tuple[str, ...]
    agent: AgentProfile | None
    lists: ExposedLists

    def add(
        self,
        kind: str,
        entries: dict[str, ExposedEntry],
        member: str,
        listed: Iterable[msgspec.Raw],
    ) -> None:
        """Add the tools or prompts of a member to the entries, or to those that are omitted."""
        for raw in self.well_formed(kind, member, listed):
            parts = fields_of(raw)
            name = text_at(parts, "name")
            exposed = exposed_name(self.hub, self.namespaces[member], name)
            reason = self._why_omitted(member, exposed, entries)
            if exposed is None or reason:
                self._omit(member, name, reason)
            else:
                definition = encoded({**parts, "name": encoded(exposed)})
                entries[exposed] = ExposedEntry(member, name, definition)

    def unlisted(
        self,
        member: str,
        names: Iterable[str],
        listed: Iterable[msgspec.Raw],
        entries: Mapping[str, ExposedEntry],
    ) -> dict[str, ExposedEntry]:
        """Return the names of a member that it does not list, by those that no entry has."""
        unlisted = dict.fromkeys(names)
        for raw in listed if unlisted else ():
            unlisted.pop(text_at(fields_of(raw), "name"), None)
        by_name = {exposed_name(self.hub, self.namespaces[member], name): name for name in unlisted}
        return {
            exposed: ExposedEntry(member, name, _NO_DEFINITION)
            for exposed, name in by_name.items()
            if exposed is not None and not self._why_omitted(member, exposed, entries)
        }

    def well_formed(
        self, kind: str, member: str, listed: Iterable[msgspec.Raw]
    ) -> list[msgspec.Raw]:
        """Return the entries of a list that clients and the agent's model accept; omit others."""
        accepted = []
        for raw in listed:
            entry = value_of(raw)
            reason = why_malformed(kind, entry)
            if not reason and kind == "tool" and isinstance(entry, dict):
                reason = why_refused(self.agent, entry)
            if reason:
                self._omit(member, text_at(fields_of(raw), "name"), reason)
            else:
                accepted.append(raw)
        return accepted

    def _omit(self, member: str, name: str, reason: str) -> None:
        if len(self.lists.omitted) < _MAX_OMITTED:
            self.lists.omitted.append(OmittedEntry(member, name[:_MAX_NAME_CHARS], reason))

    def _why_omitted(
        self, member: str, exposed: str | None, entries: Mapping[str, ExposedEntry]
    ) -> str:
        if exposed is None:
            return "its name is not one of A-Z, a-z, 0-9, _ and -"
        if exposed == STATUS_TOOL:
            return "the hub itself has a tool of that name"
        if not self.namespaces[member] and exposed.startswith(self.prefixes):
            return "its name begins as those of another member"
        if exposed in entries:
            return "its name is listed twice"
        return ""


def _matches(literals: Sequence[str], uri: str) -> bool:
    """Return whether a URI may be of a template (RFC 6570): each expression is any text.

    Each literal is looked for once and after the one before it, so the time is proportional to the
    URI, whatever template a member makes.
    """
    first, *between, last = literals if len(literals) > 1 else [*literals, ""]
    at, end = len(first), len(uri) - len(last)
    if at > end or not (uri.startswith(first) and uri.endswith(last)):
        return False
    for literal in between:
        found = uri.find(literal, at, end)
        if found < 0:
            return False
        at = found + len(literal)
    return len(literals) > 1 or uri == first

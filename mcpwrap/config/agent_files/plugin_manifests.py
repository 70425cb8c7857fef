"""Servers that a plugin brings, parsed from its lists, its manifest and its marketplace."""

from collections.abc import Iterator
from dataclasses import dataclass

from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.syntax.document import JSON, ServerEntry, at_keys
from mcpwrap.config.agent_files.transport import StdioTransport, Transport

_KEY = "mcpServers"


@dataclass(frozen=True, slots=True)
class ManifestServers:
    """Content of one file: servers, and further files that list servers."""

    listed: tuple[ListedServer, ...] = ()
    more: tuple[str, ...] = ()  # relative to the plugin's folder


@dataclass(frozen=True, slots=True)
class Marketplace:
    """Folder with plugins, or with their descriptions."""

    folder: str
    is_live: bool  # the agent reads plugins in it, and not a copy of them


def of_list(data: object, words: EntrySchema) -> ManifestServers:
    """Return the servers of a list. Without a table around them, other keys may be among them.

    Agents test for the table as JavaScript does: a false value counts as absent.
    """
    if not isinstance(data, dict) or data.get(_KEY) not in (None, False, 0, ""):
        return of_manifest(data, words)
    bare = {name: value for name, value in data.items() if words.fit(value)}
    return ManifestServers(tuple(_servers(bare, words)))


def of_manifest(data: object, words: EntrySchema) -> ManifestServers:
    """Return the servers of a manifest: a table, the name of a file, or a list of these."""
    value = data.get(_KEY) if isinstance(data, dict) else None
    listed: list[ListedServer] = []
    more: list[str] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            listed += _servers(part, words)
        elif isinstance(part, str) and part.endswith(".json") and "://" not in part:
            more.append(part)
        elif isinstance(part, str):  # a bundle that the agent unpacks and starts
            listed.append(_listed(part, StdioTransport(part)))
    return ManifestServers(tuple(listed), tuple(more))


def _servers(table: dict[str, object], words: EntrySchema) -> Iterator[ListedServer]:
    for name, value in table.items():
        yield _listed(name, words.read(value))


def _listed(name: str, launch: Transport) -> ListedServer:
    """Return a server. It is never rewritten, so its entry has no position and no other keys."""
    entry = ServerEntry(
        name=name, path=(_KEY, name), value=None, members=(), region=None, form=JSON
    )
    return ListedServer((_KEY,), entry, launch)


def link(data: object) -> str:
    """Return the folder of a linked extension, from the file in its place; "" if not linked."""
    target = at_keys(data, ("source",)) if at_keys(data, ("type",)) == "link" else None
    return target if isinstance(target, str) else ""


def records(registry: object) -> Iterator[tuple[str, str, bool]]:
    """Yield the plugins of Claude Code: name in settings, folder, whether for all projects.

    Source: installed_plugins.json, version 2.
    """
    by_id = at_keys(registry, ("plugins",))
    for name, installs in by_id.items() if isinstance(by_id, dict) else ():
        for one in installs if isinstance(installs, list) else ():
            folder = at_keys(one, ("installPath",))
            if isinstance(folder, str):
                yield name, folder, at_keys(one, ("scope",)) == "user"


def marketplaces(table: object) -> Iterator[tuple[str, Marketplace]]:
    """Yield the marketplaces of known_marketplaces.json, or of extraKnownMarketplaces, by name."""
    for name, one in table.items() if isinstance(table, dict) else ():
        is_live = at_keys(one, ("source", "source")) == "directory"
        folder = at_keys(one, ("source", "path") if is_live else ("installLocation",))
        if isinstance(folder, str):
            yield name, Marketplace(folder, is_live)


def offered(catalogue: object, name: str) -> tuple[str, object]:
    """Return a plugin's path in its marketplace's folder, and its entry in the catalogue.

    The path is "" if the plugin is elsewhere, or not in the catalogue.
    """
    found = at_keys(catalogue, ("plugins",))
    for one in found if isinstance(found, list) else ():
        if at_keys(one, ("name",)) == name:
            source = at_keys(one, ("source",))
            return (source if isinstance(source, str) else ""), one
    return "", None

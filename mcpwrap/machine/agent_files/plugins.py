"""Search for files in which agents' plugins list servers. Reads only, and a bounded number."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from mcpwrap.config.agent_files import plugin_manifests
from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES, MAX_SERVERS, ListedServer
from mcpwrap.config.agent_files.plugin_layouts import Plugin, PluginLayout, is_off_at_home
from mcpwrap.config.agent_files.plugin_manifests import ManifestServers, Marketplace
from mcpwrap.config.agent_files.syntax.document import Language, at_keys
from mcpwrap.machine.agent_files.files import UnreadableFile, read
from mcpwrap.machine.agent_files.whole_file import OpenedFile, open_whole

MAX_PLUGINS = 1024  # of one agent; folders without a plugin count too
MAX_FILE_BYTES = 2**20  # of a file that another person wrote
MAX_ALL_BYTES = 8 * 2**20  # of all these of one agent: parsed, a file takes thirty times its size
_MAX_MARKETPLACES = 256
_MAX_MORE = 16  # further files that one plugin names
_CATALOGUES = tuple(
    f"{folder}marketplace.json" for folder in (".claude-plugin/", ".plugin/", "", ".github/plugin/")
)


@dataclass(frozen=True, slots=True)
class PluginFile:
    """File of a plugin with its servers, or the reason for not reading it."""

    plugin: Plugin
    path: Path
    whole: OpenedFile | None = None
    listed: tuple[ListedServer, ...] = ()
    problem: str = ""


def files(
    row: PluginLayout, words: EntrySchema, uid: int, variables: Mapping[str, str]
) -> Iterator[PluginFile]:
    """Yield each file of an agent's plugins that lists servers, or that was not read and may."""
    yield from _PluginSearch(row, words, uid, variables).files()


class _PluginSearch:
    """Search through the plugins of one agent."""

    def __init__(
        self, row: PluginLayout, words: EntrySchema, uid: int, variables: Mapping[str, str]
    ) -> None:
        self._row, self._words, self._uid = row, words, uid
        self._variables = variables
        self._problems: dict[Path, str] = {}
        self._left_bytes = MAX_ALL_BYTES
        self._settings = self._settings_data()
        self._enablement = self._data(self._place(row.enablement)) if row.enablement else None
        self._marketplaces = dict(self._read_marketplaces())

    def files(self) -> Iterator[PluginFile]:
        """Yield the files; last, unread files that may hide a plugin, or that one is off."""
        is_any = False
        for number, plugin in enumerate(self._plugins()):
            if number == MAX_PLUGINS:
                problem = f"over {MAX_PLUGINS} plugins: this one and the rest are not read"
                yield PluginFile(plugin, Path(plugin.folder), problem=problem)
                break
            for one in self._of_plugin(plugin):
                if one.problem or one.listed:
                    is_any = True
                    yield replace(one, listed=self._switched(plugin, one.listed))
        for path, problem in self._problems.items():
            is_settings = path == self._place(self._row.settings)
            if is_settings and not is_any and not self._may_name_plugins():
                continue  # no server was found that it could turn off
            yield PluginFile(Plugin("", ""), path, problem=problem)

    def _may_name_plugins(self) -> bool:
        """Return whether settings may name plugins outside the folders of the row."""
        file, *_ = self._row.marketplaces or ("",)
        return bool(self._marketplaces) or file == self._row.settings

    def _switched(
        self, plugin: Plugin, listed: tuple[ListedServer, ...]
    ) -> tuple[ListedServer, ...]:
        """Return the servers with `is_off` set as the agent's settings have it."""
        is_all = is_off_at_home(self._enablement, plugin, self._variables["HOME"])
        return tuple(
            replace(one, is_off=is_all or self._row.is_off(self._settings, plugin, one.entry.name))
            for one in listed
        )

    def _plugins(self) -> Iterator[Plugin]:
        """Yield each installed plugin once."""
        seen: set[Plugin] = set()
        for plugin in self._installed():
            if plugin.folder.startswith("/") and plugin not in seen:
                seen.add(plugin)
                yield plugin

    def _installed(self) -> Iterator[Plugin]:
        row = self._row
        if row.registry:
            registry = self._data(self._place(row.registry))
            for name, where, is_personal in plugin_manifests.records(registry):
                yield Plugin(name, self._live(name) or where, is_personal)
        for pattern in row.folders:
            for folder in self._matching(self._place(pattern)):
                target = plugin_manifests.link(self._data(folder / row.link)) if row.link else ""
                yield Plugin(row.id_of(str(folder)), target or str(folder))
        enabled = at_keys(self._settings, ("enabledPlugins",)) if self._marketplaces else None
        for name in enabled if isinstance(enabled, dict) else ():
            if live := self._live(name):
                yield Plugin(name, live)

    def _read_marketplaces(self) -> Iterator[tuple[str, tuple[Marketplace, Path, OpenedFile]]]:
        """Yield each marketplace by name, with its catalogue."""
        if not self._row.marketplaces:
            return
        file, *keys = self._row.marketplaces
        table = at_keys(self._data(self._place(file)), keys)
        for number, (name, one) in enumerate(plugin_manifests.marketplaces(table)):
            if number == _MAX_MARKETPLACES:
                self._problems[self._place(file)] = (
                    f"over {number} marketplaces: the rest are not read"
                )
                return
            for catalogue in _CATALOGUES:
                path = Path(one.folder, catalogue)
                whole = self._whole(path)
                if whole and whole.opened.document.data:
                    yield name, (one, path, whole)
                    break

    def _live(self, plugin: str) -> str:
        """Return a plugin's folder in its marketplace; "" if the agent reads a copy instead."""
        name, _, marketplace = plugin.rpartition("@")
        if marketplace not in self._marketplaces:
            return ""
        one, _, catalogue = self._marketplaces[marketplace]
        source, _ = plugin_manifests.offered(catalogue.opened.document.data, name)
        folder = Path(one.folder, source)
        return str(folder) if one.is_live and source and _is_folder(folder) else ""

    def _of_plugin(self, plugin: Plugin) -> Iterator[PluginFile]:
        """Yield the files of a plugin, and the catalogue if that lists servers for it."""
        folder = Path(plugin.folder)
        more: list[str] = []
        for name in self._row.manifests:
            manifest, content = self._file(plugin, folder / name)
            more += content.more
            yield manifest
            if manifest.whole or manifest.problem:
                break  # agents read the first that exists
        if found := self._marketplaces.get(plugin.id.rpartition("@")[2]):
            _, path, whole = found
            _, entry = plugin_manifests.offered(whole.opened.document.data, plugin.name)
            content = plugin_manifests.of_manifest(entry, self._words)
            more += content.more
            yield PluginFile(plugin, path, whole, content.listed)
        if len(more) > _MAX_MORE:
            problem = f"names {len(more)} further files: only {_MAX_MORE} are read"
            yield PluginFile(plugin, folder, problem=problem)
        # For some agents a name with `/` first is below the plugin's folder (path.join of Node).
        prefixes = ("", "./")
        further = (
            os.path.normpath(start + name) for name in more[:_MAX_MORE] for start in prefixes
        )
        for name in dict.fromkeys([*self._row.lists, *further]):
            yield self._file(plugin, folder / name, is_list=True)[0]

    def _file(
        self, plugin: Plugin, path: Path, *, is_list: bool = False
    ) -> tuple[PluginFile, ManifestServers]:
        whole = self._open(path, within=Path(plugin.folder))
        if not isinstance(whole, OpenedFile):
            return PluginFile(plugin, path, problem=whole.why if whole else ""), ManifestServers()
        parse = plugin_manifests.of_list if is_list else plugin_manifests.of_manifest
        content = parse(whole.opened.document.data, self._words)
        if len(content.listed) > MAX_SERVERS:
            return PluginFile(
                plugin, path, problem=f"{len(content.listed)} servers"
            ), ManifestServers()
        return PluginFile(plugin, path, whole, content.listed), content

    def _open(self, path: Path, *, within: Path | None) -> OpenedFile | UnreadableFile | None:
        if self._left_bytes <= 0:
            there = read(path, self._uid, within=within, max_bytes=0)
            problem = f"over {MAX_ALL_BYTES // 2**20} MiB of such files: this one is not read"
            return None if there is None else UnreadableFile(problem)
        found = open_whole(path, self._uid, "json", within=within, max_bytes=MAX_FILE_BYTES)
        self._left_bytes -= len(found.content) if isinstance(found, OpenedFile) else 0
        return found

    def _data(self, path: Path) -> object:
        """Return the content of one of the agent's files; None if it is not read."""
        whole = self._whole(path)
        return whole.opened.document.data if whole else None

    def _whole(self, path: Path) -> OpenedFile | None:
        """Return one of the agent's files; if it is not read, None, and the problem is noted."""
        return self._or_problem(path, self._open(path, within=None))

    def _settings_data(self) -> object:
        path = self._place(self._row.settings)
        language: Language = "toml" if path.suffix == ".toml" else "json"
        found = open_whole(path, self._uid, language, within=None, max_bytes=MAX_BYTES)
        whole = self._or_problem(path, found)
        return whole.opened.document.data if whole else None

    def _or_problem(
        self, path: Path, found: OpenedFile | UnreadableFile | None
    ) -> OpenedFile | None:
        if isinstance(found, UnreadableFile):
            self._problems[path] = found.why
            return None
        return found

    def _place(self, path: str) -> Path:
        return Path(self._row.place(path, self._variables))

    def _matching(self, pattern: Path) -> list[Path]:
        """Return the folders that match a pattern, by name: at most one more than MAX_PLUGINS."""
        fixed = list(pattern.parts)
        stars = fixed.count("*")
        top = Path(*fixed[: len(fixed) - stars])
        found = [top]
        for further in reversed(range(stars)):
            below = (each for folder in found for each in self._folders(folder))
            found = list(islice(below, MAX_PLUGINS + 1))
            if further and len(found) > MAX_PLUGINS:
                self._problems[top] = f"over {MAX_PLUGINS} folders: some are not searched"
        return found

    def _folders(self, folder: Path) -> list[Path]:
        try:
            with os.scandir(folder) as entries:
                folders = (entry.name for entry in entries if _may_be_folder(entry))
                names = sorted(islice(folders, MAX_PLUGINS + 1))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._problems[folder] = f"cannot be read: {error.strerror}"
            return []
        return [folder / name for name in names]


def _is_folder(path: Path) -> bool:
    """Return whether there is a folder. The path is any text, such as a name that is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _may_be_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether to search it. A link that cannot be resolved is, so that it gets reported."""
    try:
        return entry.is_dir()
    except OSError:
        return True

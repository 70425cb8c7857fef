"""What `mcpwrap wrap` would do: which entry becomes which server, and which are left and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcpwrap.cli.clients_found import Asker, Found
from mcpwrap.config.agent_files.launch import Remote, Stdio
from mcpwrap.config.agent_files.opened import Listed, Opened
from mcpwrap.config.agent_files.spans import Key
from mcpwrap.config.agent_files.standing import Known, standing
from mcpwrap.config.envfile import parse_env_file
from mcpwrap.config.model import GROUPS, Destination, Group, Server
from mcpwrap.config.proposals import entry, local, sources
from mcpwrap.config.proposals.draft import Around, Draft, UnfitError
from mcpwrap.config.proposals.variables import filled_in
from mcpwrap.core.names import server_name_for
from mcpwrap.core.stored import MAX_SECRET_BYTES
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import agent_files, programs

_RUN_PROJECTS = {"uv", "poetry"}  # with what is in `.venv`
Egress = tuple[Destination | Group, ...]
Place = tuple[Path, tuple[Key, ...]]  # a file, and an entry of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is already: what root has configured, and what of it is applied."""

    known: Known
    servers: Mapping[str, Server] = field(default_factory=dict)  # that this person may use
    taken: frozenset[str] = frozenset()  # names
    sources: frozenset[str] = frozenset(GROUPS)  # groups of which it says where they are
    unset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # secrets without a value


@dataclass(frozen=True, slots=True)
class Become:
    """One entry, and the server of ours that it leads to when it is rewritten."""

    found: Found
    opened: Opened
    listed: Listed
    server: str
    is_remote: bool

    def place(self) -> Place:
        """Return where it stands."""
        return self.found.path, self.listed.entry.path


@dataclass(frozen=True, slots=True)
class Left:
    """One entry that stays as it is."""

    found: Found
    listed: Listed
    why: str


@dataclass(slots=True)
class Look:
    """Everything that was decided."""

    become: list[Become] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)  # servers that root does not have yet
    secrets: list[tuple[str, str, str]] = field(default_factory=list)  # server, key, value
    notes: list[str] = field(default_factory=list)

    def without_drafts(self) -> "Look":
        """Return what is to be done now, when root was asked and has done all that it will."""
        absent = {draft.server.name for draft in self.drafts}
        left = [
            Left(one.found, one.listed, f"root has no server {one.server} that is the same")
            for one in self.become
            if one.server in absent
        ]
        become = [one for one in self.become if one.server not in absent]
        return replace(self, become=become, left=[*self.left, *left], drafts=[])

    def server_by_place(self) -> dict[Place, str]:
        """Return to which server each entry leads."""
        return {one.place(): one.server for one in self.become}


class Looking:
    """Goes through entries in order; equal ones become one server.

    `decided` is what was shown before, when root did not have all of these servers.
    """

    def __init__(
        self, who: Asker, machine: Machine, egress: Egress, decided: Mapping[Place, str]
    ) -> None:
        self._decided = decided
        self._who = who
        self._machine = machine
        self._egress = egress
        self._values_by_server: dict[str, Mapping[str, str]] = {}
        self._why_not_by_path: dict[Path, str] = {}
        self._look = Look()

    def through(self, files: Iterable[Found]) -> Look:
        """Return what becomes of all entries that are not wrapped."""
        for found in files:
            if found.opened is not None:
                for listed in found.listed:
                    self._entry(found, found.opened, listed)
        return self._look

    def _entry(self, found: Found, opened: Opened, listed: Listed) -> None:
        stands = standing(listed.launch, self._machine.known)
        if stands.state == "wrapped":
            return
        if stands.state == "drifted":
            if not stands.server:
                self._leave(found, listed, stands.why)
                return
            is_remote = isinstance(listed.launch, Remote)
            self._look.become.append(Become(found, opened, listed, stands.server, is_remote))
            return
        if why := self._why_not(found):
            self._leave(found, listed, why)
            return
        try:
            name, is_remote = self._raw(found, listed)
            self._look.become.append(Become(found, opened, listed, name, is_remote))
        except UnfitError as error:
            self._leave(found, listed, str(error))

    def _why_not(self, found: Found) -> str:
        """Return why a file cannot be rewritten: root is not asked for what would be of no use."""
        if found.path not in self._why_not_by_path:
            try:
                agent_files.check_replaceable(found.path, found.content)
                self._why_not_by_path[found.path] = ""
            except McpwrapError as error:
                self._why_not_by_path[found.path] = error.problem
        return self._why_not_by_path[found.path]

    def _leave(self, found: Found, listed: Listed, why: str) -> None:
        self._look.left.append(Left(found, listed, why))

    def _raw(self, found: Found, listed: Listed) -> tuple[str, bool]:
        """Return the server that a raw entry becomes, and whether it is a URL."""
        around = self._around(found, listed)
        launch = entry.launch_of(listed, around)
        if isinstance(launch, Stdio):
            around = _seen(launch, around, self._who)
        draft = entry.draft(listed, launch, around, self._egress)
        sources.expect_known(draft.server, self._machine.sources)
        _expect_no_links(draft)
        wanted = self._decided.get((found.path, listed.entry.path), "")
        name = self._existing(draft, wanted)
        if name and draft.value_by_key:
            keys = ", ".join(draft.value_by_key)
            self._look.notes.append(
                f"{listed.entry.name!a} of {found.path} leads to {name}, which is there already: it"
                f" has the {keys} that root set for it, whatever this file has"
            )
        name = name or self._new(listed, draft)
        self._look.secrets += [(name, key, value) for key, value in draft.value_by_key.items()]
        if why := self._why_not_yet(name):
            raise UnfitError(why)
        return name, isinstance(launch, Remote)

    def _around(self, found: Found, listed: Listed) -> Around:
        home = self._who.variables["HOME"]
        project = base = listed.at[1] if listed.at[0] == "projects" else found.project
        if isinstance(listed.launch, Stdio) and listed.launch.cwd.startswith("/"):
            base = listed.launch.cwd
        given = {"userHome": home} | ({"workspaceFolder": project} if project else {})
        around = Around(
            account=self._who.account,
            home=home,
            base=base,
            variables={**self._who.environ, **given},
        )
        within = Path(found.project or base or home)  # a project's file says `cwd` as it likes
        return replace(around, env_file=_env_file(listed, around, within, self._who.uid))

    def _existing(self, draft: Draft, wanted: str) -> str:
        """Return the server of this machine that is the same; "" is none.

        Two can differ in their secrets alone, which nobody sees here: `wanted` is looked at first.
        """
        by_name = self._machine.servers
        for name in sorted(by_name, key=lambda name: (name != wanted, len(name), name)):
            server = by_name[name]
            if server.runs != draft.server.runs:
                continue
            if self._values_by_server.setdefault(name, draft.value_by_key) == draft.value_by_key:
                return name
        return ""

    def _new(self, listed: Listed, draft: Draft) -> str:
        for other in self._look.drafts:
            same = replace(draft.server, name=other.server.name)
            if same == other.server and other.value_by_key == draft.value_by_key:
                return other.server.name
        taken = self._machine.taken | {one.server.name for one in self._look.drafts}
        name = server_name_for(listed.entry.name, taken)
        self._look.drafts.append(replace(draft, server=replace(draft.server, name=name)))
        return name

    def _why_not_yet(self, name: str) -> str:
        """Return what root has to do before a server that is configured can be led to."""
        if name not in self._machine.servers:
            return ""
        if name not in self._machine.known.inherits_by_server:
            return f"{name} is configured and not applied: `sudo mcpwrap apply`"
        if unset := self._machine.unset.get(name):
            return f"a secret has no value yet: `sudo mcpwrap secret set {name} {unset[0]}`"
        return ""


def _env_file(listed: Listed, around: Around, within: Path, uid: int) -> dict[str, str] | None:
    """Return the variables of the file that an entry names, below the folder that it belongs to."""
    value = listed.entry.value
    said = value.get(entry.ENV_FILE) if isinstance(value, dict) else None
    path = filled_in(said, around.variables) if isinstance(said, str) else None
    if not path:
        return None
    whole = Path(around.base or around.home, path)
    content = agent_files.read(whole, uid, within=within, max_bytes=MAX_SECRET_BYTES)
    if not isinstance(content, bytes):
        return None
    try:
        return parse_env_file(content.decode(), path)
    except (UnicodeDecodeError, UsageError):
        return None


def _expect_no_links(draft: Draft) -> None:
    """Refuse alone what root would refuse with all that is proposed beside it.

    Raises:
        UnfitError: a folder that it is given is behind a link.
    """
    for folder in draft.server.workspace:
        if (real := programs.real(folder.path)) != folder.path:
            raise UnfitError(
                f"it would be given {folder.path!a}, which is behind a symbolic link, and none is "
                f"followed; write what it leads to, {real!a}"
            )


def _seen(launch: Stdio, around: Around, who: Asker) -> Around:
    """Return what surrounds a program, with what the machine says of it."""
    search = who.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    base = around.base or around.home
    paths = [*local.paths(launch, around), *([around.base] if around.base else [])]
    program = programs.program(launch.command, base, around.home, search)
    if program and Path(program.path).name in _RUN_PROJECTS:
        program = programs.with_environments(program, paths, around.home, search)
    return replace(
        around,
        program=program,
        places=programs.places(paths, around.home, who.uid),
    )

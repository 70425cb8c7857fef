"""Keys of agents' entries, by which an entry is parsed into a common type, and written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from mcpwrap.config.agent_files.transport import (
    BadEntryError,
    HttpTransport,
    StdioTransport,
    Transport,
    UnknownTransport,
    table,
    text,
    texts,
    texts_by_name,
)

STUB = "/usr/bin/mcpwrap-connect"
# How a program of Windows starts one of WSL2's default distribution, without a shell between.
FROM_WINDOWS = ("wsl.exe", "-e")
_LOCAL_TYPES = frozenset({"stdio", "local"})
_REMOTE_TYPES = frozenset(
    {"http", "sse", "ws", "streamable-http", "streamableHttp", "streamable_http", "remote"}
)
_ENV_FILE = "envFile"
_ENV_KEYS = "env_keys"  # of Goose, which stores their values
_OPEN = re.compile(r"\$\{(workspaceFolder|workspaceRoot|CLAUDE_PROJECT_DIR)(:-\.)?\}")
_OFTEN = (_ENV_FILE, "headersHelper", "auth", "oauth")


@dataclass(frozen=True, slots=True)
class Stub:
    """Replacement for a wrapped server: the stub, with the name of one of mcpwrap's servers."""

    name: str
    inherits: tuple[str, ...] = ()  # the agent's own variables that the server takes
    before: tuple[str, ...] = ()  # words before the stub: FROM_WINDOWS, or none


@dataclass(frozen=True, slots=True)
class ListenerUrl:
    """Replacement for a wrapped server, by HTTP: the URL of a listener on this machine."""

    url: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """Replacement for a server without root: `mcpwrap run`. A program keeps its variables.

    Those of a server at a URL, `env` and `inherits`, are for its headers.
    """

    program: str  # absolute
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    inherits: tuple[str, ...] = ()


Target = Stub | ListenerUrl | RunLine


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySchema:
    """Keys of one agent's entries. If several keys mean the same, the first is written."""

    command: str = "command"
    args: str = "args"  # "": `command` is a list that includes the arguments
    env: str = "env"
    cwd: str = "cwd"
    inherits: str = ""  # the key that names the agent's own variables; "" if it has no such key
    urls: tuple[str, ...] = ("url",)  # empty: the agent only starts programs
    headers: str = "headers"
    type: str = "type"  # "": its entries have no type
    local: str = "stdio"  # value of `type` for a program; "": not written
    remote: str = "http"
    names_local: bool = False  # `type` is needed, even for a program
    names_remote: bool = False  # `type` is needed, even for a URL
    further: tuple[str, ...] = ()  # other keys about how a server is started or reached
    name: str = ""  # the key that repeats the name
    fresh: dict[str, object] = field(default_factory=dict)  # further keys of a new entry

    def about_starting(self) -> frozenset[str]:
        """Return all keys that define how a server is started or reached; others are kept."""
        ours = (self.command, self.args, self.env, self.cwd, self.headers, self.inherits)
        return frozenset({*ours, *self.urls, *self.further, *_OFTEN} - {""})

    def fit(self, value: object) -> bool:
        """Return whether a value looks like a server, and not like a table of servers."""
        keys = {self.command, *self.urls, self.type}
        return isinstance(value, dict) and not keys.isdisjoint(value)

    def main_of(self, value: Mapping[str, object]) -> str:
        """Return the key of the command or URL in an entry that was understood."""
        return next(key for key in (self.command, *self.urls) if key in value)

    def read(self, value: object) -> Transport:
        """Parse an entry into its transport."""
        try:
            return self._read(table(value, "the entry"))
        except BadEntryError as error:
            return UnknownTransport(str(error))

    def _read(self, value: Mapping[str, object]) -> Transport:
        if "<<" in value:
            raise BadEntryError("`<<` merges keys from elsewhere into it")
        kind = None if value.get(self.type) is None else text(value[self.type], self.type)
        mains = [key for key in (self.command, *self.urls) if key in value]
        if len(mains) > 1:
            raise BadEntryError(f"it has both `{mains[0]}` and `{mains[1]}`")
        if not mains:
            typed = f"`{self.type}` is {kind!a}, and " if kind is not None else ""
            raise BadEntryError(f"{typed}there is no `{'` or `'.join((self.command, *self.urls))}`")
        if kind is not None and kind not in self._types(mains[0]):
            raise BadEntryError(f"`{self.type}` is {kind!a}")
        used = {self.command, self.args, self.env, self.cwd, *self.urls, self.headers}
        further = tuple(key for key in value if key in self.about_starting() - used)
        if mains == [self.command]:
            return self._stdio(value, further)
        headers = texts_by_name(value.get(self.headers), self.headers)
        return HttpTransport(text(value[mains[0]], mains[0]), headers, further)

    def _types(self, main: str) -> frozenset[str]:
        if main == self.command:
            return _LOCAL_TYPES | {self.local}
        return _REMOTE_TYPES | {self.remote}

    def _stdio(self, value: Mapping[str, object], further: tuple[str, ...]) -> StdioTransport:
        if self.args:
            command = text(value[self.command], self.command)
            args = texts(value.get(self.args), self.args)
        else:
            command, *rest = texts(value[self.command], self.command) or ("",)
            args = tuple(rest)
        if not command:
            raise BadEntryError(f"`{self.command}` is empty")
        env = texts_by_name(value.get(self.env), self.env)
        cwd = "" if value.get(self.cwd) is None else text(value[self.cwd], self.cwd)
        names = value.get(self.inherits)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return StdioTransport(command, args, env, cwd, further)
        further = tuple(key for key in further if key != self.inherits)
        return StdioTransport(command, args, env, cwd, further, tuple(names))

    def settings(self, value: Mapping[str, object], target: Target) -> dict[str, object]:
        """Return the keys to set when an entry is wrapped.

        Raises:
            ValueError: this agent does not support servers with a URL.
        """
        old_type = value.get(self.type) if self.type else None
        match target:
            case Stub(name, inherits, before):
                line = (*before, STUB, name)
                kind, is_needed, is_right = self.local, self.names_local, old_type in _LOCAL_TYPES
                main = self._started(line[0], line[1:]) | self._inheriting(inherits)
            case ListenerUrl(url):
                if not self.urls:
                    raise ValueError(url)
                kind, is_needed, is_right = self.remote, self.names_remote, old_type == self.remote
                main = {self.urls[0]: url}
            case RunLine(program, args, env, inherits):
                kind, is_needed, is_right = self.local, self.names_local, old_type in _LOCAL_TYPES
                main = self._started(program, args) | ({self.env: dict(env)} if env else {})
                main |= self._inheriting(inherits)
            case _:
                assert_never(target)
        has_type = (is_needed or old_type is not None) and not is_right
        return ({self.type: kind} if has_type and self.type and kind else {}) | main

    def new_entry(self, name: str, target: Target) -> dict[str, object]:
        """Return a new entry.

        Raises:
            ValueError: this agent does not support servers with a URL.
        """
        named: dict[str, object] = {self.name: name} if self.name else {}
        return named | self.settings({}, target) | self.fresh

    def _inheriting(self, names: tuple[str, ...]) -> dict[str, object]:
        return {self.inherits: list(names)} if names and self.inherits else {}

    def _started(self, command: str, args: tuple[str, ...]) -> dict[str, object]:
        if self.args:
            return {self.command: command, self.args: list(args)}
        return {self.command: [command, *args]}

    def dropped(
        self, settings: Mapping[str, object], value: Mapping[str, object]
    ) -> frozenset[str]:
        """Return the keys to remove when `settings` are written: no old launch key may stay."""
        gone = set(self.about_starting())
        old_type = value.get(self.type) if self.type else None
        is_program = self.command in settings
        if old_type is not None and is_program != (old_type in _LOCAL_TYPES):
            gone.add(self.type)
        return frozenset(gone - settings.keys())

    def kept_by_stub(self, value: Mapping[str, object]) -> frozenset[str]:
        """Return the key of the folder, if the agent fills in the open one: the stub starts there.

        A server with `projects` has the project of its stub's folder.
        """
        cwd = value.get(self.cwd)
        is_open_folder = self.command in value and isinstance(cwd, str) and _OPEN.fullmatch(cwd)
        return frozenset({self.cwd} if is_open_folder else ())

    def kept_by_run(self, value: Mapping[str, object]) -> frozenset[str]:
        """Return the keys of a program that its agent goes on to use when `mcpwrap run` runs it."""
        if self.command not in value:
            return frozenset()
        return frozenset({self.env, self.cwd, self.inherits, _ENV_FILE, _ENV_KEYS} - {""})

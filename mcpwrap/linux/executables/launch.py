"""Paths of a server's definition from which code is executed or loaded when it starts."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from mcpwrap.core.environment import PATH

COMMAND = "command"  # the part of a definition
_INTERPRETER = re.compile(
    r"node|nodejs|deno|bun|tsx|ts-node|python[\d.]*|pypy[\d.]*|ruby[\d.]*|perl[\d.]*|php[\d.]*"
    r"|lua[\d.]*|luajit|(ba|da|k|z|fi)?sh|java|[Rr]script|julia|dotnet|mono|wasmtime|osascript|tclsh"
)
# They look for code, or for what names it, in the folder that they are started in.
_RUNNER = re.compile(r"npx|npm|pnpm|pnpx|yarn|bun|bunx|deno|uv|uvx|pipx|poetry|pdm|hatch|pixi|make")
_SUBCOMMANDS = frozenset({"run", "exec", "tool", "dlx", "x", "start", "--"})
# Options whose value is a path from which code is taken, and those whose value is code.
_WITH_PATH = frozenset({
    "-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "--tsconfig",
    "-I", "-L", "-C", "-cp", "-classpath", "--class-path", "--module-path", "-p", "--package",
    "--prefix", "--cwd", "--dir", "--directory", "--project", "--from", "--with",
    "--with-editable", "--with-requirements", "--python", "--config", "--config-file",
})  # fmt: skip
_TEXTS = frozenset({"-c", "-e", "-m", "--eval", "--call"})
# They start what follows their own options.
_STARTER = re.compile(r"env|nice|ionice|nohup|setsid|stdbuf|timeout|chrt|taskset|xvfb-run|time")
_CODE = re.compile(
    r".+\.([cm]?[jt]sx?|py[cz]?|pyw|sh|jar|rb|php|p[lm]|lua|jl|[rR]|dll|exe|wasm|so(\.\d+)*|node)"
)
# Values of these are, or hold, paths that a loader or an interpreter looks in.
_LOADED = re.compile(
    r"LD_(PRELOAD|LIBRARY_PATH|AUDIT)|PYTHON(PATH|HOME|STARTUP|USERBASE|WARNINGS)|VIRTUAL_ENV"
    r"|NODE_(PATH|OPTIONS)|(npm|NPM)_(config|CONFIG)_\w+|UV_\w+|PIP_\w+|PERL5?(LIB|OPT|5DB)"
    r"|RUBY(LIB|OPT)|GEM_(HOME|PATH)|BUNDLE_\w+|CLASSPATH|(_?JAVA|JDK)_\w+|LUA_C?PATH|PHPRC"
    r"|PHP_INI_SCAN_DIR|BASH_ENV|ENV|DENO_DIR|BUN_INSTALL|DOTNET_\w+|JULIA_\w+|R_\w+"
)
_PATHS = re.compile(r"/[^\s'\"`;|&()<>:,=]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a server is started. `env` has the variables whose values hold no secret."""

    command: str
    args: Sequence[str]
    cwd: str  # "" is an empty folder of its own
    env: Mapping[str, str]

    def search(self) -> list[str]:
        """Return the folders in which a program is looked for by its name."""
        folders = self.env.get("PATH", PATH).split(":")
        return [os.path.join(self.cwd, f) for f in folders if f.startswith("/") or self.cwd]


def launch_of(
    command: str, args: Sequence[str], cwd: str, env: Mapping[str, Sequence[object]]
) -> Launch:
    """Return how a server is started; a secret in a variable names nothing that is loaded."""
    texts = {name: [part for part in parts if isinstance(part, str)] for name, parts in env.items()}
    literals = {name: "".join(parts) for name, parts in texts.items()}
    return Launch(command=command, args=args, cwd=cwd, env=literals)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A path from which code comes, and which part of the definition names it."""

    path: str
    part: str
    is_executed: bool = False  # the server does not start without it
    is_searched: bool = False  # a folder of which one program is taken


def loaded(launch: Launch) -> Iterator[Loaded]:
    """Yield the command, and what else the definition names of code that may be there."""
    yield Loaded(launch.command, COMMAND, is_executed=True)
    for path in _of_arguments(launch.command, launch.args, launch):
        yield Loaded(path, "args")
    if "PATH" in launch.env:
        yield from (Loaded(folder, "env.PATH") for folder in launch.search())
    for name, value in launch.env.items():
        if _LOADED.fullmatch(name):
            for path in _PATHS.findall(value):
                yield Loaded(path, f"env.{name}")
    if launch.cwd and _loads_from_its_folder(launch):
        yield Loaded(launch.cwd, "cwd", is_searched=True)


def _of_arguments(command: str, args: Sequence[str], launch: Launch) -> Iterator[str]:
    name = os.path.basename(command)
    if _STARTER.fullmatch(name):
        inner = list(dropwhile(lambda word: not _is_command(word), args))
        if inner:
            if "/" in inner[0]:
                yield _whole(inner[0], launch.cwd)
            else:
                yield from launch.search()
            yield from _of_arguments(inner[0], inner[1:], launch)
        return
    if _RUNNER.fullmatch(name) or _INTERPRETER.fullmatch(name):
        yield from _up_to_operand(args, launch)
    for word in args:
        path = _whole(word.partition("=")[2] if word.startswith("-") else word, launch.cwd)
        if path and _is_code(path):
            yield path


def _up_to_operand(args: Sequence[str], launch: Launch) -> Iterator[str]:
    """Yield what is there of the paths up to the program of an interpreter; the rest is its own.

    Of an option that is not known here nobody can say whether it takes a value: a path after one
    that cannot be run may be either.
    """
    previous = ""
    for word in args:
        if word.startswith("-") and previous not in _TEXTS:
            yield from filter(os.path.lexists, _PATHS.findall(word))
        elif previous in _TEXTS:
            yield from filter(os.path.isfile, _PATHS.findall(word))
            return
        elif previous in _WITH_PATH:
            yield from filter(os.path.lexists, (_whole(word, launch.cwd), *_PATHS.findall(word)))
        elif word not in _SUBCOMMANDS:
            path = _whole(word, launch.cwd)
            if not path or not os.path.lexists(path):
                return
            yield path
            if not previous.startswith("-") or _is_code(path):
                return
        previous = word


def _is_command(word: str) -> bool:
    """Say whether a word can be the command that another starts, and is no number or variable."""
    return not word.startswith("-") and "=" not in word and not word[:1].isdigit()


def _whole(word: str, cwd: str) -> str:
    """Return the absolute path that a word may be; "" if it can be none."""
    if word.startswith("/"):
        return word
    return os.path.join(cwd, word) if cwd and word and "\n" not in word else ""


def _is_code(path: str) -> bool:
    """Say whether a file is one that is run, by its name, its mode or its first bytes."""
    if not os.path.isfile(path):
        return False
    return bool(_CODE.fullmatch(os.path.basename(path))) or os.access(path, os.X_OK)


def _loads_from_its_folder(launch: Launch) -> bool:
    name = os.path.basename(launch.command)
    if name.startswith("python"):
        return any(word[:2] in {"-m", "-c"} for word in launch.args)
    if name == "java":
        return "-jar" not in launch.args
    words = (name, *(launch.args if _STARTER.fullmatch(name) else ()))
    return any(_RUNNER.fullmatch(os.path.basename(word)) for word in words)

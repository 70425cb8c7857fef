"""Paths of a server's definition from which code is executed or loaded when it starts."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from mcpwrap.core.environment import PATH, UV_PATHS
from mcpwrap.linux.executables import code_paths, shell
from mcpwrap.linux.executables.shell import ASSIGNMENT, SHELL

COMMAND, CWD = "command", "cwd"  # parts of a definition
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?")
_INTERPRETER = re.compile(
    rf"{_PYTHON.pattern}|{SHELL.pattern}|node[\d.]*|nodejs|deno|bun|tsx|ts-node|j?ruby[\d.]*"
    r"|perl[\d.]*|php[\d.]*|lua[\d.]*|luajit|java|[Rr]script|julia|dotnet|mono|wasmtime|osascript"
    r"|tclsh|pwsh|elixir|escript|scala|groovy|clojure|bb"
)
MAX_DEPTH = 16
# They search the working directory for code, or for files that name code.
_RUNNER = re.compile(
    r"npx|npm|pnpm|pnpx|yarn|bun|bunx|deno|tsx|ts-node|uv|uvx|pipx|poetry|pdm|hatch|pixi|rye|make|just"
    r"|go|cargo|dotnet|bundle|rake|mix|mvn|gradle|mise|asdf|direnv|uvicorn|gunicorn|fastmcp"
)
# Programs that they start by name.
_STARTED = ("node", "python3", "python", "sh", "git")
_SUBCOMMANDS = frozenset({"run", "exec", "tool", "dlx", "x", "watch", "--"})
# Options whose value is a path of code, and options with another value.
_WITH_PATH = frozenset({
    "-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "--tsconfig",
    "-I", "-L", "-C", "-cp", "-classpath", "--class-path", "--module-path", "-p", "--package",
    "--prefix", "--cwd", "--dir", "--directory", "--project", "--from", "--with",
    "--with-editable", "--with-requirements", "--python", "--config", "--config-file",
})  # fmt: skip
_WITH_VALUE = frozenset({"-X", "-W", "-d", "-o", "-O", "+o", "--conditions", "--stack-size"})
# Flags without a value: the next word may be the program. deno's are its permissions.
_FLAG = re.compile(
    rf"{_PYTHON.pattern} -[bBdEiIOPqRsSuvx]+|(ba|da)?sh -[abd-np-zA-NP-Z]+"
    r"|deno -[AENRSWqr]+(=.*)?|(node[\d.]*|nodejs|deno) --no-[a-z-]+"
)
_PRELOADS = re.compile(r"(-r|--require|--import|--(experimental-)?loader)(=.*)?")
# Paths to write to, permissions, and java's properties except those with paths of code.
_DATA_OPTION = re.compile(
    r"--(allow|deny)-.*|--(diagnostic|report)-dir.*|-XX:.*|-Xlog.*"
    r"|-D(?!java\.(library|class)\.path=|loader\.path=|java\.(ext|endorsed)\.dirs=).*"
)
# They start the command that follows their own options.
_STARTER = re.compile(
    r"env|nice|ionice|nohup|setsid|stdbuf|timeout|chrt|taskset|xvfb-run|time|tini|dumb-init|unbuffer"
)
# Variables with one path, or a list of paths, that a loader or an interpreter searches.
_LISTS = re.compile(
    r"LD_LIBRARY_PATH|PYTHONPATH|NODE_PATH|CLASSPATH|RUBYLIB|PERL5?LIB|GEM_PATH|LUA_C?PATH"
)
_LOADED = re.compile(
    rf"{_LISTS.pattern}"
    r"|LD_(PRELOAD|AUDIT)|PYTHON(HOME|STARTUP|USERBASE|WARNINGS|PYCACHEPREFIX)|VIRTUAL_ENV"
    r"|NODE_OPTIONS|(npm|NPM)_(config|CONFIG)_\w+|\w*(EDITOR|PAGER|BROWSER|ASKPASS|EXECUTABLE(_PATH)?)"
    r"|(UV|PIP|PIPX|POETRY|PDM|HATCH|PNPM|YARN)_\w+"
    r"|PERL5(OPT|DB)|RUBYOPT|GEM_HOME|BUNDLE_\w+|(_?JAVA|JDK)_\w+|PHPRC"
    r"|PHP_INI_SCAN_DIR|BASH_ENV|ENV|DENO_DIR|BUN_INSTALL|DOTNET_\w+|CORECLR_\w+|JULIA_\w+|R_\w+"
    r"|HOME|XDG_(CONFIG|DATA|CACHE)_HOME|GCONV_PATH|OPENSSL_\w+|GIT_(EXEC_PATH|CONFIG\w*|SSH\w*)"
    r"|NIX_LD(_LIBRARY_PATH)?|GTK_(MODULES|PATH)|GIO_(EXTRA_)?MODULES|QT_PLUGIN_PATH"
    r"|(MISE|ASDF|NVM|VOLTA|PYENV|CONDA|RBENV)_\w+|SHELL|RUSTC_WRAPPER|LESSOPEN|PLAYWRIGHT_BROWSERS_PATH|GO(FLAGS|ROOT|PATH|ENV)"
)
_HOME = re.compile(r"/(home/[^/]+|root)/?")  # no server sees it, and it cannot be a workspace
_KEPT = re.compile(r"HOME|XDG_\w+|\w*(cache|CACHE)\w*")
_TEMPORARY = re.compile(r"/(var/)?tmp(/(?!\.\.(/|$))[^/]*)*")  # each server has its own
_URL = re.compile(r"https?://")
_IMPORTS = re.compile(r"sys\.path|require|import\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Command line, folder and environment of a server; `env` has its values without secrets."""

    command: str
    args: Sequence[str]
    cwd: str  # "" is an empty folder of the session
    env: Mapping[str, str]
    depth: int = 0  # how many commands are around this one

    def search(self) -> list[str]:
        """Return the folders in which a program is searched for by its name."""
        folders = self.env.get("PATH", PATH).replace("$PATH", PATH).split(":")
        return [os.path.join(self.cwd, f) for f in folders if f.startswith("/") or self.cwd]

    def found(self, name: str) -> Iterator[str]:
        """Yield the existing files of this name on the search path, up to the first executable.

        A dangling link is yielded too: its target may exist later.
        """
        for folder in self.search():
            if os.path.lexists(path := os.path.join(folder, name)):
                yield path
                if os.access(path, os.X_OK):
                    return


def launch_of(
    command: str, args: Sequence[str], cwd: str, env: Mapping[str, Sequence[object]]
) -> Launch:
    """Return the launch of a server. Secrets in variables are left out: they name no code."""
    texts = {name: [part for part in parts if isinstance(part, str)] for name, parts in env.items()}
    literals = {name: "".join(parts) for name, parts in texts.items()}
    return Launch(command=command, args=args, cwd=cwd, env=literals)


def launches_of_python(interpreter: str, *, installs: bool) -> list[Launch]:
    """Return the launches of a Python server: of its interpreter, and of uv if it has packages."""
    programs = (interpreter, *(UV_PATHS if installs else ()))
    return [launch_of(program, (), "", {}) for program in programs]


@dataclass(frozen=True, slots=True)
class CodePath:
    """Path of code that is executed or loaded, and the part of the definition that names it."""

    path: str
    part: str
    is_executed: bool = False  # the server does not start without it
    is_searched: bool = False  # a folder from which one program is started
    is_too_deep: bool = False  # it is nested in more than MAX_DEPTH commands


def loaded(launch: Launch) -> Iterator[CodePath]:
    """Yield the command, and all other paths of code that the definition names."""
    yield CodePath(launch.command, COMMAND, is_executed=True)
    yield from _of_line(launch)
    for name, value in launch.env.items():
        yield from _of_variable(name, value, launch)


def _of_line(line: Launch) -> Iterator[CodePath]:
    """Yield the paths of code in a command line, and in the command lines nested in it."""
    name = os.path.basename(line.command)
    if _STARTER.fullmatch(name):
        yield from _started(line)
        return
    if line.cwd and _loads_from_its_folder(name, line.args):
        yield CodePath(line.cwd, CWD, is_searched=True)
    if _RUNNER.fullmatch(name):
        yield from (CodePath(path, "PATH") for one in _STARTED for path in line.found(one))
    for path in _of_arguments(name, line):
        yield CodePath(path, "args")
    yield from _inner(name, line)


def _of_arguments(name: str, line: Launch) -> Iterator[str]:
    if SHELL.fullmatch(name) and (text := shell.text_of(line.args)) is not None:
        files = filter(os.path.isfile, code_paths.PATHS.findall(text))
        yield from filter(None if shell.is_intricate(text) else code_paths.is_code, files)
    elif _RUNNER.fullmatch(name) or _INTERPRETER.fullmatch(name):
        yield from _up_to_operand(name, line)
    if name == "npm":  # it reads its own options up to `--`
        yield from _prefixes(takewhile(lambda word: word != "--", line.args), line.cwd)
    for word in line.args:
        value = word.partition("=")[2] if word.startswith("-") else word
        path = "" if _URL.match(value) else code_paths.whole(value, line.cwd)
        if path and code_paths.is_code(path):
            yield path


def _inner(name: str, line: Launch) -> Iterator[CodePath]:
    """Yield the paths of the command lines that a shell, a runner or another program starts."""
    if SHELL.fullmatch(name):
        yield from _of_text(shell.text_of(line.args) or "", line)
    elif not _INTERPRETER.fullmatch(name) or _RUNNER.fullmatch(name):
        previous = "--"
        for index, word in enumerate(line.args):
            if _is_known(word) and (previous == "--" or not previous.startswith("-")):
                yield from _program(replace(line, command=word, args=line.args[index + 1 :]))
                return
            if _is_known(word.partition(" ")[0]):
                yield from _of_text(word, line)
            previous = word


def _of_text(text: str, line: Launch) -> Iterator[CodePath]:
    for simple in shell.commands(text, line.cwd):
        yield from _set_and_run(replace(line, cwd=simple.cwd), simple.variables, simple.words)


def _started(line: Launch) -> Iterator[CodePath]:
    """Yield the paths of the command that env(1) or the like starts, with its variables and folder.

    Both are set by the arguments before the command.
    """
    words = list(_unsplit(line.args))
    may_be = [i for i, word in enumerate(words) if _is_command(word)]
    sure = (i for i in may_be if _is_known(words[i]) or "/" in words[i])
    at = next(sure, may_be[0] if may_be else len(words))
    folder = next(filter(None, map(_changed_folder, words[:at])), "")
    line = replace(line, cwd=code_paths.whole(folder, line.cwd) or line.cwd)
    yield from _set_and_run(line, list(filter(ASSIGNMENT.fullmatch, words[:at])), words[at:])


def _unsplit(args: Sequence[str]) -> Iterator[str]:
    """Yield the arguments with those of `env -S` split; `-C DIR` becomes `--chdir=DIR`."""
    is_text, is_folder = False, False
    for word in args:
        text = re.fullmatch(r"(-v?S|--split-string=?)(.*)", word, re.DOTALL)
        if is_folder:
            yield f"--chdir={word}"
        elif is_text or text:
            yield from ((text[2] if text else word).split())
        elif word not in {"-C", "--chdir"}:
            yield word
        is_folder = word in {"-C", "--chdir"} and not is_folder
        is_text = bool(text and not text[2])


def _changed_folder(word: str) -> str:
    return word.removeprefix("--chdir=") if word.startswith("--chdir=") else ""


def _set_and_run(
    line: Launch, assignments: Sequence[str], words: Sequence[str]
) -> Iterator[CodePath]:
    variables = dict(word.split("=", 1) for word in assignments)
    line = replace(line, env={**line.env, **variables})
    for name, value in variables.items():
        yield from _of_variable(name, value, line, "args")
    if words:
        yield from _program(replace(line, command=words[0], args=words[1:]))


def _program(line: Launch) -> Iterator[CodePath]:
    """Yield the paths of a command in another command's arguments, and of its own arguments."""
    line = replace(line, depth=line.depth + 1)
    if line.depth > MAX_DEPTH:
        yield CodePath(line.command, "args", is_too_deep=True)
        return
    if "/" in line.command:
        path = code_paths.whole(line.command, line.cwd)
        yield from [CodePath(path, "args")] if path else []
    else:
        yield from (CodePath(folder, "PATH", is_searched=True) for folder in line.search())
        yield from (CodePath(path, "PATH") for path in line.found(line.command))
    yield from _of_line(line)


def _of_variable(name: str, value: str, line: Launch, part: str = "") -> Iterator[CodePath]:
    paths: Iterable[str] = filter(code_paths.is_code, code_paths.PATHS.findall(value))
    if name == "PATH":
        paths = line.search()
    elif _LOADED.fullmatch(name) and not _is_its_own(name, value):
        paths = dict.fromkeys(filter(None, _of_loaded(name, value, line.cwd)))
    yield from (CodePath(path, part or f"env.{name}") for path in paths)


def _is_its_own(name: str, value: str) -> bool:
    """Return whether a variable names a folder private to each server, or visible to no server."""
    if name == "HOME" and _HOME.fullmatch(value):
        return True
    return _KEPT.fullmatch(name) is not None and _TEMPORARY.fullmatch(value) is not None


def _of_loaded(name: str, value: str, cwd: str) -> Iterator[str]:
    if _LISTS.fullmatch(name):  # an empty part is the working directory
        parts = value.split(":") if value or name == "CLASSPATH" else []
        yield from (code_paths.whole(part or ".", cwd) for part in parts)
        return
    yield code_paths.whole(value, cwd) if value[:1] in {"/", "."} else ""  # with a space in it
    words = [word for word in value.split() if not _DATA_OPTION.fullmatch(word)]
    for word in words:
        yield from code_paths.PATHS.findall(word)
        yield from (code_paths.whole(one, cwd) for one in re.split("[=:,]", word) if one[:1] == ".")
    if cwd and _preloads_by_name(words):
        yield cwd


def _up_to_operand(name: str, line: Launch) -> Iterator[str]:
    """Yield the paths up to the interpreter's program; the program's arguments follow it.

    Missing files are yielded too: they may exist when the server starts. It is not known whether
    an option outside these tables takes a value: after it, a path that is not code may be the
    option's value or the program.
    """
    previous = ""
    for word in _without_flags(name, line.args):
        if _takes_text(name, previous):
            yield from _of_code(word)
            return
        if word.startswith("-"):
            yield from () if _DATA_OPTION.fullmatch(word) else _of_option(word, line.cwd)
        elif previous in _WITH_PATH or previous in _WITH_VALUE:
            parts = word.split(":") if previous in _WITH_PATH and "://" not in word else []
            yield from filter(
                None, (*(code_paths.whole(one, line.cwd) for one in parts), *code_paths.paths(word))
            )
        elif word not in _SUBCOMMANDS:
            path = code_paths.whole(word, line.cwd)
            if not path or (_is_name(name, word) and not os.path.lexists(path)):
                yield from code_paths.paths(word) if previous.startswith("-") else ()
                return
            yield path
            if not previous.startswith("-") or code_paths.is_code(path):
                return
        previous = word


def _prefixes(words: Iterable[str], cwd: str) -> Iterator[str]:
    for option, value in pairwise([*words, ""]):
        if option in {"--prefix", "-C"}:
            yield from filter(None, [code_paths.whole(value, cwd)])
        elif option.startswith("--prefix="):
            yield from _of_option(option, cwd)


def _without_flags(name: str, args: Sequence[str]) -> list[str]:
    """Return the words without flags, and without what `cargo run --` passes to the program."""
    is_built = name in {"cargo", "dotnet"} and "run" in args
    words = takewhile(lambda word: word != "--", args) if is_built else args
    return [word for word in words if not _FLAG.fullmatch(f"{name} {word}")]


def _takes_text(name: str, option: str) -> bool:
    """Return whether the value of an option is code, or the name of a module."""
    if _PYTHON.fullmatch(name):
        return re.fullmatch(r"-[A-Za-z]*[cm]", option) is not None
    if SHELL.fullmatch(name):  # its text was examined already; `-e` means exit on error
        return False
    if name.startswith("php"):
        return option in {"-r", "--run"}
    return option in {"-e", "--eval", "--call", *(("-c",) if name.startswith("np") else ())}


def _of_code(text: str) -> Iterator[str]:
    """Yield the files that code names; the folders too if the code has imports."""
    for path in code_paths.PATHS.findall(text):
        if _IMPORTS.search(text) or not os.path.isdir(path):
            yield path


def _of_option(word: str, cwd: str) -> list[str]:
    value = word.partition("=")[2]
    return [
        *filter(None, [code_paths.whole(value, cwd) if value[:1] in {"/", "."} else ""]),
        *code_paths.paths(word),
    ]


def _is_name(command: str, word: str) -> bool:
    """Return whether a word may be the name of a package, module or script instead of a path."""
    return not word.startswith(("/", ".")) and _RUNNER.fullmatch(command) is not None


def _is_known(word: str) -> bool:
    """Return whether a word is a command of these tables, not a folder or mount of that name."""
    if word.startswith("/") and os.path.isdir(word.partition(":")[0]):
        return False
    name = os.path.basename(word)
    return any(one.fullmatch(name) for one in (_STARTER, _RUNNER, _INTERPRETER))


def _is_command(word: str) -> bool:
    """Return whether a word can be a command, not an option, a number or an assignment."""
    return not word.startswith("-") and "=" not in word and not word[:1].isdigit()


def _loads_from_its_folder(name: str, args: Sequence[str]) -> bool:
    options = list(takewhile(lambda word: word.startswith("-"), args))
    if _PYTHON.fullmatch(name):
        letters = "".join(word for word in options if not word.startswith("--"))
        return bool(re.search(r"[mc]", letters)) and not re.search(r"[IP]", letters)
    if name == "java":
        return not {"-jar", "-cp", "-classpath", "--class-path"} & {*args}
    preloads = name.startswith("node") and _preloads_by_name(_own_options(args))
    return preloads or _RUNNER.fullmatch(name) is not None


def _own_options(args: Sequence[str]) -> Iterator[str]:
    """Yield node's own options, with the values of those that load code."""
    for previous, word in pairwise(["", *args]):
        if not word.startswith("-") and ("=" in previous or not _PRELOADS.fullmatch(previous)):
            return
        yield word


def _preloads_by_name(options: Iterable[str]) -> bool:
    """Return whether node preloads a module that it searches for from the working directory."""
    for option, value in pairwise([*options, ""]):
        found = _PRELOADS.fullmatch(option)
        if found and not (found[3] or f"={value}").startswith(("=/", "=file:")):
            return True
    return False

"""One `mcpwrap run`, from its options to the server's exit status.

A server that is started without `--name` gets a default name, from its command.
"""

import errno
import os
import pwd
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcpwrap.as_agent.run import directories, environment, local_gate, relay, toolchain, user_audit
from mcpwrap.as_agent.run.relay import SIGNALS, WHO, RunResult
from mcpwrap.as_agent.run.sandbox.launch import Stage, StageError
from mcpwrap.as_agent.run.sandbox.layers import SHOWN, Confinement, Network, SandboxLayer, without
from mcpwrap.as_agent.run.toolchain import CommandContext
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name
from mcpwrap.core.wire import session_socket
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.launch.spawn import Program

_NOT_ENFORCED = (
    "an account of its own, sealed secrets, an egress allowlist, limits over all sessions"
)
_STDERR = 2
_FIXES = {
    errno.EACCES: "let it be read, and its interpreter: `--read FOLDER`",
    errno.ENOENT: "see that its interpreter, in its first line, is there",
}
_DEFAULT_NAME = "server"
# They run what an argument names; some by a word of their own before it.
_LAUNCHERS = re.compile(
    r"npx|npm|bunx?|pnpm|pnpx|yarn|deno|node|nodejs|tsx|uvx?|pipx|env|python(3(\.\d+)?)?"
)
_ASSIGNMENT = re.compile(r"\w+=(?!=).*")  # env(1); `a==1` is a version
_LAUNCHER_VERBS = frozenset({"run", "exec", "x", "dlx", "tool"})
_VERSION_SUFFIX = re.compile(r"(?<=.)(@|==|>=|~=).*")
_SCRIPT_SUFFIX = re.compile(r"\.(c|m)?(js|ts)$|\.py$")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options and arguments of `mcpwrap run`."""

    command: tuple[str, ...]
    name: str | None
    policy: Path | None
    inherit: tuple[str, ...]
    to_read: tuple[str, ...]
    to_write: tuple[str, ...]
    network: Network
    may_be_degraded: bool


class MissingLayerError(McpwrapError):
    """Sandbox layer that the kernel or its administrator does not allow, though we promise it."""

    exit_code = int(session_socket.Exit.UNAVAILABLE)


class StartError(McpwrapError):
    """Failed start of the server."""

    exit_code = int(session_socket.Exit.WRAPPER)


def run(options: RunOptions, environ: Mapping[str, str]) -> int:
    """Run the server until it has ended; return the exit status."""
    _open_all()
    account, home = _account_and_home(environ)
    own = directories.of_user(environ, home)
    name = _name(options)
    policy = local_gate.read_policy(options.policy, own.policy)
    inherited = environment.inherited(options.inherit, environ)
    to_write = _to_write(options, own.home_of(name).resolve())
    agents_path = environ.get("PATH", "")
    path = environment.search_path(agents_path)
    place = CommandContext(toolchain.wide_folders(home), Path.cwd(), path, to_write)
    program, place = _found(options.command[0], place, agents_path)
    its_home = directories.make_home(own, name)
    with directories.temporary() as tmp:
        env = environment.variables(
            account=account, home=its_home, tmp=tmp, path=place.path, inherited=inherited
        )
        if options.network is Network.NOTHING:
            env = environment.offline(env)
        system = environment.system(home)
        closing = _confinement(options, program, place, [*system], [its_home, tmp])
        started = Program(
            command=str(program), args=options.command[1:], cwd=str(place.cwd), env=env
        )
        with user_audit.session(own.audit, name, policy) as recorder:
            gate = local_gate.gate_for(name, policy, recorder)
            ended = _run_confined(started, closing, (gate, recorder.arrived), options)
    _report_end(ended, name, options)
    return ended.status


def _found(command: str, place: CommandContext, agents_path: str) -> tuple[Path, CommandContext]:
    """Return the program, and where it is to run."""
    program = toolchain.find_program(command, place)
    if program is None:
        raise StartError(
            "there is no such program",
            where=command,
            fix="write its whole path, or add its folder to PATH",
        )
    return program, replace(place, path=environment.search_path(agents_path, program))


def _open_all() -> None:
    """Leave none of 0, 1 and 2 closed: what is opened next would be taken for it."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        if fd == _STDERR:  # Python found it closed, and has nothing to write to
            sys.stderr = os.fdopen(fd, "w", closefd=False)  # noqa: TID251 - nothing is written
    os.close(fd)


def _account_and_home(environ: Mapping[str, str]) -> tuple[str, Path]:
    """Return our account and our home. In a container an account may have no entry."""
    try:
        entry = pwd.getpwuid(os.geteuid())
        account, home = entry.pw_name, entry.pw_dir
    except KeyError:
        account, home = str(os.geteuid()), "/"
    return account, Path(environ.get("HOME") or home).resolve()


def _name(options: RunOptions) -> str:
    name = default_server_name(options.command) if options.name is None else options.name
    if not is_server_name(name):
        raise UsageError(
            "no server can have that name",
            where=f"--name {name}",
            fix=f"write at most {MAX_NAME_CHARS} of a-z, 0-9, _ and -, a letter first",
        )
    return name


def default_server_name(command: Sequence[str]) -> str:
    """Return a name that a server can have: of the program, or of what a launcher is to run."""
    program, *arguments = command
    named = _last_part(program)
    while _LAUNCHERS.fullmatch(named) and arguments:
        word, *arguments = arguments
        if not word.startswith("-") and not _ASSIGNMENT.match(word) and word not in _LAUNCHER_VERBS:
            named = _last_part(word)
    text = _NOT_IN_A_NAME.sub("-", _SCRIPT_SUFFIX.sub("", named.lower()))
    return text.lstrip("-_0123456789")[:MAX_NAME_CHARS].rstrip("-") or _DEFAULT_NAME


def _last_part(word: str) -> str:
    return _VERSION_SUFFIX.sub("", word.rstrip("/").rpartition("/")[2])


def _to_write(options: RunOptions, home: Path) -> frozenset[Path]:
    real = {path: Path(path).resolve() for path in options.to_write}
    others = {home, *real.values()}
    return frozenset({home, *(_typed(path, others - {real[path]}) for path in real)})


def _typed(path: str, to_write: Collection[Path]) -> Path:
    """Return what was typed without links.

    Raises:
        UsageError: an earlier session of the server could have chosen where it leads.
    """
    real = toolchain.resolve_contained(Path.cwd() / path, to_write)
    if real is None:
        raise UsageError(
            "leads out of a folder that the server may write, which could have made the link",
            where=path,
            fix="name what it is to lead to: `realpath` prints it",
        )
    return real


def _confinement(
    options: RunOptions, program: Path, place: CommandContext, system: list[str], own: list[str]
) -> Confinement:
    arguments = options.command[1:]
    needed = toolchain.needed_paths(program, arguments, place)
    typed = {_typed(path, place.to_write) for path in options.to_read}
    to_read = {*system, os.path.realpath(environment.RESOLVERS), *map(str, needed | typed)}
    return Confinement(
        to_read=tuple(sorted(to_read)),
        to_write=(*own, *map(str, place.to_write)),
        links=_links({*needed, *toolchain.named_paths(program, arguments, place)}, options, place),
        cwd=str(place.cwd),
        network=options.network,
    )


def _links(names: set[Path], options: RunOptions, place: CommandContext) -> dict[str, str]:
    """Return the links by which its files may be named: by the system, by us and as was typed."""
    typed = (*environment.SYSTEM, environment.RESOLVERS, *options.to_read, *options.to_write)
    return {
        str(link): str(target)
        for name in (*names, *(place.cwd / path for path in typed))
        for link, target in toolchain.symlinks_on(name, place.to_write).items()
    }


def _run_confined(
    program: Program,
    closing: Confinement,
    judge: tuple[Gate, Callable[[], None]],
    options: RunOptions,
) -> RunResult:
    """Run it with all layers; if it may be, without those that are not to be had."""
    log_line(f"{WHO}: not enforced without the installed package: {_NOT_ENFORCED}")
    while True:
        try:
            return relay.run(program, closing, *judge)
        except StageError as error:
            layer = _missing(error, program)
            closing = replace(closing, layers=closing.layers - {layer})
            _do_without(layer, closing.layers, error, options)


def _missing(error: StageError, program: Program) -> SandboxLayer:
    """Return the layer that failed.

    Raises:
        StartError: it is none that failed.
    """
    if error.layer is None:
        raise StartError(
            f"cannot be started: {error.strerror}",
            where=program.cwd if error.stage is Stage.FOLDER else program.command,
            fix=_FIXES.get(error.errno or 0, "try it without `mcpwrap run --`"),
        ) from error
    return error.layer


def _do_without(
    layer: SandboxLayer, others: frozenset[SandboxLayer], error: StageError, options: RunOptions
) -> None:
    """Report that a layer is missing, and what the server can do without it.

    Raises:
        MissingLayerError: it may not be done without.
    """
    if not options.may_be_degraded:
        raise MissingLayerError(
            f"this machine does not give it: {error.strerror}; nothing was started",
            where=SHOWN[layer],
            fix=f"`--allow-degraded` does without, and then {without(layer, others)}",
        ) from error
    log_line(f"{WHO}: without {SHOWN[layer]} ({error.strerror}) {without(layer, others)}")


def _report_end(ended: RunResult, name: str, options: RunOptions) -> None:
    """Say what may have been the matter with a server that ended badly."""
    if ended.status > SIGNALS:
        log_line(f"{WHO}: {name} was ended by signal {ended.status - SIGNALS}")
    elif ended.status and not ended.has_answered:
        less = [] if options.network is Network.ALL else ["no network (`--network`)"]
        less += ["of your files only some (`--read`, `--write`)"]
        less += ["of your variables only some (`--inherit`)"]
        log_line(f"{WHO}: {name} ended before it answered; it had {', '.join(less)}")

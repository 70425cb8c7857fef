"""One run of `mcpwrap run`, from its options to the server's exit status.

Without `--name`, the server gets a default name, from its command.
"""

import errno
import os
import pwd
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mcpwrap.as_agent.run import directories, environment, relay, toolchain, user_audit
from mcpwrap.as_agent.run.approvals.channels import UserChannels, approving
from mcpwrap.as_agent.run.directories import Folders
from mcpwrap.as_agent.run.local_gate import PolicySource, RunPolicy
from mcpwrap.as_agent.run.relay import SIGNALS, WHO, RunJudging, RunResult
from mcpwrap.as_agent.run.remote_server import RemoteTarget
from mcpwrap.as_agent.run.sandbox import userns_profile
from mcpwrap.as_agent.run.sandbox.launch import Stage, StageError
from mcpwrap.as_agent.run.sandbox.layers import SHOWN, Confinement, Network, SandboxLayer, without
from mcpwrap.as_agent.run.toolchain import CommandContext
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name
from mcpwrap.core.policy.compiled import ServerContext
from mcpwrap.core.wire import session_socket
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.launch.spawn import Program

_NOT_ENFORCED = (
    "an account of its own, sealed secrets, an egress allowlist, pins, limits over all sessions, "
    "approval by another account"
)
_STDERR = 2
_FIXES = {
    errno.EACCES: "let the server read it and its interpreter: `--read FOLDER`",
    errno.ENOENT: "check that its interpreter, in its first line, exists",
}
_DEFAULT_NAME = "server"
# They run the package or script that an argument names; some need a verb before it.
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
    has_approver: bool = True  # whether to ask a person for approvals
    remote: RemoteTarget | None = None  # in place of a command


class MissingLayerError(McpwrapError):
    """Missing sandbox layer: the kernel lacks it, or the administrator does not allow it."""

    exit_code = int(session_socket.Exit.UNAVAILABLE)


class StartError(McpwrapError):
    """Failed start of the server."""

    exit_code = int(session_socket.Exit.WRAPPER)


def run(options: RunOptions, environ: Mapping[str, str]) -> int:
    """Run the server until it has ended; return the exit status."""
    _open_standard_streams()
    if options.remote is not None:
        options = _of_remote(options, options.remote)
    account, home = _account_and_home(environ)
    own = directories.of_user(environ, home)
    name = _name(options)
    in_force = RunPolicy(PolicySource(options.policy, own.policy), name)
    log_line(f"{WHO}: {in_force.describe()}")
    inherited = environment.inherited(options.inherit, environ)
    to_write = _to_write(options, own.home_of(name).resolve())
    agents_path = environ.get("PATH", "")
    path = environment.search_path(agents_path)
    cwd = Path.cwd() if options.remote is None else Path("/")
    context = CommandContext(toolchain.wide_folders(home), cwd, path, to_write)
    program, context = _found(options.command[0], context, agents_path)
    its_home = directories.make_home(own, name)
    with directories.temporary() as tmp:
        env = environment.variables(
            account=account, home=its_home, tmp=tmp, path=context.path, inherited=inherited
        )
        if options.network is Network.NOTHING:
            env = environment.offline(env)
        if options.remote is not None:
            env |= options.remote.environment(context)
        system = options.remote.system(home) if options.remote else [*environment.system(home)]
        closing = _confinement(options, program, context, system, [its_home, tmp])
        started = Program(
            command=str(program), args=options.command[1:], cwd=str(context.cwd), env=env
        )
        channels = UserChannels(own, environ) if options.has_approver else None
        with _judging(channels, own, in_force, context) as judging:
            ended = _run_confined(started, closing, judging, options)
    _report_end(ended, name, options)
    return ended.status


@contextmanager
def _judging(
    channels: UserChannels | None, own: Folders, in_force: RunPolicy, context: CommandContext
) -> Iterator[RunJudging]:
    """Lend the gate of the session, with its audit and its approvals."""
    with (
        user_audit.session(own.audit, in_force.server, in_force.policy) as audit,
        approving(channels, audit, in_force) as (approvals, serving),
    ):
        gate = in_force.gate(audit, approvals, _server_context(context))
        yield RunJudging(gate, in_force, serving)


def _of_remote(options: RunOptions, remote: RemoteTarget) -> RunOptions:
    """Return the options of the program that runs in place of a remote server."""
    return replace(
        options,
        command=remote.command(),
        name=remote.default_name if options.name is None else options.name,
        to_read=remote.to_read(),
        network=Network.ALL,
    )


def _server_context(context: CommandContext) -> ServerContext:
    """Return where the server may delete: what it may write, and its working folder."""
    is_wide = context.is_too_wide(context.cwd)
    folders = context.to_write if is_wide else {context.cwd, *context.to_write}
    return ServerContext(workspaces=tuple(sorted(map(str, folders))))


def _found(command: str, context: CommandContext, agents_path: str) -> tuple[Path, CommandContext]:
    """Return the program, and its context with the program's folder on the search path."""
    program = toolchain.find_program(command, context)
    if program is None:
        raise StartError(
            "no such program",
            where=command,
            fix="write its absolute path, or add its folder to PATH",
            code="E-RUN-NO-PROGRAM",
        )
    return program, replace(context, path=environment.search_path(agents_path, program))


def _open_standard_streams() -> None:
    """Open those of 0, 1 and 2 that are closed: the next opened file would get their number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        if fd == _STDERR:  # Python found it closed, and has no stream for it
            sys.stderr = os.fdopen(fd, "w", closefd=False)  # noqa: TID251 - nothing is written
    os.close(fd)


def _account_and_home(environ: Mapping[str, str]) -> tuple[str, Path]:
    """Return the account and home of this process. In a container it may have no passwd entry."""
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
            "is not a valid name of a server",
            where=f"--name {name}",
            fix=f"write at most {MAX_NAME_CHARS} of a-z, 0-9, _ and -, a letter first",
            code="E-RUN-NAME",
        )
    return name


def default_server_name(command: Sequence[str]) -> str:
    """Return a valid server name: from the program, or from the package that a launcher runs."""
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
    """Return a path of the command line without links.

    Raises:
        UsageError: an earlier session of the server could have chosen the target of a link on it.
    """
    real = toolchain.resolve_contained(Path.cwd() / path, to_write)
    if real is None:
        raise UsageError(
            "leads out of a folder that the server may write: the server could have made the link",
            where=path,
            fix="write the path that `realpath` prints, if that is the intended one",
            code="E-RUN-LINK",
        )
    return real


def _confinement(
    options: RunOptions, program: Path, context: CommandContext, system: list[str], own: list[str]
) -> Confinement:
    arguments = options.command[1:]
    needed = toolchain.needed_paths(program, arguments, context)
    typed = {_typed(path, context.to_write) for path in options.to_read}
    to_read = {*system, os.path.realpath(environment.RESOLVERS), *map(str, needed | typed)}
    return Confinement(
        to_read=tuple(sorted(to_read)),
        to_write=(*own, *map(str, context.to_write)),
        links=_links(
            {*needed, *toolchain.named_paths(program, arguments, context)}, options, context
        ),
        cwd=str(context.cwd),
        network=options.network,
    )


def _links(names: set[Path], options: RunOptions, context: CommandContext) -> dict[str, str]:
    """Return the links by which the system, mcpwrap and the command line name visible files."""
    typed = (*environment.SYSTEM, environment.RESOLVERS, *options.to_read, *options.to_write)
    return {
        str(link): str(target)
        for name in (*names, *(context.cwd / path for path in typed))
        for link, target in toolchain.symlinks_on(name, context.to_write).items()
    }


def _run_confined(
    program: Program,
    closing: Confinement,
    judging: RunJudging,
    options: RunOptions,
) -> RunResult:
    """Run the server with all layers; with `--allow-degraded` without those that are missing."""
    log_line(f"{WHO}: not enforced without the installed package: {_NOT_ENFORCED}")
    while True:
        try:
            return relay.run(program, closing, judging)
        except StageError as error:
            layer = _missing(error, program)
            closing = replace(closing, layers=closing.layers - {layer})
            do_without(layer, closing.layers, error, options)


def _missing(error: StageError, program: Program) -> SandboxLayer:
    """Return the layer that failed.

    Raises:
        StartError: the failure is not of a layer.
    """
    if error.layer is None:
        raise StartError(
            f"cannot be started: {error.strerror}",
            where=program.cwd if error.stage is Stage.FOLDER else program.command,
            fix=_FIXES.get(error.errno or 0, "try the command without `mcpwrap run --`"),
            code="E-RUN-START",
        ) from error
    return error.layer


def do_without(
    layer: SandboxLayer, others: frozenset[SandboxLayer], error: StageError, options: RunOptions
) -> None:
    """Report that a layer is missing, and what the server can do without it.

    Raises:
        MissingLayerError: `--allow-degraded` is not given.
    """
    if not options.may_be_degraded:
        degraded = f"with `--allow-degraded` it starts nevertheless, but {without(layer, others)}"
        if layer is SandboxLayer.NAMESPACES and userns_profile.is_missing():
            raise _without_profile(userns_profile.own_program(sys.argv[0]), degraded) from error
        raise MissingLayerError(
            f"not available on this machine: {error.strerror}; nothing was started",
            where=SHOWN[layer],
            fix=degraded,
            code="E-RUN-MISSING-LAYER",
        ) from error
    log_line(f"{WHO}: without {SHOWN[layer]} ({error.strerror}): {without(layer, others)}")


def _without_profile(program: str, degraded: str) -> MissingLayerError:
    """Return the error for a kernel that gives user namespaces to programs with a profile only."""
    file = userns_profile.file_of(program)
    return MissingLayerError(
        f"AppArmor lets only programs with a profile make them, and {program} has none; nothing "
        "was started",
        where=SHOWN[SandboxLayer.NAMESPACES],
        more=userns_profile.profile(program),
        fix=f"as root, write these lines into {file}, then `sudo apparmor_parser -r {file}`; or "
        f"{degraded}",
        code="E-RUN-APPARMOR",
    )


def _report_end(ended: RunResult, name: str, options: RunOptions) -> None:
    """Log the signal or the likely causes of a server's failure."""
    if ended.status > SIGNALS:
        number = ended.status - SIGNALS
        log_line(f"{WHO}: {name} was ended by signal {number} [E-RUN-SIGNAL]")
    elif ended.status and not ended.has_answered and options.remote is None:
        less = [] if options.network is Network.ALL else ["no network (`--network`)"]
        less += ["only some of your files (`--read`, `--write`)"]
        less += ["only some of your variables (`--inherit`)"]
        had = ", ".join(less)
        log_line(f"{WHO}: {name} ended before it answered; it had {had} [E-RUN-NO-ANSWER]")

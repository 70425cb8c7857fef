"""Live probes of `mcpwrap doctor`: attempts under another account, instead of a look at files."""

import os
import pwd
import select
import signal
import subprocess
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mcpwrap.core.names import account_of
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, UP, ToolError, properties, run
from mcpwrap.plan import paths

LIBEXEC = "/usr/libexec/mcpwrap"
SETPRIV = "/usr/bin/setpriv"
NSENTER = "/usr/bin/nsenter"
_MACHINE = Path("/proc/1/ns/mnt")
_WAIT_S = 90
_MAX_LINE_CHARS = 200
_MAX_MORE_LINES, _MAX_MORE_CHARS = 32, 8192  # a check of each known agent
_is_cancelled = threading.Event()
_running: set[subprocess.Popen[bytes]] = set()


class TrialStatus(Enum):
    """Result of a probe, by the exit status of the program that tried. Any other is UNKNOWN."""

    WORKED = 0
    REFUSED = 10  # by the boundary that must refuse it; of a session: no answer
    NO_ROUTE = 11  # no network leads there, so the packet rules did not judge it
    OTHERWISE = 12  # it was tried, and neither worked nor was refused
    NO_ANSWER = 13  # Squid did not answer, so its allowlist was not evaluated
    IN_PLACE = 14  # a file can be written in place, but not replaced by another
    UNKNOWN = -1  # it was not tried, or not completed


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Result of a probe, the line that it printed, and further lines of a session of a hub."""

    ended: TrialStatus
    line: str
    more: tuple[str, ...] = ()


class TrialNotRunError(McpwrapError):
    """Failure to enter a wrapper: no probe can be made from inside, and the results are unknown."""


@dataclass(frozen=True, slots=True)
class WrapperView:
    """Account of a running wrapper, and its mount and network namespaces, which outlive it here."""

    account: str
    mount_fd: int
    net_fd: int


def cancel_trials() -> None:
    """End the running probes of all threads, and make no more in this process."""
    _is_cancelled.set()
    for process in _running.copy():
        _kill(process)


def session(account: str, server: str, *attempt: str) -> TrialResult:
    """Open a session of `server`, like an agent under `account`, and list the tools.

    `attempt` is another thing to try: see `mcpwrap.as_agent.session_probe`.
    """
    return _run_as(account, f"{LIBEXEC}/mcpwrap-try-session", server, *attempt)


def try_as(account: str, *what: str) -> TrialResult:
    """Make one attempt under an account. `what`: see `mcpwrap.as_wrapper.network_probe`."""
    return _run_as(account, f"{LIBEXEC}/mcpwrap-try-reach", *what)


@contextmanager
def open_wrapper_view(server: str) -> Iterator[WrapperView]:
    """Open the namespaces of a server's wrapper; start it if it is down and its socket listens.

    Raises:
        TrialNotRunError: it does not run, ended meanwhile, or has no namespaces of its own.
    """
    unit = paths.service_unit(server)
    shown = properties([unit, paths.socket_unit(server)], ["ActiveState"])
    is_listening = shown[paths.socket_unit(server)]["ActiveState"] == "active"
    is_up = shown[unit]["ActiveState"] in UP
    if not is_up and is_listening and not _is_cancelled.is_set():
        with suppress(ToolError):  # the status of the unit, with its reason, is read below
            run(SYSTEMCTL, "start", "--", unit)
    with ExitStack() as held:
        mount_fd, net_fd = _namespaces(server, unit, held)
        yield WrapperView(account_of(server), mount_fd, net_fd)


def try_reach(view: WrapperView, *what: str) -> TrialResult:
    """Make one attempt as the server would. `what`: see `mcpwrap.as_wrapper.network_probe`."""
    try:
        entry = pwd.getpwnam(view.account)
    except KeyError:
        return TrialResult(
            TrialStatus.UNKNOWN, f"the account {view.account} does not exist any more"
        )
    mount, net = f"--mount=/proc/self/fd/{view.mount_fd}", f"--net=/proc/self/fd/{view.net_fd}"
    argv = [NSENTER, mount, net, "--", *_setpriv(entry, "--clear-groups")]
    return _run([*argv, f"{LIBEXEC}/mcpwrap-try-reach", *what], (view.mount_fd, view.net_fd))


def _namespaces(server: str, unit: str, held: ExitStack) -> tuple[int, int]:
    """Return descriptors of the mount and network namespaces of a wrapper that is up.

    As long as its pidfd shows that the process lives, the PID is not reused: all that was read
    is of one process. Before the unit is up, its namespaces may be the machine's, or incomplete.

    Raises:
        TrialNotRunError: it does not run, ended meanwhile, or has no namespaces of its own.
    """
    found = properties([unit], ["ActiveState", "MainPID", "ControlGroup", "StatusText", "Result"])
    shown = found[unit]
    if shown["ActiveState"] not in UP:
        reason = shown["StatusText"] or shown["Result"]
        problem = f"its wrapper does not run ({shown['ActiveState']}; {reason})"
        raise _not_entered(server, problem, code="E-DOCTOR-WRAPPER-DOWN")
    pid = int(shown["MainPID"])
    try:
        pidfd = _held(held, os.pidfd_open(pid))
        mount_fd, net_fd = (
            _held(held, os.open(f"/proc/{pid}/ns/{n}", os.O_RDONLY)) for n in ("mnt", "net")
        )
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError as error:
        problem = f"its wrapper ended meanwhile ({error.strerror})"
        raise _not_entered(server, problem, code="E-DOCTOR-WRAPPER-DOWN") from error
    if select.select([pidfd], [], [], 0)[0] or not any(_is_in(g, shown) for g in groups):
        raise _not_entered(server, "its wrapper ended meanwhile", code="E-DOCTOR-WRAPPER-DOWN")
    if os.path.samestat(os.fstat(mount_fd), _MACHINE.stat()):
        problem = "its wrapper has the mount namespace of the machine, not its own"
        raise _not_entered(server, problem, code="E-DOCTOR-WRAPPER-NAMESPACE")
    return mount_fd, net_fd


def _held(held: ExitStack, fd: int) -> int:
    held.callback(os.close, fd)
    return fd


def _is_in(line: str, shown: dict[str, str]) -> bool:
    """Return whether a line of /proc/PID/cgroup (cgroups(7)) is a unit's group, or one inside."""
    path = line.split(":", 2)[-1]
    return path == shown["ControlGroup"] or path.startswith(f"{shown['ControlGroup']}/")


def _not_entered(server: str, problem: str, *, code: str) -> TrialNotRunError:
    fix = f"`mcpwrap status {server}` shows why; then run `sudo mcpwrap doctor {server}` again"
    return TrialNotRunError(problem, where=f"server {server}", fix=fix, code=code)


def _run_as(account: str, *argv: str) -> TrialResult:
    """Run a probe with an account's UID and groups."""
    try:
        entry = pwd.getpwnam(account)
    except KeyError:
        return TrialResult(TrialStatus.UNKNOWN, f"the account {account!r} does not exist any more")
    groups = ",".join(map(str, os.getgrouplist(account, entry.pw_gid)))
    return _run([*_setpriv(entry, f"--groups={groups}"), *argv])


def _setpriv(entry: pwd.struct_passwd, groups: str) -> list[str]:
    """Return the first arguments of a command that runs with the rights of an account."""
    return [SETPRIV, f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", groups, "--"]


def _run(argv: list[str], fds: Collection[int] = ()) -> TrialResult:
    """Run a probe. Its output is untrusted: lines of printable characters are returned."""
    try:
        done = _done(argv, fds)
    except subprocess.TimeoutExpired:
        return TrialResult(TrialStatus.UNKNOWN, f"did not end within {_WAIT_S} s")
    except OSError as error:
        return TrialResult(TrialStatus.UNKNOWN, f"{argv[0]}: {error.strerror}")
    text = (done.stdout or done.stderr).decode(errors="replace").strip()
    lines = text.splitlines() or [f"status {done.returncode}"]
    line = lines[0] if done.stdout else lines[-1]
    more = lines[1:_MAX_MORE_LINES] if done.stdout else []
    return TrialResult(
        _ended(done.returncode),
        _printable(line)[:_MAX_LINE_CHARS],
        tuple(_printable(each)[:_MAX_MORE_CHARS] for each in more),
    )


def _printable(line: str) -> str:
    return "".join(filter(str.isprintable, line))


def _done(argv: list[str], fds: Collection[int]) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, unless `cancel_trials` kills it."""
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        pass_fds=fds,
        start_new_session=True,  # the account could type on root's terminal (ioctl_tty(2), TIOCSTI)
    ) as process:
        _running.add(process)
        try:
            if _is_cancelled.is_set():  # it began too late for `cancel_trials` to see it
                _kill(process)
            out, err = process.communicate(timeout=_WAIT_S)
        except BaseException:
            _kill(process)
            raise
        finally:
            _running.discard(process)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started, which may outlive it and hold its output open."""
    if process.returncode is None:  # not reaped, so the number of the group is still its own
        with suppress(ProcessLookupError):  # another thread reaps it
            os.killpg(process.pid, signal.SIGKILL)


def _ended(status: int) -> TrialStatus:
    try:
        return TrialStatus(status)
    except ValueError:  # setpriv or nsenter failed, a signal, a bug
        return TrialStatus.UNKNOWN

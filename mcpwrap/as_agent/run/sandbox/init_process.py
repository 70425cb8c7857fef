"""First process of a session: starts the server, and ends when the server or the relay does.

In a PID namespace it is PID 1, and all other processes there end with it.
"""

import os
import resource
import select
import signal
from functools import partial
from typing import NoReturn

from mcpwrap.as_agent.run.sandbox.launch import FORWARDED, SandboxLaunch, Stage, StartReporter
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.process import child_exit, descendants

BUG = 70  # session_socket.Exit.WRAPPER; the traceback is on standard error
_RELAY_HAS_ENDED = signal.SIGUSR1
_REPORT_FD = 3
_ALL_FDS = 1_048_576


def run_init(launch: SandboxLaunch, report: StartReporter) -> NoReturn:
    """Run as the session's first process. The relay is its parent or subreaper."""
    _end_with_relay(launch, report)
    with report.of(Stage.NAMESPACES):
        launch.closing.fix_files()
    with report.of(Stage.FORK):
        server_pid = os.fork()
    if server_pid == 0:
        _become_server(launch, report)
    _close_streams()
    numbers = {*FORWARDED} - launch.signals_blocked
    if not launch.closing.is_apart:
        numbers.add(_RELAY_HAS_ENDED)
    status = child_exit.await_end(server_pid, numbers, partial(_on_signal, server_pid))
    if not launch.closing.is_apart:
        descendants.end_all()
    os._exit(status)


def _close_streams() -> None:
    """Close all but standard error: a stream ends when relay and server have closed it."""
    nothing_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(nothing_fd, fd)
    os.closerange(_REPORT_FD, _ALL_FDS)


def _end_with_relay(launch: SandboxLaunch, report: StartReporter) -> None:
    """Request a signal for the relay's end, and check whether it has ended already."""
    if launch.closing.is_apart:
        prctl.end_with_parent(signal.SIGKILL)
    else:
        prctl.adopt_orphans()
        signal.pthread_sigmask(signal.SIG_BLOCK, {_RELAY_HAS_ENDED})
        prctl.end_with_parent(_RELAY_HAS_ENDED)
    poll = select.poll()
    poll.register(report.fd, 0)  # POLLERR, always reported, means that the reader has gone
    if poll.poll(0):
        os._exit(0)


def _on_signal(server_pid: int, number: int) -> None:
    """Forward a signal of the relay; after the relay's end, kill all processes."""
    if number != _RELAY_HAS_ENDED:
        os.kill(server_pid, number)
        return
    descendants.end_all()
    os._exit(0)


def _become_server(launch: SandboxLaunch, report: StartReporter) -> NoReturn:
    program = launch.program
    for target, fd in enumerate(launch.stdio):
        os.dup2(fd, target)
    if report.fd != _REPORT_FD:
        os.dup2(report.fd, _REPORT_FD, inheritable=False)
        report = StartReporter(_REPORT_FD)
    os.closerange(_REPORT_FD + 1, _ALL_FDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with report.of(Stage.FOLDER):
        os.chdir(program.cwd)
    prctl.drop_capabilities()
    prctl.gain_nothing()  # Landlock and seccomp need this of an ordinary user
    with report.of(Stage.LANDLOCK):
        launch.closing.shut_files()
    with report.of(Stage.SECCOMP):
        launch.closing.shut_calls()
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, launch.signals_blocked)
    with report.of(Stage.PROGRAM):
        os.execve(program.command, [program.command, *program.args], dict(program.env))

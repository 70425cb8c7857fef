"""Process start of a session: forks into its namespaces, and waits until the server runs.

The relay forks a process that enters the namespaces. Only a child of that process is in all of
them: the session's first process (`init_process.py`), which forks the server. The relay adopts it
when the process between them ends.
"""

import os
from typing import NoReturn

from mcpwrap.as_agent.run.sandbox import init_process
from mcpwrap.as_agent.run.sandbox.launch import (
    SandboxLaunch,
    Stage,
    StageError,
    StartReporter,
    read_report,
)
from mcpwrap.linux import tty
from mcpwrap.linux.isolation import prctl


def start(launch: SandboxLaunch) -> int:
    """Start the server; return the pid of the session's first process once the server runs.

    The caller is single-threaded, and blocks the signals of AWAITED.

    Raises:
        StageError: the server does not run, and no process is left.
    """
    prctl.adopt_orphans()
    report_fd, say_fd = os.pipe2(os.O_CLOEXEC)
    wait_fd, go_fd = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(report_fd)
        _without_return(launch, StartReporter(say_fd), (wait_fd, go_fd))
    os.close(say_fd)
    os.waitpid(pid, 0)
    for fd in (wait_fd, go_fd):  # this process has adopted the first process, which may go on
        os.close(fd)
    report = read_report(report_fd)
    os.close(report_fd)
    first_pid = report.pop(Stage.FIRST_PROCESS, 0)
    if report and first_pid:
        os.waitpid(first_pid, 0)
    for stage, error_number in report.items():
        raise StageError(stage, error_number)
    return first_pid


def _without_return(
    launch: SandboxLaunch, report: StartReporter, until_adopted: tuple[int, int]
) -> NoReturn:
    try:
        _part(launch, report, until_adopted)
    except BaseException as bug:  # noqa: BLE001 - the relay's code, which called us, must not go on
        tty.show_bug(bug)
    finally:
        os._exit(init_process.BUG)


def _part(launch: SandboxLaunch, report: StartReporter, until_adopted: tuple[int, int]) -> None:
    """Enter the namespaces, fork the first process in them, and exit."""
    wait_fd, go_fd = until_adopted
    with report.of(Stage.NAMESPACES):
        os.setsid()
        launch.closing.part()
    with report.of(Stage.FORK):
        pid = os.fork()
    if pid == 0:
        os.close(go_fd)
        os.read(wait_fd, 1)  # until the relay adopts it: this parent's end must not count
        init_process.run_init(launch, report)
    report.say(Stage.FIRST_PROCESS, pid)
    os._exit(0)

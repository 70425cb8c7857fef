"""Entry point of `mcpwrap-job@.service`: one connection, one run."""

import fcntl
import os
import signal
import socket

from mcpwrap.as_job import confinement, job_request, supervisor
from mcpwrap.as_job.frame_writer import FrameWriter
from mcpwrap.as_job.job_request import HangUpError, RequestError
from mcpwrap.as_job.run_process import SlotFolders
from mcpwrap.as_job.slot_account import NotASlotError, SlotAccount
from mcpwrap.as_job.supervisor import SlotSettings
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.socket_activation import listening_socket
from mcpwrap.linux.systemd.stderr_log import log_line

_ACCEPT_S = 10.0  # a connection has started the unit, unless it was started by hand
_INTERPRETER = "/usr/bin/python3"


def main() -> int:
    """Serve one run. Exit status: 0 it is served, or the worker hung up; 1 it was refused."""
    # Accepted before the account is checked: PID 1 would start a unit that leaves the connection in
    # the socket again and again.
    connection = _accepted()
    if connection is None:
        return 0
    try:
        account = SlotAccount.of_this_process()
        text, frames_fd = job_request.receive(connection)
    except HangUpError:
        return 0
    except (NotASlotError, RequestError) as error:
        log_line(f"mcpwrap-job: {error}")
        return 1
    end_with(connection)
    prctl.adopt_orphans()
    slot = SlotSettings(
        interpreter=os.environ.get("MCPWRAP_INTERPRETER", _INTERPRETER),  # noqa: TID251 - a main()
        account=account.name,
        end_other_processes=account.end_other_processes,
        confine=confinement.enter,
        folders=SlotFolders(),
    )
    frames = FrameWriter(frames_fd)
    try:
        try:
            request = job_request.parse(text)
        except RequestError as error:
            supervisor.refuse(frames, f"the request is not valid: {error}")
            return 0
        del text  # up to 24 MiB, which count as memory of the run
        supervisor.supervise(request, frames, slot)
    except BrokenPipeError:  # the worker has gone
        account.end_other_processes()
    return 0


def end_with(connection: socket.socket) -> None:
    """Have the kernel kill this process when the worker hangs up. Source: fcntl(2), F_SETSIG.

    The run shares the UID, and where Landlock cannot prevent it (before Linux 6.12) it can stop
    this process: a hang-up that this process had to notice would not end the run.
    """
    fd = connection.fileno()
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    if job_request.has_hung_up(connection):  # before it was armed
        os.kill(os.getpid(), signal.SIGKILL)


def _accepted() -> socket.socket | None:
    """Return the connection of the worker. Nothing else is accepted: the listener is closed."""
    with listening_socket(os.environ) as listener:  # noqa: TID251 - a main()
        listener.settimeout(_ACCEPT_S)
        try:
            return listener.accept()[0]
        except TimeoutError:
            return None

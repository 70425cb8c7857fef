"""First process of a run: its files, its environment, and its start.

Between fork(2) and execve(2) the child raises its oom_score_adj, so that the kernel kills the run
before the run supervisor when memory runs out, and enters the confinement. It waits until the run
supervisor cannot be traced any more (PR_SET_DUMPABLE): then no code of the run reads its memory or
descriptors. Its own oom_score_adj can be written only before that.
"""

import os
import signal
from collections.abc import Callable, Mapping

from mcpwrap.as_job.job_request import JobRequest
from mcpwrap.as_job.resource_usage import CGROUP
from mcpwrap.linux.isolation import prctl

# In the view of the run slot too: /usr is the machine's.
RUNNER = os.path.join(os.path.dirname(__file__), "runner.py")
_MAX_ERROR_BYTES = 1000


class RunStartError(Exception):
    """The run could not be started; no line of its code was executed."""


class SlotFolders:
    """Folders of a run slot, as the run sees them."""

    __slots__ = ("cgroup", "files_in", "files_out", "packages", "value", "work")

    def __init__(self, root: str = "") -> None:
        self.work = f"{root}/tmp"  # noqa: S108 - of the slot, and empty when a run starts
        self.files_in = f"{root}/in"
        self.files_out = f"{root}/out"
        self.packages = f"{root}/packages/environments"
        self.value = f"{root}/run/mcpwrap-job/value"
        self.cgroup = f"{root}{CGROUP}"


def prepare(request: JobRequest, folders: SlotFolders) -> list[str]:
    """Write the code and the files for /in; return the arguments of the interpreter.

    Raises:
        RunStartError: the packages are not there, or a file does not fit.
    """
    if request.packages and not os.path.isdir(f"{folders.packages}/{request.packages}"):
        raise RunStartError(
            f"the packages {request.packages} are not in this run slot: if the server's cache was "
            "removed, the operator restarts the server"
        )
    main = f"{folders.work}/main.py"
    content_by_path = {f"{folders.files_in}/{name}": it for name, it in request.files.items()}
    try:
        for path, content in {**content_by_path, main: request.code}.items():
            with open(path, "xb") as file:
                file.write(content)
    except OSError as error:
        raise RunStartError(
            f"cannot write {error.filename or 'a file'}: {error.strerror}"
        ) from error
    return [RUNNER, main, folders.value, folders.files_out]


def environment(
    request: JobRequest, folders: SlotFolders, interpreter: str, account: str
) -> dict[str, str]:
    """Return the whole environment of the run: nothing of this process's own is in it."""
    path = [os.path.dirname(interpreter), "/usr/local/bin", "/usr/bin", "/bin"]
    variables = {
        "HOME": folders.work,
        "TMPDIR": folders.work,
        "LANG": "C.UTF-8",
        "USER": account,
        "LOGNAME": account,
        "PYTHONUTF8": "1",
        # What was printed before a run is ended must have been written.
        "PYTHONUNBUFFERED": "1",
        # Packages are read-only, and no other run uses what this one compiles.
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": f"{folders.work}/.matplotlib",
    }
    # Otherwise numeric libraries start one thread for each processor of the machine.
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        variables[f"{name}_NUM_THREADS"] = str(request.cpus)
    variables["PYTHON_CPU_COUNT"] = str(request.cpus)
    if request.packages:
        packages = f"{folders.packages}/{request.packages}"
        variables["PYTHONPATH"] = packages
        path.insert(0, f"{packages}/bin")
    variables["PATH"] = ":".join(dict.fromkeys(path))
    return variables


class RunProcess:
    """First process of a run, and the pipes with its standard output and error."""

    __slots__ = ("pid", "stderr_fd", "stdout_fd")

    def __init__(self, pid: int, stdout_fd: int, stderr_fd: int) -> None:
        self.pid = pid
        self.stdout_fd = stdout_fd
        self.stderr_fd = stderr_fd


class _ChildFds:
    """Descriptors of the child between fork(2) and execve(2)."""

    __slots__ = ("error", "go", "stderr", "stdout")

    def __init__(self, go: int, stdout: int, stderr: int, error: int) -> None:
        self.go = go  # readable when the run supervisor cannot be traced any more
        self.stdout = stdout
        self.stderr = stderr
        self.error = error  # closed by execve(2)


def start(
    argv: list[str], env: Mapping[str, str], folder: str, confine: Callable[[], None]
) -> RunProcess:
    """Start the interpreter in this folder. From then on this process cannot be traced.

    `confine` is called in the child, last before execve(2).

    Raises:
        RunStartError: no process can be started, the interpreter cannot be executed, or the kernel
            refused a restriction.
    """
    (go_read, go), (stdout, stdout_write) = os.pipe(), os.pipe()
    (stderr, stderr_write), (error, error_write) = os.pipe(), os.pipe()
    try:
        pid = os.fork()
    except OSError as problem:  # EAGAIN: other processes of the UID; ENOMEM
        raise RunStartError(f"no process can be started: {problem.strerror}") from problem
    if pid == 0:
        os.close(go)
        child_fds = _ChildFds(go_read, stdout_write, stderr_write, error_write)
        try:
            _prepare_child(child_fds, folder)
            confine()
            os.execve(argv[0], argv, env)
        except BaseException as problem:  # noqa: BLE001 - nothing may return to the caller's code
            os.write(error_write, f"cannot start {argv[0]}: {problem}".encode()[:_MAX_ERROR_BYTES])
        finally:
            os._exit(127)
    for fd in (go_read, stdout_write, stderr_write, error_write):
        os.close(fd)
    prctl.forbid_dumps()
    os.close(go)
    with open(error, "rb") as opened:
        why = opened.read(_MAX_ERROR_BYTES).decode(errors="replace")
    if why:
        raise RunStartError(why)
    return RunProcess(pid, stdout, stderr)


def _prepare_child(fds: _ChildFds, folder: str) -> None:
    """Leave the run its descriptors 0, 1 and 2, default signals, and a session of its own."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    os.read(fds.go, 1)
    os.setsid()
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(fds.stdout, 1)
    os.dup2(fds.stderr, 2)
    os.closerange(3, fds.error)
    os.closerange(fds.error + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)

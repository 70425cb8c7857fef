"""Attempts of the code of a run to reach beyond its run slot. The text of this file is that code.

The same attempts are made outside, by an account that is not confined: there they succeed. Each is
made in a process of its own, because some change it.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PARENT = os.getppid()  # in a run: its supervisor
_NEWUSER, _CLONE, _MAX_BYTES = 0x10000000, 56, 1 << 16
_F_SETSIG = 10
_libc = ctypes.CDLL(None, use_errno=True)


def _is_open(fd: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def _is_library(fd: int) -> bool:
    """Return whether it is a library: libffi 3.5 has its own open, for ctypes."""
    return str(Path(f"/proc/self/fd/{fd}").readlink()).startswith("/usr/lib/")


_NUMBERS = range(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
_OPEN = [fd for fd in _NUMBERS if _is_open(fd) and not _is_library(fd)]


def outcomes(attempts: Sequence[Sequence[Any]]) -> list[Any]:
    """Make these attempts, each the name of a function below and its arguments."""
    return [_outcome(globals()[name], arguments) for name, *arguments in attempts]


def _outcome(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return what the function returns, the name of its error, or that of the signal."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        try:
            found = function(*arguments)
        except OSError as error:
            found = errno.errorcode[error.errno or 0]
        except BaseException as error:  # noqa: BLE001 - nothing may return to the caller's code
            found = repr(error)
        os.write(write_fd, json.dumps(found).encode())
        os._exit(0)
    os.close(write_fd)
    with os.fdopen(read_fd, "rb") as pipe:
        told = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return json.loads(told) if told else signal.Signals(-status).name


# ------------------------------------------------------------------------------ system calls
# Of x86-64, with arguments that do no harm where the call is allowed.
CALLS: dict[str, tuple[int | bytes, ...]] = {
    "add_key": (248, b"user", b"left", b"x", 1, -3),
    "capset": (126, 0, 0),
    "chroot": (161, b"/"),
    "clone(CLONE_NEWUSER)": (_CLONE, _NEWUSER | signal.SIGCHLD, 0, 0, 0, 0),
    "clone3": (435, 0, 0),  # whose flags no filter can read
    "clock_settime": (227, 0, 0),
    "fanotify_init": (300, 0, 0),
    "fsopen": (430, b"tmpfs", 0),
    "inotify_init": (294, 0),
    "io_setup": (206, 0, 0),
    "io_uring_setup": (425, 0, 0),
    "ioprio_set": (251, 1, 0, 0),
    "kcmp": (312, 0, 0, 0, 0, 0),
    "keyctl": (250, 0, -3, 0),
    "memfd_secret": (447, 0),
    "migrate_pages": (256, 0, 0, 0, 0),
    "modify_ldt": (154, 0, 0, 0),
    "mount": (165, b"none", b"/nothing", b"tmpfs", 0, 0),
    "name_to_handle_at": (303, -100, b"/", 0, 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "open_tree": (428, -100, b"/", 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "personality": (135, 0x0040000),  # ADDR_NO_RANDOMIZE
    "pivot_root": (155, b"/", b"/"),
    "process_madvise": (440, -1, 0, 0, 0, 0),
    "process_vm_readv": (310, 0, 0, 0, 0, 0, 0),
    "process_vm_writev": (311, 0, 0, 0, 0, 0, 0),
    "ptrace": (101, 0, 0, 0, 0),  # PTRACE_TRACEME
    "reboot": (169, 0, 0, 0, 0),
    "request_key": (249, b"user", b"none", 0, -3),
    "setgroups": (116, 0, 0),
    "sethostname": (170, b"x", -1),
    "setns": (308, -1, 0),
    "setpriority": (141, 0, 0, -5),
    "setuid": (105, 0),
    "swapon": (167, 0, 0),
    "umount2": (166, b"/nothing", 0),
    "unshare": (272, _NEWUSER),
    "userfaultfd": (323, 1),  # UFFD_USER_MODE_ONLY
    "vhangup": (153,),
    "vmsplice": (278, -1, 0, 0, 0),
}


def called(name: str) -> str:
    """Make a system call."""
    number, *given = CALLS[name]
    arguments = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in given]
    result = _libc.syscall(number, *arguments)
    if result == 0 and number == _CLONE:
        os._exit(0)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


# getpid() by the number of another architecture's table.
_FOREIGN = {
    "int 0x80": b"\xb8\x14\x00\x00\x00\xcd\x80\xc3",
    "x32": b"\xb8\x27\x00\x00\x40\x0f\x05\xc3",
}


def called_as(architecture: str) -> str:
    """Make a system call of another architecture, which the kernel's filter would not know."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_FOREIGN[architecture])
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return "done" if result > 0 else errno.errorcode[-result]


# ------------------------------------------------------------------------------ sockets
def sockets() -> dict[str, list[str]]:
    """Open a socket of each family and type; return the families by outcome."""
    found: dict[str, set[str]] = {}
    for family in range(1, 46):
        kinds = (1, 2, 3, 5)  # stream, datagram, raw, sequenced packets
        outcome = next((o for k in kinds if (o := _opened(family, k)) == "done"), "")
        found.setdefault(outcome or _opened(family, 1), set()).add(_family(family))
    return {outcome: sorted(families) for outcome, families in found.items()}


def _family(number: int) -> str:
    with suppress(ValueError):
        return socket.AddressFamily(number).name
    return str(number)


def opened(family: str) -> str:
    """Open a socket of this family."""
    return _opened(socket.AddressFamily[family], socket.SOCK_STREAM)


def _opened(family: int, kind: int) -> str:
    try:
        socket.socket(family, kind).close()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def socket_pairs() -> dict[str, list[str]]:
    """Make a pair of sockets of each family; return the families by outcome."""
    found: dict[str, list[str]] = {}
    for family in range(1, 46):
        fds = (ctypes.c_int * 2)()
        is_made = _libc.socketpair(family, 1, 0, fds) == 0
        outcome = "done" if is_made else errno.errorcode[ctypes.get_errno()]
        found.setdefault(outcome, []).append(_family(family))
    return found


def pair_of(family: str) -> str:
    """Make a pair of sockets of this family."""
    socket.socketpair(socket.AddressFamily[family])
    return "done"


def datagram(path: str) -> str:
    """Send to a socket of a service with one end of a pair, for which socket() is not needed."""
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"", path.replace("@", "\0", 1))
    return "done"


def connected(address: str, port: int) -> str:
    """Connect by TCP, and send a request to execute without a token."""
    with socket.create_connection((address, port), timeout=5) as opened:
        head = f"POST /execute HTTP/1.1\r\nHost: {address}:{port}\r\nContent-Length: 0\r\n\r\n"
        opened.sendall(head.encode())
        return opened.recv(12).decode()  # HTTP/1.1 401


# ------------------------------------------------------------------------------ processes
def on_supervisor(how: str) -> Any:
    """Attack the parent of the code: in a run its supervisor, which has the same UID."""
    return _ON_PROCESS[how](PARENT)


def on_child(how: str) -> Any:
    """Do the same to a process of its own."""
    with subprocess.Popen(["/usr/bin/sleep", "1000"], stdout=subprocess.DEVNULL) as child:
        try:
            return _ON_PROCESS[how](child.pid)
        finally:
            child.kill()


def _signal_by_pidfd(pid: int) -> None:
    signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGSTOP)


def _signal_by_pipe(pid: int) -> str:
    """Have the kernel send the signal when a pipe becomes readable; return whether it did."""
    read_fd, write_fd = os.pipe()
    fcntl.fcntl(read_fd, fcntl.F_SETOWN, pid)
    fcntl.fcntl(read_fd, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(read_fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    process_fd = os.pidfd_open(pid)
    os.write(write_fd, b"x")
    ended, _, _ = select.select([process_fd], [], [], 0.2)
    return "done" if ended else "EPERM"  # the kernel refuses it without an error


def _trace(pid: int) -> None:
    if _libc.ptrace(0x4206, pid, 0, 0) != 0:  # PTRACE_SEIZE, which does not stop it
        raise OSError(ctypes.get_errno(), "ptrace")


def _descriptor(pid: int) -> None:
    """Take a descriptor of the process, such as the pipe of its frames."""
    if _libc.syscall(438, os.pidfd_open(pid), 0, 0) < 0:  # pidfd_getfd
        raise OSError(ctypes.get_errno(), "pidfd_getfd")


def _memory(pid: int) -> str:
    first = Path(f"/proc/{pid}/maps").read_text().partition("-")[0]
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        memory.seek(int(first, 16))
        return "done" if memory.read(1) else "EIO"


def _same_processors(pid: int) -> None:
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))


_ON_PROCESS: dict[str, Callable[[int], Any]] = {
    "stop": lambda pid: os.kill(pid, signal.SIGSTOP),
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
    "exists": lambda pid: os.kill(pid, 0),
    "pidfd": _signal_by_pidfd,
    "pipe": _signal_by_pipe,
    "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)),
    "affinity": _same_processors,
    "ptrace": _trace,
    "pidfd_getfd": _descriptor,
    "memory": _memory,
    "environment": lambda pid: bool(Path(f"/proc/{pid}/environ").read_bytes()),
    "descriptors": lambda pid: bool(list(Path(f"/proc/{pid}/fd").iterdir())),
}


def other_processes() -> list[int]:
    """Return the UIDs of processes in /proc but its own."""
    uids = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            uids.add(process.stat().st_uid)
    return sorted(uids - {os.getuid()})


def signalled(pid: int) -> str:
    """Send a process the signal that only tells whether it may be signalled."""
    os.kill(pid, 0)
    return "done"


# ------------------------------------------------------------------------------ files
def writable_folders() -> list[str]:
    """Return the folders in which a file can be made, but those in a writable one."""
    found = []
    for folder, inner, _ in os.walk("/"):
        if folder == "/":
            inner[:] = sorted({*inner} - {"proc", "sys"})
        with suppress(OSError):
            made(f"{folder}/.made")
            Path(folder, ".made").unlink()
            found.append(folder)
            inner.clear()
    return sorted(found)


def paths_with(*halves: str) -> list[str]:
    """Return the files, and files of processes, that contain this text. Its code does not."""
    text = "".join(halves).encode()
    paths = [
        str(path)
        for name in ("cmdline", "environ")
        for path in Path("/proc").glob(f"[0-9]*/{name}")
    ]
    for folder, inner, names in os.walk("/"):
        if folder == "/":  # what /usr has is public, and /proc and /sys have numbers of the kernel
            inner[:] = sorted({*inner} - {"usr", "proc", "sys"})
        paths += [f"{folder.rstrip('/')}/{name}" for name in names]
    return sorted(path for path in paths if _has(path, text))


def _has(path: str, text: bytes) -> bool:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            return stat.S_ISREG(os.fstat(fd).st_mode) and text in os.read(fd, _MAX_BYTES)
        finally:
            os.close(fd)
    return False


def opened_to_write(path: str) -> str:
    """Open an existing file for writing; nothing is written."""
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    return "done"


def made(path: str) -> str:
    """Make a file."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
    return "done"


def listed(folder: str) -> str:
    """List a folder."""
    list(Path(folder).iterdir())
    return "done"


def groups() -> list[str]:
    """Return the control groups that it sees below its own or another one."""
    found = [path for path, _, names in os.walk("/sys/fs/cgroup") if "cgroup.procs" in names]
    return sorted(path.removeprefix("/sys/fs/cgroup") for path in found)


def sees_group(unit: str) -> bool:
    """Return whether it sees the control group of a unit."""
    return any(group.endswith(f"/{unit}") for group in groups())


def device() -> str:
    """Make the device of the machine's memory."""
    os.mknod("/tmp/mem", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    Path("/tmp/mem").unlink()
    return "done"


def setuid_file() -> str:
    """Make a program that runs as the account of the run."""
    path = Path("/tmp/setuid")
    try:
        path.touch()
        path.chmod(0o4755)
        return "done" if path.stat().st_mode & stat.S_ISUID else "EPERM"
    finally:
        path.unlink(missing_ok=True)


def uid_of(program: str) -> int:
    """Return the UID that a program prints, which root has made setuid."""
    done = subprocess.run([program, "-u"], capture_output=True, text=True, check=True)
    return int(done.stdout) - os.getuid()


def descriptors() -> list[int]:
    """Return the descriptors that were open when the code began."""
    return _OPEN


def status(field: str) -> str:
    """Return a field of its /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


def limit_of(name: str) -> list[int]:
    """Return a resource limit."""
    return list(resource.getrlimit(getattr(resource, name)))

"""Seccomp filter of a session's process of the gate: an allowlist, to read, judge and write.

The monitor makes it, and the child enters it (`as_gate/session/admit.py`) after all its threads
have started and before it reads a line. The proposal reader (`as_nobody`) enters one too, and one
that may open files is for the processes that keep pins (`as_gate/pins/keeper.py`).

libseccomp is present wherever systemd is, and knows the numbers of every architecture.
Source: seccomp(2), seccomp_rule_add(3), linux/seccomp.h.
"""

import ctypes
import errno
import mmap
import os
from collections.abc import Iterable

_FAIL, _ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000  # SCMP_ACT_ERRNO(EPERM), SCMP_ACT_ALLOW
_ALL_THREADS = 4  # SCMP_FLTATR_CTL_TSYNC
_EQUAL, _MASKED_EQUAL = 4, 7  # SCMP_CMP_EQ, SCMP_CMP_MASKED_EQ
# Calls on descriptors that are open already; none opens, connects, forks, signals or executes.
_ALLOWED = (
    *("read", "readv", "pread64", "write", "writev", "close", "poll", "ppoll"),
    *("epoll_wait", "epoll_pwait"),  # for descriptors registered before: epoll_ctl is refused
    *("recvfrom", "recvmsg"),  # not sendmsg: it could pass descriptors on
    # Calls that the C library and Python need to run at all.
    *("brk", "munmap", "mremap", "madvise", "futex", "sched_yield", "getrandom"),
    *("getpid", "gettid", "clock_gettime", "clock_nanosleep", "gettimeofday"),
    *("exit", "exit_group"),
    *("rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall"),
)

FILE_CALLS = (
    *("openat", "fstat", "newfstatat", "statx", "lseek", "getdents64", "fsync", "fdatasync"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat"),
)


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp: argument number, operator, operand; a mask precedes the operand."""

    _fields_ = (  # type: ignore[mutable-override] # a list by its stub alone
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


_NOT_EXECUTABLE = _Comparison(2, _MASKED_EQUAL, mmap.PROT_EXEC, 0)
_NO_ADDRESS = _Comparison(4, _EQUAL, 0, 0)  # only to the connected peer
_NO_FILE = _Comparison(3, _MASKED_EQUAL, mmap.MAP_ANONYMOUS, mmap.MAP_ANONYMOUS)


class Filter:
    """Seccomp filter, made once, and entered by each process that is forked afterwards."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """Make the filter; `more` are calls that it allows too.

        Raises:
            OSError: libseccomp is missing, or does not know this machine's architecture.
        """
        self._library = library = ctypes.CDLL("libseccomp.so.2")
        library.seccomp_init.restype = ctypes.c_void_p
        library.seccomp_init.argtypes = [ctypes.c_uint32]
        self._context = ctypes.c_void_p(library.seccomp_init(_FAIL))
        if self._context.value is None:
            raise OSError(errno.ENOSYS, "libseccomp cannot make a filter of system calls")
        for name in (*_ALLOWED, *more):
            self._allow(name)
        # Memory, but not executable and without a file.
        self._allow("mmap", _NOT_EXECUTABLE, _NO_FILE)
        self._allow("mprotect", _NOT_EXECUTABLE)
        self._allow("sendto", _NO_ADDRESS)
        _check(library.seccomp_attr_set(self._context, _ALL_THREADS, 1))

    def enter(self) -> None:
        """Refuse all other calls from now on, with EPERM, to all threads of this process.

        Raises:
            OSError: the kernel refused.
        """
        _check(self._library.seccomp_load(self._context))

    def _allow(self, name: str, *comparisons: _Comparison) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        array = (_Comparison * len(comparisons))(*comparisons)
        _check(
            self._library.seccomp_rule_add_array(
                self._context, ctypes.c_uint32(_ALLOW), number, len(comparisons), array
            )
        )


def _check(result: int) -> None:
    if result < 0:
        raise OSError(-result, os.strerror(-result))

"""Attempts of the code of a run to leave its run slot. Its text is the code of a run.

The same attempts are made outside, by an account that nothing confines: there they succeed.
"""

import ctypes
import errno
import fcntl
import inspect
import json
import mmap
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
FAMILIES = range(1, 46)  # AF_UNIX to the last one of Linux 6.18
_NOT_SEARCHED = ("/proc", "/sys", "/usr")
_MOST_BYTES = 1 << 20  # of a file that is searched
_CLONE_NEWUSER, _CLONE_PARENT = 0x10000000, 0x8000
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_WALL = 0x40000000
# System calls of x86-64, by name: number and arguments that do no harm.
CALLS = {
    "acct": (163, 0),
    "add_key": (248, b"user", b"left", b"x", 1, -3),
    "bpf": (321, 0, 0, 0),
    "capset": (126, 0, 0),
    "chroot": (161, b"/tmp"),
    "clock_settime": (227, 0, 0),
    "fanotify_init": (300, 0, 0),
    "finit_module": (313, -1, 0, 0),
    "fsopen": (430, b"tmpfs", 0),
    "get_mempolicy": (239, 0, 0, 0, 0, 0),
    "init_module": (175, 0, 0, 0),
    "io_setup": (206, 0, 0),
    "io_uring_setup": (425, 0, 0),
    "ioperm": (173, 0, 1, 1),
    "iopl": (172, 3),
    "ioprio_set": (251, 1, 0, 0),
    "kcmp": (312, 0, 0, 0, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "keyctl": (250, 0, -3, 0),
    "lookup_dcookie": (212, 0, 0, 0),
    "mbind": (237, 0, 0, 0, 0, 0, 0),
    "memfd_secret": (447, 0),
    "migrate_pages": (256, 0, 0, 0, 0),
    "modify_ldt": (154, 0, 0, 0),
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "mount_setattr": (442, -1, b"", 0, 0, 0),
    "move_mount": (429, -1, b"", -1, b"", 0),
    "name_to_handle_at": (303, -100, b"/", 0, 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "open_tree": (428, -100, b"/", 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "personality": (135, 0x0040000),
    "pivot_root": (155, b"/tmp", b"/tmp"),
    "process_madvise": (440, -1, 0, 0, 0, 0),
    "process_vm_readv": (310, 0, 0, 0, 0, 0, 0),
    "process_vm_writev": (311, 0, 0, 0, 0, 0, 0),
    "ptrace": (101, 0, 0, 0, 0),
    "quotactl": (179, 0, 0, 0, 0),
    "reboot": (169, 0, 0, 0, 0),
    "request_key": (249, b"user", b"none", 0, -3),
    "sched_setscheduler": (144, 0, 1, b"\1\0\0\0"),
    "set_mempolicy": (238, 0, 0, 0),
    "setdomainname": (171, b"x", 1),
    "setgroups": (116, 0, 0),
    "sethostname": (170, b"x", 1),
    "setns": (308, -1, 0),
    "setpriority": (141, 0, 0, -5),
    "setresuid": (117, 0, 0, 0),
    "settimeofday": (164, 0, 0),
    "setuid": (105, 0),
    "swapon": (167, 0, 0),
    "syslog": (103, 10, 0, 0),
    "umount2": (166, b"/tmp", 2),
    "unshare": (272, _CLONE_NEWUSER),
    "userfaultfd": (323, 1),
    "vhangup": (153,),
    "vmsplice": (278, -1, 0, 0, 0),
    "clone newuser": (56, _CLONE_NEWUSER | 17, 0, 0, 0, 0),
    "clone3": (435, 0, 0),
    "inotify": (294, 0),
    "process_mrelease": (448, -1, 0),
    "landlock": (444, 0, 0, 1),
    "pidfd_open1": (434, 1, 0),
    "mq_open": (240, b"left", 0o102, 0o600, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "memfd_huge": (319, b"x", 4),
    "cachestat": (451, 0, 0, 0, 0),
    "futex_waitv": (449, 0, 0, 0, 0),
    "statmount": (457, 0, 0, 0, 0),
    "listmount": (458, 0, 0, 0, 0),
    "lsm_get_self_attr": (459, 0, 0, 0, 0),
    "remap_file_pages": (216, 0, 0, 0, 0, 0),
    "sysfs": (139, 3),
    "ustat": (136, 0, 0),
    "uselib": (134, 0),
    "mlockall": (151, 1),
    "rseq": (334, 0, 0, 0, 0),
}


def call(name):
    number, *arguments = CALLS[name]
    ctypes.set_errno(0)
    r = _libc.syscall(
        number,
        *(ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments),
    )
    if r == 0 and name.startswith("clone "):
        os._exit(0)
    if r < 0:
        return errno.errorcode[ctypes.get_errno()]
    return "done"


if __name__ == "__main__":
    for n in CALLS:
        pid = 0
        r, w = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                os.write(w, call(n).encode())
            except BaseException as e:
                os.write(w, repr(e).encode())
            os._exit(0)
        os.close(w)
        out = os.read(r, 1000).decode()
        os.close(r)
        st = os.waitpid(pid, 0)[1]
        print(n, out, st or "")

"""Seccomp filter of a server of `mcpwrap run`: it refuses the calls that `mcpwrap@` refuses.

That server is not started by a unit. Its process enters the filter before execve(2), the first of
three (as_agent/run/sandbox/layers.py).

It is a denylist, not an allowlist: a server can be any program. Source: syscalls(2),
systemd.exec(5) on its groups of calls, and the `SystemCallFilter=` of units/mcpwrap@.service.
"""

import errno
import os
import socket

from mcpwrap.linux.seccomp import bpf
from mcpwrap.linux.seccomp.bpf import AND, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, LOAD, Line

MACHINES = ("x86_64", "aarch64")
_ARCHITECTURES = (0xC000003E, 0xC00000B7)  # linux/audit.h
_X32 = 0x40000000  # x86-64 has a second set of numbers from here on
# By name: the number on each machine; None where it has no such call.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # Other processes' memory and descriptors.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    # Its view of files and of other resources.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Keys belong to the user, not to a process.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Interfaces of the kernel that few programs need and many attacks used.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "memfd_secret": (447, 447), "fanotify_init": (300, 262), "personality": (135, 92),
    "modify_ldt": (154, None), "lookup_dcookie": (212, 18), "uselib": (134, None),
    # Scheduling and memory policy of its account's processes. sched_setaffinity(2): see
    # wrapped_server.py.
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "mbind": (237, 235),
    "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Calls of an administrator, in case root types the command.
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "iopl": (172, None), "ioperm": (173, None), "syslog": (103, 116),
    "vhangup": (153, 58), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266),
}  # fmt: skip
# If these calls do not exist, programs fall back to others, which are filtered.
ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}  # fmt: skip
JUDGED = {
    "clone": (56, 220), "ioctl": (16, 29), "socket": (41, 198), "truncate": (76, 45),
    "open": (2, None), "openat": (257, 56),
}  # fmt: skip
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*, sched.h
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: they type into a terminal (ioctl_tty(2))
_INTERNET = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)  # getaddrinfo(3) needs the last


def with_network() -> list[Line]:
    """Return the instructions that allow only internet sockets."""
    lines: list[Line] = [(LOAD, 0, 0, bpf.ARGUMENT_0)]
    lines += [(JUMP_IF_EQUAL, len(_INTERNET) - i, 0, f) for i, f in enumerate(_INTERNET)]
    return [*lines, bpf.refused(errno.EAFNOSUPPORT), bpf.ALLOWED]


def without_network() -> list[Line]:
    """Return the instructions that refuse every socket. socketpair(2) is another call."""
    return [bpf.refused(errno.EAFNOSUPPORT)]


def without_truncation() -> list[Line]:
    """Return blocks against truncation of read-only files, for Landlock before version 3.

    openat2(2) is refused by another filter (no_setuid.py).
    """
    machine = MACHINES.index(bpf.this_machine(MACHINES))
    found: list[Line] = []
    for name, flags in (("open", bpf.ARGUMENT_1), ("openat", bpf.ARGUMENT_2)):
        if (number := JUDGED[name][machine]) is not None:
            found += bpf.block(number, _opened_to_be_emptied(flags))
    return found + _each(("truncate", JUDGED["truncate"]), bpf.refused(errno.EACCES), machine)


def enter(sockets: list[Line], more: list[Line]) -> None:
    """Install the filter for this process and its children. `more` are further blocks.

    Raises:
        OSError: the kernel refused, or this machine's numbers are not known.
    """
    machine = MACHINES.index(bpf.this_machine(MACHINES))
    lines: list[Line] = [
        (LOAD, 0, 0, bpf.ARCHITECTURE),
        (JUMP_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        bpf.refused(errno.EPERM),  # other architectures have other numbers
        (LOAD, 0, 0, bpf.NUMBER),
        (JUMP_IF_AT_LEAST, 0, 1, _X32),
        bpf.refused(errno.EPERM),
    ]
    for refused in REFUSED.items():
        lines += _each(refused, bpf.refused(errno.EPERM), machine)
    for absent in ABSENT.items():
        lines += _each(absent, bpf.refused(errno.ENOSYS), machine)
    for name, block in (("clone", _cloned()), ("ioctl", _controlled()), ("socket", sockets)):
        number = JUDGED[name][machine]
        lines += [] if number is None else bpf.block(number, block)
    bpf.enter([*lines, *more, bpf.ALLOWED])


def _each(call: tuple[str, tuple[int | None, ...]], answer: Line, machine: int) -> list[Line]:
    number = call[1][machine]
    return [] if number is None else bpf.block(number, [answer])


def _cloned() -> list[Line]:
    """Allow a child process, but not in a new namespace."""
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_0),
        (AND, 0, 0, _NEW_NAMESPACES),
        (JUMP_IF_EQUAL, 1, 0, 0),
        bpf.refused(errno.EPERM),
        bpf.ALLOWED,
    ]


def _controlled() -> list[Line]:
    """Refuse to type into the agent's terminal."""
    lines: list[Line] = [(LOAD, 0, 0, bpf.ARGUMENT_1)]
    lines += [(JUMP_IF_EQUAL, len(_TYPING) - i, 0, what) for i, what in enumerate(_TYPING)]
    return [*lines, bpf.ALLOWED, bpf.refused(errno.EPERM)]


def _opened_to_be_emptied(flags: int) -> list[Line]:
    return [
        (LOAD, 0, 0, flags),
        (AND, 0, 0, os.O_ACCMODE | os.O_TRUNC),
        (JUMP_IF_EQUAL, 1, 0, os.O_TRUNC),
        bpf.ALLOWED,
        bpf.refused(errno.EACCES),
    ]

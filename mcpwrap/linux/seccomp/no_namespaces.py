"""Seccomp filter of a server whose process has made namespaces: the server can make none itself.

The unit's own filter allows these calls where a session sees a project (RestrictNamespaces=), and
in a user namespace a process would have all capabilities. Source: namespaces(7), clone(2).
"""

import errno

from mcpwrap.linux.seccomp import bpf
from mcpwrap.linux.seccomp.bpf import AND, JUMP_IF_EQUAL, LOAD, Line

MACHINES = ("x86_64", "aarch64")
# By name: the number on each machine.
REFUSED = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "open_tree": (428, 428), "move_mount": (429, 429),
    "mount_setattr": (442, 442), "fsopen": (430, 430), "fsmount": (432, 432),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
# CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
# CLONE_NEWNET: linux/sched.h. Only unshare(2) and clone3(2) know CLONE_NEWTIME.
_NEW_NAMESPACES = 0x7E020000


def refuse_namespaces() -> None:
    """Make the calls that create or change namespaces and mounts fail with EPERM, for good.

    clone3(2) fails with ENOSYS, since a filter cannot read its flags: programs then use clone(2).

    Raises:
        OSError: the kernel refused, or this machine's system call numbers are not known.
    """
    machine = MACHINES.index(bpf.this_machine(MACHINES))
    lines: list[Line] = [(LOAD, 0, 0, bpf.NUMBER)]
    for numbers in REFUSED.values():
        lines += bpf.block(numbers[machine], [bpf.refused(errno.EPERM)])
    lines += bpf.block(_CLONE3[machine], [bpf.refused(errno.ENOSYS)])
    lines += bpf.block(_CLONE[machine], _without_namespaces())
    bpf.enter([*lines, bpf.ALLOWED])


def _without_namespaces() -> list[Line]:
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_0),
        (AND, 0, 0, _NEW_NAMESPACES),
        (JUMP_IF_EQUAL, 0, 1, 0),
        bpf.ALLOWED,
        bpf.refused(errno.EPERM),
    ]

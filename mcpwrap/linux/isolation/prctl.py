"""Process attributes (prctl(2)), set by python-prctl, and by ctypes where that cannot.

python-prctl is a package of the distribution; a plain `pip install .` does without it. It
refuses values that are not in the headers it was built with, such as a newer kernel's capability.
"""

import ctypes
import os
from contextlib import suppress

try:
    import prctl as _prctl
except ImportError:
    _prctl = None

# Source: prctl(2), linux/prctl.h
_NUMBERS = {
    "set_pdeathsig": 1,
    "set_dumpable": 4,
    "capbset_drop": 24,
    "set_child_subreaper": 36,
    "set_no_new_privs": 38,
}
_CAPABILITIES = 64  # more than there are: the kernel holds them in 64 bits


def forbid_dumps() -> None:
    """Forbid other processes of the account to read or trace this one, until it calls execve(2)."""
    _call("set_dumpable", 0)


def allow_dumps() -> None:
    """Allow it again: the kernel takes maps of ids only from a process that can be dumped."""
    _call("set_dumpable", 1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, to reap them."""
    _call("set_child_subreaper", 1)


def gain_nothing() -> None:
    """Forbid gains of privileges by setuid and file capabilities; seccomp(2) needs this."""
    _call("set_no_new_privs", 1)


def end_with_parent(number: int) -> None:
    """Request this signal for the parent's end; it is not sent if the parent has ended already."""
    _call("set_pdeathsig", number)


def drop_capabilities() -> None:
    """Drop all capabilities from the bounding set: no program started later has any.

    This matters in a user namespace; elsewhere an ordinary user has none to drop.
    """
    known = _prctl.ALL_CAPS if _prctl else ()
    for capability in range(_CAPABILITIES):
        drop = _call if capability in known else _call_by_ctypes
        with suppress(OSError):  # the kernel does not know it, or this process has none to drop
            drop("capbset_drop", capability)


def _call(name: str, value: int) -> None:
    if by_module := getattr(_prctl, name, None):
        by_module(value)
    else:
        _call_by_ctypes(name, value)


def _call_by_ctypes(name: str, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NUMBERS[name], ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

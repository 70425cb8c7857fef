"""The process attributes that mcpwrap sets, by python-prctl or, where it is absent, by ctypes.

python-prctl is the distribution's; a plain `pip install mcpwrap` does without it.
"""

import ctypes
import os
from contextlib import suppress

try:
    import prctl as _prctl
except ImportError:
    _prctl = None

# Source: prctl(2), linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES = 64  # more than there are


def forbid_dumps() -> None:
    """Let no process of the same account read this one's memory or trace it, until it execs."""
    if _prctl:
        _prctl.set_dumpable(0)
    else:
        _call(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they can be reaped."""
    if _prctl:
        _prctl.set_child_subreaper(1)
    else:
        _call(_PR_SET_CHILD_SUBREAPER, 1)


def gain_nothing() -> None:
    """Let no program gain anything by setuid or file capabilities; needed for seccomp(2)."""
    _call(_PR_SET_NO_NEW_PRIVS, 1)


def end_with_parent(number: int) -> None:
    """Get this signal when the parent ends; not when it has ended already."""
    _call(_PR_SET_PDEATHSIG, number)


def drop_capabilities() -> None:
    """Let no program that is started have any, in any namespace; to nobody else it matters."""
    for capability in range(_CAPABILITIES):
        with suppress(OSError):  # one that this kernel has not, or we have none to drop
            _call(_PR_CAPBSET_DROP, capability)


def _call(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

"""The process attributes that mcpwrap sets, by python-prctl or, where it is absent, by ctypes.

python-prctl is the distribution's; a plain `pip install mcpwrap` does without it.
"""

import ctypes
import os

try:
    import prctl as _prctl
except ImportError:
    _prctl = None

# Source: prctl(2), linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


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


def _call(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

"""Code run as an account without privileges, for checks that root would pass."""

import ctypes
import os
import traceback
from collections.abc import Callable

NOBODY = 65534
PR_SET_DUMPABLE = 4


def without_root(what: Callable[[], None]) -> None:
    """Do it in a process that no mode lets through because it is root's."""
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # or /proc is root's
            what()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - pytest must not go on in here
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

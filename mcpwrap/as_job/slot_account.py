"""Account of a run slot, and the end of all its processes.

A run may start processes that leave its session, lose their parent, or hide in /proc (prctl(2),
PR_SET_DUMPABLE). All of them have the slot's UID, and no other process has: kill(2) with -1 ends
them at once, and the kernel lets none of them fork meanwhile.
"""

import os
import pwd
import signal
from contextlib import suppress

# As in `core/names.py`, whose import takes longer than all others here together.
FIRST_UID, LAST_UID = 20_000, 39_999
PREFIX = "mcpj-"


class NotASlotError(Exception):
    """This process runs under an account that is not a run slot's."""


class SlotAccount:
    """Account of a run slot: the only one whose processes may be ended all at once."""

    def __init__(self, uid: int, name: str) -> None:
        """Take an account by its UID and name.

        Raises:
            NotASlotError: it is another kind of account, whose processes are not ended.
        """
        if not (FIRST_UID <= uid <= LAST_UID and name.startswith(PREFIX)):
            raise NotASlotError(
                f"the account {name!r} with UID {uid} is not a run slot: nothing was executed; "
                "a run is started by its socket unit [E-SLOT-ACCOUNT]"
            )
        self.name = name
        self._uid = uid

    @classmethod
    def of_this_process(cls) -> "SlotAccount":
        """Return the account of this process.

        Raises:
            NotASlotError: it is another kind of account, or this process can change to another.
        """
        uid = os.getuid()
        name = pwd.getpwuid(uid).pw_name if os.getresuid() == (uid, uid, uid) else ""
        return cls(uid, name)

    def end_other_processes(self) -> None:
        """Kill all processes of this account but this one; return when the last one has ended.

        The caller adopts orphans (PR_SET_CHILD_SUBREAPER), so each of them becomes its child.
        """
        if os.getresuid() != (self._uid, self._uid, self._uid):
            raise NotASlotError("the account of this process has changed [E-SLOT-ACCOUNT]")
        while True:
            with suppress(ProcessLookupError):  # there is none
                os.kill(-1, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

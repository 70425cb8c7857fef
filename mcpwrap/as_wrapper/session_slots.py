"""Session slots of a wrapper, and one pre-forked process for the next session."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_wrapper.session import SessionSlot, WrapperContext, prepare_slot
from mcpwrap.as_wrapper.session_cleanup import SessionCleanup


class SessionSlots:
    """Session slots. `in_use` are the folders of the slots of all open sessions."""

    def __init__(self, context: WrapperContext, cleanup: SessionCleanup) -> None:
        self._context = context
        self._cleanup = cleanup
        self._slot_dirs = sorted(context.runtime.iterdir())  # the drop-in mounts them
        self._spare: SessionSlot | None = None

    def take(self, in_use: Collection[Path]) -> SessionSlot | None:
        """Return a slot for a session, the prepared one if there is one; None if all are in use.

        Raises:
            OSError: a resource that a session needs is used up.
        """
        spare, self._spare = self._spare, None
        if spare:
            return spare
        slot_dir = self._free_slot_dir(in_use)
        return prepare_slot(self._context, slot_dir) if slot_dir else None

    def prepare(self, in_use: Collection[Path]) -> None:
        """Prepare the slot of the next session, if another is allowed."""
        if self._spare is None and (slot_dir := self._free_slot_dir(in_use)):
            with suppress(OSError):  # the next session tries again, and reports the error
                self._spare = prepare_slot(self._context, slot_dir)

    def give_up(self, ready: SessionSlot) -> None:
        """End a slot that no session has taken."""
        ready.give_up()
        self._cleanup.remove(ready.folder)

    def give_up_spare(self) -> None:
        """End the spare slot."""
        spare, self._spare = self._spare, None
        if spare:
            self.give_up(spare)

    def has_ended(self, pid: int) -> None:
        """Note that a process has ended, which may be that of the spare slot."""
        if self._spare and pid == self._spare.process.pid:
            self.give_up_spare()

    def _free_slot_dir(self, in_use: Collection[Path]) -> Path | None:
        """Return a free folder, an empty one if possible."""
        if len(in_use) + bool(self._spare) >= self._context.spec.sessions:
            return None
        used = {*in_use, *([self._spare.slot_dir] if self._spare else [])}
        not_empty = self._cleanup.places()
        free = [slot_dir for slot_dir in self._slot_dirs if slot_dir not in used]
        return min(free, key=lambda slot_dir: slot_dir in not_empty, default=None)

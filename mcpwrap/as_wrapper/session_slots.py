"""Session slots of a wrapper, and one pre-forked process for the next session."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_wrapper.session import SessionSlot, WrapperContext, prepare_slot
from mcpwrap.as_wrapper.session_cleanup import SessionCleanup


class SessionSlots:
    """Session slots. `in_use` are the places of all sessions that are open."""

    def __init__(self, context: WrapperContext, leftovers: SessionCleanup) -> None:
        self._context = context
        self._leftovers = leftovers
        self._places = sorted(context.runtime.iterdir())  # the drop-in mounts them
        self._spare: SessionSlot | None = None

    def take(self, in_use: Collection[Path]) -> SessionSlot | None:
        """Return a slot for a session, the prepared one if there is; None: all are in use.

        Raises:
            OSError: what a session needs is used up.
        """
        spare, self._spare = self._spare, None
        if spare:
            return spare
        place = self._free_place(in_use)
        return prepare_slot(self._context, place) if place else None

    def prepare(self, in_use: Collection[Path]) -> None:
        """Prepare the slot of the next session, if there may be another."""
        if self._spare is None and (place := self._free_place(in_use)):
            with suppress(OSError):  # the next session tries itself, and tells what is wrong
                self._spare = prepare_slot(self._context, place)

    def give_up(self, ready: SessionSlot) -> None:
        """End one that no session has."""
        ready.give_up()
        self._leftovers.remove(ready.folder)

    def give_up_spare(self) -> None:
        """End the one that waits."""
        spare, self._spare = self._spare, None
        if spare:
            self.give_up(spare)

    def has_ended(self, pid: int) -> None:
        """Take note of a process that has ended, in case it is the one that waits."""
        if self._spare and pid == self._spare.process.pid:
            self.give_up_spare()

    def _free_place(self, in_use: Collection[Path]) -> Path | None:
        """Return a place that is free, an empty one if there is."""
        if len(in_use) + bool(self._spare) >= self._context.spec.sessions:
            return None
        used = {*in_use, *([self._spare.slot_dir] if self._spare else [])}
        not_empty = self._leftovers.places()
        free = [place for place in self._places if place not in used]
        return min(free, key=lambda place: place in not_empty, default=None)

"""Word from one process to another that there is something to receive, heard without a call.

A byte of memory that both share after a fork. Whoever rings has sent first; whoever hears clears it
first and receives then, so that nothing is missed, and at worst nothing is there.
"""

import mmap


class Bell:
    """Made before the fork. What it says is only a hint: whoever has it may set or clear it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)  # shared and anonymous: mmap(2)

    def ring(self) -> None:
        """Tell that something was sent."""
        self._page[0] = 1

    def heard(self) -> bool:
        """Say whether it rang since this was last asked."""
        if not self._page[0]:
            return False
        self._page[0] = 0
        return True

    def close(self) -> None:
        """Let go of the memory in this process; it may be closed already."""
        self._page.close()

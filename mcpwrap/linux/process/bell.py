"""Flag in shared memory that tells the peer a message is queued, without a system call.

It is one byte that both processes share after a fork. The sender sends first and then sets the
flag; the receiver clears the flag first and then receives. So no message is missed, and at worst
the flag is set without one.
"""

import mmap


class DoorbellFlag:
    """Shared flag, made before the fork. It is only a hint: either process may set or clear it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)  # shared and anonymous: mmap(2)

    def raise_flag(self) -> None:
        """Tell that something was sent."""
        self._page[0] = 1

    def test_and_clear(self) -> bool:
        """Say whether it rang since this was last asked."""
        if not self._page[0]:
            return False
        self._page[0] = 0
        return True

    def close(self) -> None:
        """Let go of the memory in this process; it may be closed already."""
        self._page.close()

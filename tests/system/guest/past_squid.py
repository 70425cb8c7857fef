"""Attempts to connect to addresses past Squid. Runs in the sandbox of a server, in the probe."""

import threading
from typing import Any

from tests.system.guest.outgoing import reached


class Attempts:
    """Attempts on all targets at once, one round after the other until `finish`."""

    def __init__(self, targets: list[list[Any]], round_s: float) -> None:
        self._targets, self._round_s = targets, round_s
        self._rounds, self._is_over = 0, False
        self._answered: list[list[Any]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            self._answered += reached(self._targets, self._round_s)
            self._rounds += 1

    def finish(self) -> tuple[int, list[list[Any]]]:
        """End with this round; return how many there were, and the targets that answered."""
        self._is_over = True
        self._thread.join()
        return self._rounds, self._answered


going_on: list[Attempts] = []

"""Exit reason of a server, for the thread that answers its unanswered requests."""

import signal
import threading
from contextlib import suppress

# From the end of its output to the report of its exit; its parent takes milliseconds.
_KNOWN_WITHIN_S = 10.0
_CLOSED = "it closed its output"


class ServerExit:
    """Exit reason that one thread sets and another waits for."""

    def __init__(self) -> None:
        self._is_known = threading.Event()
        self._why = _CLOSED  # a server that closes its output may run on for ever

    def tell(self, why: str) -> None:
        """Set the exit reason."""
        self._why = why
        self._is_known.set()

    def wait(self) -> str:
        """Return the exit reason; called after the end of the output."""
        self._is_known.wait(_KNOWN_WITHIN_S)
        return self._why


def exited(status: int) -> str:
    """Return the exit reason of a process that exited by itself."""
    return f"exited with status {status}"


def killed_by(number: int) -> str:
    """Return the exit reason of a process that a signal killed."""
    name = ""
    with suppress(ValueError):  # a real-time signal has no name
        name = f" ({signal.Signals(number).name})"
    return f"killed by signal {number}{name}"

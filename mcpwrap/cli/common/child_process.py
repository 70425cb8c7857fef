"""Child process that asks at the terminal of this one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_left_to_child() -> Iterator[None]:
    """Leave SIGINT to the program that asks on the same terminal.

    A handler and not SIG_IGN, which that program would inherit. Source: system(3), execve(2).
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""Watcher for changes of the packet rules by any process. Source: nft(8), MONITOR."""

import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, cast

from mcpwrap.machine.nft_table import NFT

_BURST_S = 0.02  # one change is many lines in quick succession
_MAX_BURST_S = 0.5  # beyond `every_s`: then a burst that goes on is reported
_END = ""


def changes(every_s: float) -> Iterator[bool]:
    """Yield true at once and after each burst of changes; false after `every_s` seconds without.

    Raises:
        RuntimeError: nft has ended.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    argv = [NFT, "-n", "monitor"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as monitor:
        pipe = cast(IO[str], monitor.stdout)
        threading.Thread(target=_read, args=(pipe, lines), daemon=True).start()
        try:
            yield True
            while True:
                yield _await_burst(lines, every_s)
        finally:  # nft ends before this process: systemd waits for all processes of a unit
            monitor.terminate()


def _await_burst(lines: "queue.SimpleQueue[str]", every_s: float) -> bool:
    has_changed, wait_s = False, every_s
    look_at_s = time.monotonic() + every_s + _MAX_BURST_S
    with suppress(queue.Empty):
        while time.monotonic() < look_at_s:
            if lines.get(timeout=wait_s) == _END:
                raise RuntimeError("`nft monitor` has ended")
            has_changed, wait_s = True, _BURST_S
    return has_changed


def _read(pipe: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    for line in pipe:
        lines.put(line)
    lines.put(_END)

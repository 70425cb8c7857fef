"""Monitor of changes to the packet rules by any process. Source: nft(8), MONITOR."""

import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, cast

from mcpwrap.machine.nft_table import NFT

_BURST_S = 0.02  # one change is many lines, and they come together
_MAX_BURST_S = 0.5  # of many changes the first are looked at meanwhile
_END = ""


def changes(every_s: float) -> Iterator[bool]:
    """Yield true at once and after each burst of changes; false where `every_s` seconds had none.

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
        finally:  # before us: systemd waits for what we leave behind
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

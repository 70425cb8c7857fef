"""Being told when anybody changes packet rules. Source: nft(8), MONITOR."""

import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, cast

from mcpwrap.linux.packet_rules import NFT

_BURST_S = 0.02  # one change is many lines, and they come together
_END = ""


def changes(every_s: float) -> Iterator[None]:
    """Yield at once, after each burst of changes, and at least once in `every_s` seconds.

    Raises:
        RuntimeError: nft has ended.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    argv = [NFT, "-n", "monitor"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as monitor:
        pipe = cast(IO[str], monitor.stdout)
        threading.Thread(target=_read, args=(pipe, lines), daemon=True).start()
        try:
            yield
            while True:
                _await_burst(lines, every_s)
                yield
        finally:  # before us: systemd waits for what we leave behind
            monitor.terminate()


def _await_burst(lines: "queue.SimpleQueue[str]", every_s: float) -> None:
    wait_s = every_s
    with suppress(queue.Empty):
        while True:
            if lines.get(timeout=wait_s) == _END:
                raise RuntimeError("`nft monitor` has ended")
            wait_s = _BURST_S


def _read(pipe: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    for line in pipe:
        lines.put(line)
    lines.put(_END)

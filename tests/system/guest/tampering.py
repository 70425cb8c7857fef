"""Change of the packet rules, and the wait for their return. Runs inside the machine, as root."""

import queue
import subprocess
import threading
import time
from typing import IO


def time_until_back(command: str, list_rules: str, before: str, within_s: float) -> float | None:
    """Run `command`, which changes the rules; return the seconds until they are as `before`.

    By the time of the last change that was seen, and not by the look, which takes its time. None
    means that they are not back, and that nothing has changed for `within_s`.
    """
    changed_at: queue.SimpleQueue[float] = queue.SimpleQueue()

    def read(pipe: IO[bytes]) -> None:
        for _ in pipe:
            changed_at.put(time.monotonic())

    with subprocess.Popen(["nft", "monitor"], stdout=subprocess.PIPE) as monitor:
        assert monitor.stdout
        threading.Thread(target=read, args=(monitor.stdout,), daemon=True).start()
        try:
            subprocess.run(["sh", "-c", command], check=True, timeout=within_s)
            began_s = last_s = time.monotonic()
            while _look(list_rules) != before:
                last_s = changed_at.get(timeout=within_s)
                while not changed_at.empty():
                    last_s = changed_at.get()
            return max(0.0, last_s - began_s)
        except queue.Empty:
            return None
        finally:
            monitor.kill()


def _look(list_rules: str) -> str:
    return subprocess.run(["sh", "-c", list_rules], capture_output=True, text=True).stdout

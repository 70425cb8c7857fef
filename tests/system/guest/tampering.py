"""Change of the packet rules, and the wait for their return. Runs inside the machine, as root."""

import errno
import queue
import socket
import subprocess
import sys
import threading
import time

NETLINK_NETFILTER = 12
RULES_GROUP = 1 << 6


def time_until_back(command: str, list_rules: str, before: str, within_s: float) -> float | None:
    """Run `command`, which changes the rules; return the seconds until they are as `before`.

    By the time of the last change, and not of the check, which takes its time. None means that they
    are not back, and that nothing has changed for `within_s`.
    """
    changed_at: queue.SimpleQueue[float] = queue.SimpleQueue()
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    kernel.bind((0, RULES_GROUP))  # it listens from here on; nft monitor would after some seconds

    def read() -> None:
        while True:
            try:
                kernel.recv(65536)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # there were more than it buffers
                    raise
            changed_at.put(time.monotonic())

    # The output of this program is what it returns.
    subprocess.run(["sh", "-c", command], stdout=sys.stderr, check=True, timeout=within_s)
    began_s = last_s = time.monotonic()
    threading.Thread(target=read, daemon=True).start()
    try:
        while _look(list_rules) != before:
            last_s = changed_at.get(timeout=within_s)
            while not changed_at.empty():
                last_s = changed_at.get()
        return max(0.0, last_s - began_s)
    except queue.Empty:
        return None


def _look(list_rules: str) -> str:
    return subprocess.run(["sh", "-c", list_rules], capture_output=True, text=True).stdout

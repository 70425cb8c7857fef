"""Run of `mcpwrap apply`, with watched accounts and rules. Runs inside the machine, as root."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from tests.system.guest.apply_state import seen

APPLY = ["/usr/libexec/mcpwrap/mcpwrap-root", "apply"]


def completed() -> dict[str, Any]:
    """Run it to its end; return its last line, and the observations meanwhile."""
    with _watched() as told:
        done = subprocess.run(APPLY, stdout=subprocess.PIPE, text=True, check=True)
    return {**told, "said": done.stdout.splitlines()[-1]}


def killed(step: int, after_s: float) -> dict[str, Any]:
    """Run it, and kill it and its commands this long after it has printed this step.

    Return its last line, whether it was killed, and the observations meanwhile.
    """
    said = ""
    with (
        _watched() as told,
        subprocess.Popen(APPLY, stdout=subprocess.PIPE, text=True, start_new_session=True) as root,
    ):
        assert root.stdout
        for said in root.stdout:
            if said.lstrip().startswith(f"{step}/"):
                break
        try:
            root.wait(after_s)
        except subprocess.TimeoutExpired:
            os.killpg(root.pid, signal.SIGKILL)
    return {**told, "said": said.strip(), "is_killed": root.returncode == -signal.SIGKILL}


@contextmanager
def _watched() -> Iterator[dict[str, Any]]:
    """Poll for accounts that are not refused, until the block ends and once more."""
    told: dict[str, Any] = {"looks": 0, "outside": []}
    is_done = Event()

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = is_done.is_set()
            now = seen()  # the accounts first: rules that were loaded after them are too late
            told["looks"] += 1
            told["outside"] += sorted(set(now["accounts"].values()) - set(now["refused"]))

    watcher = Thread(target=look)
    watcher.start()
    try:
        yield told
    finally:
        is_done.set()
        watcher.join()

"""Screen of a tmux terminal, and the wait for text on it. Runs inside the machine."""

import os
import subprocess
import time

PAUSE_S = 0.05  # between two checks: tmux sends no event when a screen has changed


def _tmux(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "LANG": "C.UTF-8"}
    return subprocess.run(["tmux", "-u", *words], capture_output=True, text=True, env=env)


def awaited(within_s: float, texts: list[str]) -> str:
    """Wait until all of these texts are on the screen; return the last screen."""
    give_up_at = time.monotonic() + within_s
    while True:
        screen = _tmux("capture-pane", "-p").stdout
        if all(text in screen for text in texts) or time.monotonic() > give_up_at:
            return screen
        time.sleep(PAUSE_S)


def await_end(within_s: float) -> int:
    """Wait until no terminal is left; return 0, or 1 if one is left after `within_s`."""
    give_up_at = time.monotonic() + within_s
    while _tmux("has-session").returncode == 0:
        if time.monotonic() > give_up_at:
            return 1
        time.sleep(PAUSE_S)
    return 0

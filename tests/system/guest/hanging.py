"""Service that hangs, and `mcpwrap status` until it is restarted. Runs inside, as root."""

import json
import subprocess
import time


def hang(unit: str, whom: str, within_s: float) -> tuple[float, list[tuple[str, str]]] | None:
    """Stop processes of a unit by SIGSTOP: `main` or `all`.

    Return the seconds until another process serves instead, and each state and status of `mcpwrap
    status` until then; None if there is no other.
    """
    before = _main_pid(unit)
    began_s = time.monotonic()
    kill = ["systemctl", "kill", "--signal=STOP", f"--kill-who={whom}", unit]
    subprocess.run(kill, check=True)
    said: list[tuple[str, str]] = []
    while time.monotonic() < began_s + within_s:
        if _main_pid(unit) not in {before, "0"} and _is_active(unit):
            return time.monotonic() - began_s, said
        shown = subprocess.run(["mcpwrap", "status", "--json"], capture_output=True, text=True)
        said += [(row["state"], row["status"]) for row in json.loads(shown.stdout)]
    return None


def _main_pid(unit: str) -> str:
    argv = ["systemctl", "show", "--value", "-p", "MainPID", unit]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def _is_active(unit: str) -> bool:
    return subprocess.run(["systemctl", "is-active", "--quiet", unit]).returncode == 0

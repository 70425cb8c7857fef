"""Wait for an entry of the journal. Runs inside the machine, as root."""

import json
import re
import subprocess
import threading


def await_entry(cursor: str, pattern: str, within_s: float) -> bool:
    """Wait for the first matching entry `UNIT: MESSAGE` after this cursor; print if it came."""
    argv = ["journalctl", "-f", "-o", "json", "--after-cursor", cursor]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as journal:
        assert journal.stdout
        timer = threading.Timer(within_s, journal.kill)
        timer.start()
        try:
            return any(re.match(pattern, _text_of(line)) for line in journal.stdout)
        finally:
            timer.cancel()
            journal.kill()


def _text_of(line: bytes) -> str:
    entry = json.loads(line)
    unit = entry.get("UNIT") or entry.get("_SYSTEMD_UNIT")
    return f"{unit}: {entry.get('MESSAGE')}"

"""What a service says to the journal: one line, as data."""

import sys


def say(text: str) -> None:
    """Write a line to standard error, which systemd reads (systemd.exec(5), StandardError=)."""
    sys.stderr.write(text.replace("\n", " ") + "\n")
    sys.stderr.flush()

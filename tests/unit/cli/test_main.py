"""`mcpwrap` with output that cannot be written."""

import subprocess
import sys
from pathlib import Path


def printed_to(path: str) -> tuple[int, str]:
    with Path(path).open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "mcpwrap.cli.main", "--help"],
            stdout=out, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    return done.returncode, done.stderr


def test_a_full_disk_is_an_error_without_a_traceback() -> None:
    status, err = printed_to("/dev/full")
    assert status == 1
    assert err == (
        "mcpwrap: standard output: No space left on device [E-FILE-NO-ROOM]\n"
        "  fix: make room: `df` and `df -i` show where\n"
    )
    assert printed_to("/dev/null") == (0, "")  # the twin

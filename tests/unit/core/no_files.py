"""Process that ends as soon as its code opens a file or loads a module.

It stands for a session's process once sealed: even a codec that was not used before is a file.
"""

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[3]
_GIVEN = 'import os, sys\ngiven = sys.stdin.buffer.read().split(b"\\n")\n'
_SEAL = """
def hook(event, args):
    if event in {"open", "import", "os.listdir", "os.scandir"}:
        os.write(2, repr((event, args)).encode())
        os._exit(1)
sys.addaudithook(hook)
"""


def run_without_files(before: str, after: str, given: list[bytes]) -> None:
    """Run `before`, which may open files, and `after`, which must not; both have the lines `given`.

    Raises:
        AssertionError: a file was opened, or another error occurred.
    """
    program = f"{_GIVEN}{before}{_SEAL}{after}\nos._exit(0)\n"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, input=b"\n".join(given), capture_output=True, cwd=TOP)
    assert (found.returncode, found.stderr) == (0, b"")

#!/usr/bin/python3
"""The libraries in /usr/lib/mcpwrap/site: for each Python and architecture the pinned wheels.

`packaging/wheels.py fetch PYTHON ARCH FOLDER PINS…` downloads them by pip, from where this
machine's pip finds its packages, each checked against its hash; it is the only step of a build that
uses a network. `packaging/wheels.py platforms ARCH` prints pip's options for the architecture.
"""

import subprocess
import sys

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# The oldest libc of the targets is Debian 12's, 2.36; https://peps.python.org/pep-0600/.
OLDEST_LIBC = 36


def platforms(arch: str) -> list[str]:
    """Return pip's `--platform` options for an architecture of Debian's, `amd64` or `arm64`."""
    machine = MACHINES[arch]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(OLDEST_LIBC, 16, -1)]
    return [f"--platform={tag}" for tag in (*tags, f"manylinux2014_{machine}", "any")]


def fetch(python: str, arch: str, folder: str, pins: list[str]) -> None:
    """Download the wheels of requirements files for a Python (`3.13`) and an architecture.

    Raises:
        subprocess.CalledProcessError: a wheel is missing, or is not the pinned file.
    """
    subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
            "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
            *platforms(arch), f"--dest={folder}", *(f"--requirement={file}" for file in pins),
        ],
        check=True,
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "fetch":
        fetch(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    else:
        print(*platforms(sys.argv[2]))

"""Change root into a Debian that is not booted, as `debootstrap` and `docker build` have one."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.shared import pace
from tests.system.bed import package, roots
from tests.system.bed.machine import ENV

# A network of its own: the scripts change packet rules and routes. With a PID 1 of its own it is a
# container; without one it is a chroot(2) in the machine whose PID 1 it sees.
ENTER = ("unshare", "--mount", "--net", "--propagation=private")
CONTAINER = ("--pid", "--fork")
MOUNT = """
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
exec chroot "$0" sh -es
"""


@contextmanager
def unbooted(suite: str, folder: Path) -> Iterator[Path]:
    """Make a root with the dependencies of the package, and the package file in /root."""
    lower = roots.ensure(roots.run_root(suite)).lower_dirs()
    # In memory: dpkg syncs each file.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    try:
        upper, work = folder / "upper", folder / "work"
        upper.mkdir()
        work.mkdir()
        with roots.mounted_overlay(lower, upper, work) as root:
            shutil.copy2(package.build(suite), root / "root/mcpwrap.deb")
            yield root
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def run(root: Path, script: str, kind: tuple[str, ...] = CONTAINER) -> str:
    """Run a shell script inside, to its first command that fails; return all output."""
    done = subprocess.run(
        [*ENTER, *kind, "sh", "-ec", MOUNT, str(root)],
        input=f"exec 2>&1\n{script}",
        capture_output=True,
        text=True,
        env=ENV,
        timeout=4 * pace.WAIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

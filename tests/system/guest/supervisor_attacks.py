"""Attacks of a server on its supervisor, which has the same UID. Runs inside, as the server."""

import re
from contextlib import suppress
from pathlib import Path

from tests.system.guest.staying import HIERARCHIES


def hide_groups(levels: int) -> str:
    """Take all rights from its control group; with 2 levels from the one of all sessions too."""
    text = Path("/proc/self/cgroup").read_text()
    path = re.search(r"(?:name=systemd|^0:):(/.+)$", text, re.MULTILINE)
    assert path
    leaf = next(Path(root + path[1]) for root in HIERARCHIES if Path(root + path[1]).is_dir())
    for file in ("cgroup.procs", "cgroup.kill", "cgroup.threads", "tasks"):
        with suppress(OSError):
            (leaf / file).chmod(0)
    leaf.chmod(0)
    if levels == 2:
        leaf.parent.chmod(0)
    try:
        return str(list(leaf.iterdir()))
    except PermissionError:
        return "hidden"


def shut_places() -> str:
    """Take all rights from the folders that its own is in, as far as they are its account's."""
    for place in list(Path.home().parents)[1:-2]:  # not its own, and neither / nor /run
        with suppress(OSError):
            place.chmod(0)
    return "shut"


def make_links(count: int) -> int:
    """Leave so many links to the root of the machine in /tmp."""
    for number in range(count):
        Path(f"/tmp/l{number}").symlink_to("/")
    return count

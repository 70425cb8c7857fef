"""Snapshot of a root: files, units, packet rules. Runs inside the machine, as root."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

# Without files that apt, logs and a running system write.
SKIPPED = (
    *("/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/home", "/etc/.pwd.lock"),
    *("/var/log", "/var/cache", "/var/tmp", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd"),
    "/var/lib/rpm",
)
UNITS = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "mcpwrap*"]
RULES = ["nft", "list", "ruleset"]


def snapshot() -> dict[str, object]:
    """Return every file with its properties, the package's units, and the packet rules."""
    seen: dict[str, object] = {}
    for top, folders, files in os.walk("/"):
        names = {name: str(Path(top, name)) for name in folders + files}
        folders[:] = [name for name in folders if not names[name].startswith(SKIPPED)]
        for name, path in names.items():
            # /etc/passwd- is a copy of shadow's own.
            if not path.startswith(SKIPPED) and not name.endswith("-"):
                seen[path] = _what(Path(path))
    seen["units"] = sorted(_printed(UNITS).splitlines())
    seen["rules"] = _printed(RULES)
    return seen


def _what(path: Path) -> list[object]:
    info = path.lstat()
    what: list[object] = [oct(info.st_mode), info.st_uid, info.st_gid]
    if stat.S_ISREG(info.st_mode):
        # Outside /etc no file is rewritten in place, so size and time are as good as a hash.
        is_config = path.is_relative_to("/etc")
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if is_config else ""
        what += [info.st_size, digest or info.st_mtime_ns]
    if stat.S_ISLNK(info.st_mode):
        what.append(str(path.readlink()))
    return what


def _printed(argv: list[str]) -> str:
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout

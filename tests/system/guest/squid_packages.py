"""Repository of Debian's own Squid packages, packed again. Runs inside the machine, as root.

Machines have no network, so the installed files are packed again: the scripts, units and control
files are Debian's own. Debian 13 has the unit in a second package.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path("/root/repo")
NAMES = ("squid", "squid-openssl")
SCRIPTS = ("preinst", "postinst", "prerm", "postrm", "conffiles", "triggers")


def repack() -> list[str]:
    """Fill the repository, name it in /root/repo.list, and return the names of its packages."""
    REPOSITORY.mkdir()
    names = [name for name in NAMES if "Status: install ok installed" in _status(name)]
    (REPOSITORY / "Packages").write_text("\n".join(map(_pack, names)))
    Path("/root/repo.list").write_text(f"deb [trusted=yes] file:{REPOSITORY} ./\n")
    return names


def _pack(name: str) -> str:
    tree, deb = Path(f"/root/tree-{name}"), REPOSITORY / f"{name}.deb"
    (tree / "DEBIAN").mkdir(parents=True)
    _copy_files(name, tree)
    for kind in SCRIPTS:
        script = Path(f"/var/lib/dpkg/info/{name}.{kind}")
        if script.exists():
            shutil.copy2(script, tree / "DEBIAN" / kind)
    control = _control_of(name)
    (tree / "DEBIAN/control").write_text(f"{control}\n")
    subprocess.run(["dpkg-deb", "-b", tree, deb], check=True, stdout=subprocess.DEVNULL)
    data = deb.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return f"{control}\nFilename: ./{deb.name}\nSize: {len(data)}\nSHA256: {digest}\n"


def _control_of(name: str) -> str:
    kept, is_skipped = [], False
    for line in _status(name).splitlines():
        if not line.startswith(" "):
            is_skipped = line.split(":")[0] in {"Status", "Conffiles"}
        if not is_skipped:
            kept.append(line)
    return "\n".join(kept)


def _copy_files(name: str, tree: Path) -> None:
    for line in _printed("dpkg", "-L", name).splitlines():
        path = Path(line)
        if not os.path.lexists(path):
            continue  # left out by the recipe of the root: manual pages
        target = Path(f"{tree}{path.parent.resolve()}/{path.name}")
        if path.is_dir() and not path.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)


def _status(name: str) -> str:
    return _printed("dpkg-query", "-s", name)


def _printed(*argv: str) -> str:
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout

"""Packages that a program loads beside its own path, in realistic trees."""

import os
import stat
from pathlib import Path

import pytest

from mcpwrap.linux.executables.launch import launch_of
from mcpwrap.linux.executables.look import ExecutableScan
from mcpwrap.linux.executables.ownership import Ownership

SITE = "venv/lib/python3.11/site-packages"
VENV = {"venv/pyvenv.cfg": "home = /usr/bin\n", "venv/bin/server": "", "source/x.py": ""}
SERVER = ["TOP/venv/bin/server"]
SCRIPT = {"app/server.py": ""}
# Files of a tree with their texts, files that alice can write, command line, working directory.
LOADED = [
    (VENV | {f"{SITE}/x.pth": "TOP/source"}, "source", SERVER, ""),
    (VENV | {f"{SITE}/x.pth": "../../../../source"}, "source", SERVER, ""),
    (VENV | {f"{SITE}/x.pth": "import sys; sys.path.append('TOP/source')"}, "source", SERVER, ""),
    (VENV | {f"{SITE}/_x_editable_loader.py": "{'x': 'TOP/source/x.py'}"}, "source/x.py", SERVER,
     ""),
    ({"mono/node_modules/a/x.js": "", "mono/server/package.json": "", "mono/server/x.js": ""},
     "mono/node_modules/a", ["/usr/bin/node", "TOP/mono/server/x.js"], ""),
    (SCRIPT | {"app/helpers/x.py": ""}, "app/helpers", ["/usr/bin/python3", "TOP/app/server.py"],
     ""),
    (SCRIPT | {"app/a/b/x.py": ""}, "app/a/b/x.py", ["/usr/bin/python3", "TOP/app/server.py"], ""),
    (SCRIPT | {"app/__pycache__/x.txt": ""}, "app/__pycache__",
     ["/usr/bin/python3", "TOP/app/server.py"], ""),
    ({"app/server.jar": "", "app/lib/x.jar": ""}, "app/lib/x.jar",
     ["/usr/bin/java", "-jar", "TOP/app/server.jar"], ""),
    ({"app/bin/server": "", "app/lib/libx.so.1": ""}, "app/lib/libx.so.1", ["TOP/app/bin/server"],
     ""),
    ({"py/bin/python3": "", "py/lib/python3.11/os.py": ""}, "py/lib/python3.11/os.py",
     ["TOP/py/bin/python3", "-c", "1"], ""),
    ({"app/node_modules/a/x.js": ""}, "app/node_modules", ["/usr/bin/npx", "a"], "TOP/app"),
    ({"app/node_modules/a/x.js": ""}, "app/node_modules/a", ["/usr/bin/npx", "a"], "TOP/app"),
    ({"app/package.json": ""}, "app/package.json", ["/usr/bin/npm", "start"], "TOP/app"),
    ({"app/server/x.py": ""}, "app/server", ["/usr/bin/python3", "-m", "server"], "TOP/app"),
]  # fmt: skip
DATA = [
    (SCRIPT | {"app/data/x.db": ""}, "app/data", ["/usr/bin/python3", "TOP/app/server.py"], ""),
    ({"app/bin/server": "", "app/var/x.py": ""}, "app/var", ["TOP/app/bin/server"], ""),
    ({"app/server/x.py": "", "app/log/x": ""}, "app/log", ["/usr/bin/npx", "a"], "TOP/app"),
    (VENV | {f"{SITE}/x.pth": "# TOP/source"}, "source", SERVER, ""),
]


def problem(_own: Ownership, info: os.stat_result) -> str:
    """Take the mode for the owner: folders above temporary ones belong to other accounts."""
    is_alices = info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX
    return "" if stat.S_ISLNK(info.st_mode) or not is_alices else "belongs to alice"


def found(top: Path, files: dict[str, str], words: list[str], cwd: str) -> list[str]:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text.replace("TOP", str(top)))
    command, *args = (word.replace("TOP", str(top)) for word in words)
    launch, look = launch_of(command, args, cwd.replace("TOP", str(top)), {}), ExecutableScan()
    return [one.flaw.path for one in (*look.paths(launch), *look.packages(launch))]


@pytest.mark.parametrize(("files", "alices", "words", "cwd", "is_code"), [
    *((*row, True) for row in LOADED), *((*row, False) for row in DATA),
])  # fmt: skip
def test_what_a_program_loads_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], alices: str,
    words: list[str], cwd: str, *, is_code: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(Ownership, "problem", problem)
    assert found(tmp_path, files, words, cwd) == []  # all files belong to root
    (tmp_path / alices).chmod(0o777)
    assert (str(tmp_path / alices) in found(tmp_path, files, words, cwd)) is is_code


def test_a_link_beside_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ownership, "problem", problem)
    files, words = SCRIPT | {"source/x.py": ""}, ["/usr/bin/python3", "TOP/app/server.py"]
    assert found(tmp_path, files, words, "") == []
    (tmp_path / "app/helpers").symlink_to("../source")
    (tmp_path / "source/x.py").chmod(0o777)
    assert found(tmp_path, files, words, "") == [str(tmp_path / "source/x.py")]

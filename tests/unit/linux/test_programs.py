"""What a command and a path are on this machine: real files, links and scripts."""

import os
from pathlib import Path

import pytest

from mcpwrap.config.proposals.draft import Place, Program
from mcpwrap.linux.programs import places, program, top_of

MINE = os.geteuid()


def script(path: Path, first_line: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def link(path: Path, target: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "alice"
    home.mkdir()
    return home


def test_of_the_system(home: Path) -> None:
    found = program("sh", str(home), str(home), "/usr/bin:/bin")
    assert found == Program("/usr/bin/sh")
    assert program("nothere", str(home), str(home), "/usr/bin") is None


def test_npx_of_nvm(home: Path) -> None:
    """Its code, and the node that `env` would find: not the one of the system, if any."""
    node = home / ".nvm/versions/node/v22.1.0"
    script(node / "bin/node", "\x7fELF")
    script(node / "lib/node_modules/npm/bin/npx-cli.js", "#!/usr/bin/env node")
    npx = link(node / "bin/npx", "../lib/node_modules/npm/bin/npx-cli.js")
    found = program("npx", str(home), str(home), f"{npx.parent}:/usr/bin:/bin")
    assert found is not None
    assert found.path == str(npx)
    assert str(node) in found.folders
    assert all(folder.startswith(str(node)) for folder in found.folders)
    assert found.search == (str(node / "bin"),)


def test_a_tool_in_a_virtual_environment_of_uv(home: Path) -> None:
    python = home / ".local/share/uv/python/cpython-3.13"
    script(python / "bin/python3", "\x7fELF")
    venv = home / ".local/share/uv/tools/git"
    link(venv / "bin/python", str(python / "bin/python3"))
    (venv / "pyvenv.cfg").write_text(f"home = {python}/bin\nversion = 3.13\n")
    tool = script(venv / "bin/mcp-server-git", f"#!{venv}/bin/python")
    mine = link(home / ".local/bin/mcp-server-git", str(tool))
    found = program("mcp-server-git", str(home), str(home), f"{mine.parent}:/usr/bin")
    assert found is not None
    assert set(found.folders) == {str(home / ".local/bin"), str(venv), str(python)}
    assert found.search == ()


def test_a_script_of_a_project(home: Path) -> None:
    (home / "shop").mkdir()
    (home / "shop/package.json").touch()
    tool = script(home / "shop/tools/run", "#!/usr/bin/env -S FOO=1 sh -e")
    found = program("./tools/run", str(home / "shop"), str(home), "/usr/bin:/bin")
    assert found == Program(str(tool), (str(home / "shop"),))
    tool.chmod(0o644)
    assert program("./tools/run", str(home / "shop"), str(home), "/usr/bin") is None


def test_links_in_a_circle(home: Path) -> None:
    first = link(home / "bin/a", "b")
    link(home / "bin/b", "a")
    assert program(str(first), str(home), str(home), "/usr/bin") is None


def test_the_folder_of_code(home: Path) -> None:
    (home / "shop/.git").mkdir(parents=True)
    assert top_of(home / "shop/a/b/c.js", str(home)) == str(home / "shop")
    assert top_of(home / "x/y.js", str(home)) == str(home / "x")
    (home / "package.json").touch()  # of a person who has one at home
    assert top_of(home / "x/y.js", str(home)) == str(home / "x")


def test_places_that_are_given(home: Path) -> None:
    (home / "data").mkdir()
    (home / "data/notes.json").touch()
    code = script(home / "code/a.py")
    asked = [home / "data", home / "data/notes.json", home / "data/new.db", home / "new.db", code]
    asked += [home / "no/such/thing", Path("/usr/bin/sh"), Path("/etc/passwd")]
    data = str(home / "data")
    assert places(map(str, asked), str(home), MINE) == {
        data: Place(is_folder=True),
        f"{data}/notes.json": Place(is_folder=False, top=data),
        f"{data}/new.db": Place(is_folder=False, is_there=False, top=data),
        str(code): Place(is_folder=False, is_code=True, top=str(home / "code")),
    }
    assert places(map(str, asked), str(home), MINE + 1) == {}


def test_what_a_script_names_is_given_only_if_it_is_a_program(home: Path) -> None:
    """Else the first line of a file from a repository could have any folder of its person given."""
    key = home / ".ssh/id_ed25519"
    key.parent.mkdir()
    key.touch(mode=0o600)
    os.mkfifo(home / "pipe")
    command = home / "shop/bin/run"
    for first_line in (f"#!{key}", f"#!{home}/pipe", f"#!{home}/none"):
        script(command, first_line)
        found = program(str(command), str(home), str(home), "/usr/bin")
        assert found == Program(str(command), (str(home / "shop"),))
    os.mkfifo(home / "shop/pyvenv.cfg")
    assert program(f"{home}/shop/bin/run", str(home), str(home), "/usr/bin")


@pytest.mark.parametrize(
    "name", ["a\0b", "/a\0b", "\ud800", "/\ud800", "/" + "a" * 300, "/" + "a/" * 4000, "/"]
)
def test_what_no_path_can_be(home: Path, name: str) -> None:
    assert program(name, str(home), str(home), "/usr/bin") is None
    assert places([name], str(home), MINE + 1) == {}

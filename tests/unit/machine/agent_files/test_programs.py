"""Resolution of a command and a path on this machine: real files, links and scripts."""

import os
from pathlib import Path

import pytest

from mcpwrap.config.migration.draft import MigrationError, PathInfo, ResolvedCommand
from mcpwrap.machine.agent_files.programs import (
    folders_of_others,
    is_found,
    path_infos,
    program,
    top_of,
    with_environments,
)
from tests.unit.machine.agent_files.program_files import link, script

MINE = os.geteuid()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "alice"
    home.mkdir()
    return home


def test_of_the_system(home: Path) -> None:
    found = program("sh", str(home), str(home), "/usr/bin:/bin")
    assert found == ResolvedCommand("/usr/bin/sh")
    assert program("nothere", str(home), str(home), "/usr/bin") is None


@pytest.mark.parametrize(
    ("command", "is_there"),
    [
        ("sh", True),
        ("/bin/sh", True),
        ("./tool", True),
        ("shims/tool", True),  # whatever it starts
        ("tool", False),  # not in PATH
        ("nothere", False),
        ("./nothere", False),
        ("a\0b/c", False),
    ],
)
def test_a_command_is_there(home: Path, command: str, *, is_there: bool) -> None:
    script(home / "tool", "#!/bin/sh")
    script(home / "shims/tool", "#!/bin/sh")
    assert is_found(command, str(home), "/usr/bin:/bin") == is_there


def test_folders_of_others(tmp_path: Path) -> None:
    team, temporary = tmp_path / "team", tmp_path / "tmp"
    for folder in (team, temporary):
        folder.mkdir()
    temporary.chmod(0o1777)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(team)
    paths = [*map(str, (team, temporary, tmp_path / "file", tmp_path / "none", tmp_path / "link"))]
    assert folders_of_others([*paths, "/usr/share", "a\0b"]) == {
        str(team): PathInfo(is_folder=True),
        str(tmp_path / "link"): PathInfo(is_folder=True, leads_to=str(team)),
    }


def test_npx_of_nvm(home: Path) -> None:
    """Its code, and the node that `env` would find: not the system's node, if it has one."""
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
    (python / "lib").mkdir()
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
    assert found == ResolvedCommand(str(tool), (str(home / "shop"),))
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
    (home / "package.json").touch()  # of a person who has one in the home
    assert top_of(home / "x/y.js", str(home)) == str(home / "x")


def test_places_that_are_given(home: Path) -> None:
    (home / "data").mkdir()
    (home / "data/notes.json").touch()
    code = script(home / "code/a.py")
    asked = [home / "data", home / "data/notes.json", home / "data/new.db", home / "new.db", code]
    asked += [home / "no/such/thing", Path("/usr/bin/sh"), Path("/etc/passwd")]
    data = str(home / "data")
    assert path_infos(map(str, asked), str(home), MINE) == {
        data: PathInfo(is_folder=True),
        f"{data}/notes.json": PathInfo(is_folder=False, top=data),
        f"{data}/new.db": PathInfo(is_folder=False, is_there=False, top=data),
        str(home / "new.db"): PathInfo(is_folder=False, is_there=False, top=str(home)),
        str(code): PathInfo(is_folder=False, is_code=True, top=str(home / "code")),
    }
    assert path_infos(map(str, asked), str(home), MINE + 1) == {}


def test_a_folder_of_repositories_is_not_given_for_a_file(home: Path) -> None:
    """Other folders are given: a repository itself has its held names where it is a workspace."""
    for name, inside in (("code", "one/.git"), ("data", "logs"), ("project", ".git")):
        (home / name / inside).mkdir(parents=True)
        (home / name / "notes.json").touch()
    asked = [f"{home}/{name}/notes.json" for name in ("code", "data", "project")]
    given = [place.top for place in path_infos(asked, str(home), MINE).values()]
    assert given == ["", f"{home}/data", f"{home}/project"]


def test_a_folder_of_another_account_is_not_given_for_a_file(home: Path) -> None:
    team = home / "team"
    team.mkdir()
    (team / "notes.json").touch()
    os.chown(team, MINE + 1, -1)
    asked = [f"{team}/notes.json", f"{team}/new.json"]
    assert path_infos(asked, str(home), MINE) == {asked[0]: PathInfo(is_folder=False)}


def test_what_a_script_names_is_given_only_if_it_is_a_program(home: Path) -> None:
    """Else the first line of a file from a repository could give away any folder of its person."""
    key = home / ".ssh/id_ed25519"
    key.parent.mkdir()
    key.touch(mode=0o600)
    os.mkfifo(home / "pipe")
    command = home / "shop/bin/run"
    for first_line in (f"#!{key}", f"#!{home}/pipe", f"#!{home}/none"):
        script(command, first_line)
        found = program(str(command), str(home), str(home), "/usr/bin")
        assert found == ResolvedCommand(str(command), (str(command.parent),))
    os.mkfifo(home / "shop/pyvenv.cfg")
    assert program(f"{home}/shop/bin/run", str(home), str(home), "/usr/bin")


@pytest.mark.parametrize(
    "name", ["a\0b", "/a\0b", "\ud800", "/\ud800", "/" + "a" * 300, "/" + "a/" * 4000, "/"]
)
def test_text_that_is_not_a_valid_path(home: Path, name: str) -> None:
    assert program(name, str(home), str(home), "/usr/bin") is None
    assert path_infos([name], str(home), MINE + 1) == {}


def test_a_path_behind_a_link_has_its_target(home: Path) -> None:
    (home / "data").mkdir()
    link(home / "linked", "data")
    asked = [home / "linked", home / "linked/new.db"]
    assert path_infos(map(str, asked), str(home), MINE) == {
        str(asked[0]): PathInfo(is_folder=True, leads_to=str(home / "data")),
        str(asked[1]): PathInfo(
            is_folder=False,
            is_there=False,
            top=str(home / "linked"),
            leads_to=str(home / "data/new.db"),
        ),
    }


def test_code_whose_packages_lie_above_it(home: Path) -> None:
    """Node searches above: npm puts packages side by side, and a workspace has one folder."""
    installed = home / "mcp/node_modules/@x/files/dist/index.js"
    (home / "mcp/node_modules/@x/files").mkdir(parents=True)
    (home / "mcp/node_modules/@x/files/package.json").touch()
    assert top_of(installed, str(home)) == str(home / "mcp")
    (home / "repo/src/memory").mkdir(parents=True)
    (home / "repo/src/memory/package.json").touch()
    (home / "repo/package.json").touch()
    assert top_of(home / "repo/src/memory/a.js", str(home)) == str(home / "repo/src/memory")
    (home / "repo/node_modules").mkdir()
    assert top_of(home / "repo/src/memory/a.js", str(home)) == str(home / "repo")
    (home / "node_modules/y").mkdir(parents=True)
    assert top_of(home / "node_modules/y/a.js", str(home)) == str(home / "node_modules")


def test_a_folder_of_programs_alone_is_all_that_is_given(home: Path) -> None:
    """Beside ~/.cargo/bin lies a token."""
    tool = script(home / ".cargo/bin/tool", "\x7fELF")
    (home / ".cargo/credentials.toml").touch()
    found = program(str(tool), str(home), str(home), "/usr/bin")
    assert found == ResolvedCommand(str(tool), (str(tool.parent),))


def test_an_interpreter_with_a_short_name(home: Path) -> None:
    """As uv links it: the link and its target are in one folder, which is given."""
    pythons = home / ".local/share/uv/python"
    script(pythons / "cpython-3.13.5/bin/python3.13", "\x7fELF")
    (pythons / "cpython-3.13.5/lib").mkdir()
    link(pythons / "cpython-3.13", "cpython-3.13.5")
    venv = home / "weather/.venv"
    python = link(venv / "bin/python", str(pythons / "cpython-3.13/bin/python3.13"))
    (venv / "pyvenv.cfg").write_text(f"home = {pythons}/cpython-3.13/bin\n")
    found = program(str(python), str(home), str(home), "/usr/bin")
    assert found is not None
    assert set(found.folders) == {str(venv), str(pythons)}
    uv = ResolvedCommand("/usr/bin/uv", (str(home / "x"),))
    with_it = with_environments(uv, [str(home), str(home / "weather")], str(home), "/usr/bin")
    assert with_it == ResolvedCommand("/usr/bin/uv", (str(home / "x"), *found.folders))


def test_a_program_behind_a_link_that_leads_far_away(home: Path) -> None:
    script(home / "far/python/bin/python3")
    link(home / "near", str(home / "far"))
    mine = link(home / "venv/bin/python", str(home / "near/python/bin/python3"))
    with pytest.raises(MigrationError, match=r"is behind a link: .* \[E-MIGRATE-LINK\]"):
        program(str(mine), str(home), str(home), "/usr/bin")


def test_a_folder_of_programs_that_is_a_link(home: Path) -> None:
    """As fnm makes them, one for each terminal."""
    real = script(home / "fnm/v22/bin/node", "\x7fELF")
    link(home / "run/123", str(home / "fnm/v22"))
    found = program("node", str(home), str(home), f"{home}/run/123/bin:/usr/bin")
    assert found == ResolvedCommand(str(real), (str(real.parent),))


def test_a_shim_of_an_unknown_version_is_refused(home: Path) -> None:
    shim = script(home / ".pyenv/shims/python")
    with pytest.raises(MigrationError, match=r"chooses a version at each .* \[E-MIGRATE-SHIM\]"):
        program("python", str(home), str(home), f"{shim.parent}:/usr/bin")
    tool = script(home / "tools/x", "#!/usr/bin/env python")
    with pytest.raises(MigrationError, match="`which python`"):
        program(str(tool), str(home), str(home), f"{shim.parent}:/usr/bin")

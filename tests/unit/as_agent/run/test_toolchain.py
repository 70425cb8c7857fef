"""Folders that a command has to read, in realistic homes."""

import os
import pwd
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.as_agent.run.toolchain import (
    CommandContext,
    find_program,
    named_paths,
    needed_paths,
    wide_folders,
)


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def link(path: Path, to: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("home/work", "usr/bin"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path / "home"


def needs(
    home: Path,
    command: Path,
    *arguments: str,
    cwd: str = "work",
    path: str = "",
    to_write: frozenset[Path] = frozenset(),
) -> set[str]:
    """Return the needed paths, relative to the home's parent, without those of the system."""
    place = CommandContext(frozenset({home}), (home / cwd).resolve(), path, to_write)
    top = home.parent
    folders = needed_paths(command, arguments, place)
    return {str(f.relative_to(top)) for f in folders if f.is_relative_to(top)}


def test_node_of_nvm(home: Path) -> None:
    """A link to a script, whose interpreter is found by PATH."""
    version = home / ".nvm/versions/node/v22"
    program(version / "bin/node")
    script = program(version / "lib/node_modules/npm/bin/npx-cli.js", "#!/usr/bin/env node\n")
    npx = link(version / "bin/npx", script)
    found_folders = needs(home, npx, "-y", "a-server", path=str(version / "bin"))
    root = "home/.nvm/versions/node/v22"
    assert found_folders == {root, f"{root}/lib/node_modules", "home/work"}


def test_a_tool_of_uv(home: Path) -> None:
    """A link in a shared folder, to an environment, whose Python is a link again."""
    python = program(home / ".local/share/uv/python/cpython-3.12/bin/python3.12")
    tool = home / ".local/share/uv/tools/mcp-server-time"
    link(tool / "bin/python", python)
    script = program(tool / "bin/mcp-server-time", f"#!{tool}/bin/python\n")
    command = link(home / ".local/bin/mcp-server-time", script)
    assert needs(home, command) == {
        "home/.local/bin",
        "home/.local/share/uv/python/cpython-3.12",
        "home/.local/share/uv/tools/mcp-server-time",
        "home/work",
    }


@pytest.mark.parametrize(
    ("at", "folder"),
    [
        ("home/bin/tool", "home/bin"),  # not all of the home
        ("home/tool", "home/tool"),  # the file alone
        ("home/.local/tool", "home/.local/tool"),
        ("home/.local/share/bin/tool", "home/.local/share/bin"),
        ("home/.volta/bin/npx", "home/.volta"),
        ("home/.asdf/shims/npx", "home/.asdf"),
        ("home/app/node_modules/.bin/x", "home/app/node_modules"),
        ("usr/bin/tool", "usr"),
    ],
)
def test_as_few_files_as_possible(home: Path, at: str, folder: str) -> None:
    assert needs(home, program(home.parent / at)) == {folder, "home/work"}


def test_a_home_is_recognised_by_another_name(home: Path) -> None:
    other = link(home.parent / "other", home)
    program(home / "bin/tool")
    assert needs(home, other / "bin/tool") == {"home/bin", "home/work"}


def test_the_project_of_a_script(home: Path) -> None:
    node = program(home.parent / "usr/bin/node")
    program(home / "code/server/dist/index.js")
    (home / "code/server/package.json").write_text("{}")
    index = str(home / "code/server/dist/index.js")
    assert needs(home, node, "--enable-source-maps", index) == {
        "usr", "home/code/server", "home/work",
    }  # fmt: skip
    (home / "loose.js").write_text("")
    assert needs(home, node, "../loose.js") == {"usr", "home/loose.js", "home/work"}
    assert needs(home, program(home.parent / "usr/bin/tool"), index) == {"usr", "home/work"}


def test_the_command_of_env(home: Path) -> None:
    env, node = program(home.parent / "usr/bin/env"), program(home / "node/bin/node")
    (home / "code").mkdir()
    (home / "code/server.js").write_text("")
    command = ("-i", "A=1", "node", str(home / "code/server.js"))
    assert needs(home, env, *command, path=str(node.parent)) == {
        "usr", "home/node", "home/code", "home/work",
    }  # fmt: skip
    assert needs(home, env, "A=1") == {"usr", "home/work"}


@pytest.mark.parametrize("cwd", [".", ".."])
def test_a_home_is_not_shown_as_working_folder(home: Path, cwd: str) -> None:
    assert needs(home, program(home.parent / "usr/bin/tool"), cwd=cwd) == {"usr"}


@pytest.mark.parametrize("cwd", ["bob", "bob/.config", "", "tmp"])
def test_no_accounts_home_is_shown_as_working_folder(home: Path, cwd: str) -> None:
    """Root works in one home with HOME set to another; nor are folders of sessions shown."""
    bob, tmp = home / "bob", home / "tmp"
    for folder in (bob / ".config", bob / "work", tmp / "work"):
        folder.mkdir(parents=True)
    place = CommandContext(frozenset({home / "work", bob, tmp}), home / cwd, "", frozenset())
    tool = program(home.parent / "usr/bin/tool")
    assert needed_paths(tool, (), place) == {home.parent / "usr"}
    for inner in (bob / "work", tmp / "work"):
        assert needed_paths(tool, (), replace(place, cwd=inner)) == {home.parent / "usr", inner}


def test_homes_are_those_of_all_accounts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home / "temporary"))  # as by TMPDIR
    wide = wide_folders(home)
    homes = {Path(entry.pw_dir).resolve() for entry in pwd.getpwall()}
    assert homes | {home, home / "temporary", Path("/tmp")} <= wide
    assert Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve() in wide


def test_a_program_is_found_as_a_shell_finds_it(home: Path) -> None:
    tool = program(home / "bin/tool")
    (home / "bin/text").write_text("")
    place = CommandContext(
        frozenset({home}), home, f"{home.parent}/usr/bin:{home}/bin", frozenset()
    )
    assert find_program("tool", place) == tool
    assert find_program("./bin/tool", place) == home / "bin/tool"
    assert find_program(str(tool), place) == tool
    for nothing in ("text", "other", "./bin/text", "./bin", "./other"):
        assert find_program(nothing, place) is None


@pytest.mark.parametrize("option", ["-S", "-iS", "-Snode", "--split-string=node", "--sp=node"])
def test_the_text_of_env_split_is_not_guessed(home: Path, option: str) -> None:
    """`-Snode --require=x ~/other/tool` runs node, and only names the other tool."""
    env = program(home.parent / "usr/bin/env")
    program(home / "node/bin/node")
    other = str(program(home / "other/tool"))
    path = str(home / "node/bin")
    assert needs(home, env, option, "--require=x", other, path=path) == {"usr", "home/work"}
    script = program(home / "bin/tool", f"#!{env} {option} --require=x {other}\n")
    assert needs(home, script, path=path) == {"home/bin", "home/work"}


@pytest.mark.parametrize("given", ["app", "app/tool"])  # the folder, or the file alone
def test_a_first_line_that_the_server_may_write_is_not_followed(home: Path, given: str) -> None:
    other = program(home / "other/tool")
    script = program(home / "app/tool", f"#!{other}\n")
    assert needs(home, script) == {"home/app", "home/other", "home/work"}
    to_write = frozenset({home / given})
    assert needs(home, script, to_write=to_write) == {"home/app", "home/work"}
    alias = link(home / "bin/alias", script)
    assert "home/other" not in needs(home, alias, to_write=to_write)


def test_a_link_in_a_folder_that_the_server_may_write_is_not_followed(home: Path) -> None:
    program(home / "keys/config")
    node = program(home.parent / "usr/bin/node")
    script = link(home / "app/server.js", home / "keys/config")
    inner = link(home / "app/keys", home / "keys")
    alias = link(home / "bin/alias", script)
    place = CommandContext(frozenset({home}), home / "work", "", frozenset({home / "app"}))
    assert find_program("../app/keys/config", place) == home / "work/../app/keys/config"
    for command in (
        (node, str(script)), (node, str(inner / "config")), (script,), (alias,),
        (inner / "config",), (home / "work/../app/keys/config",),
    ):  # fmt: skip
        assert "home/keys" in needs(home, *command)
        assert "home/keys" not in needs(home, *command, to_write=place.to_write)


def test_a_script_that_runs_itself_ends(home: Path) -> None:
    loop = home / "work/loop"
    assert needs(home, program(loop, f"#!{loop}\n")) == {"home/work"}


def test_names_are_returned_with_their_links(home: Path) -> None:
    """It is started, and starts others, by these names: their targets are not enough."""
    python = program(home / "versions/3.12/bin/python")
    now = link(home / "now", home / "versions/3.12")
    tool = program(home / "tools/tool", f"#!{now}/bin/python\n")
    command = link(home / "bin/tool", tool)
    path = f"{now}/bin:/usr/bin"
    place = CommandContext(frozenset({home}), home / "work", path, frozenset())
    found_names = named_paths(command, ["-v", "notes", "--root=/srv/x"], place)
    assert found_names == {
        command,
        tool,
        python,
        now / "bin",
        now / "bin/python",
        Path("/usr/bin"),
        Path("/srv/x"),
        *(home / "work" / word for word in ("-v", "notes")),
    }

"""A program in somebody's home is refused, and what is no file is not even opened."""

import os
from pathlib import Path

import pytest

from mcpwrap.config.model import Config, Local, Remote, Server, Workspace
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.commands import expect_visible


def config(command: str, *workspace: str) -> Config:
    folders = tuple(Workspace(path, is_writable=False) for path in workspace)
    server = Server(name="a", runs=Local(command=command), workspace=folders)
    elsewhere = Server(name="b", runs=Remote(url="https://x.example/"))
    return Config({"a": server, "b": elsewhere}, {})


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text("#! /home/alice/.nvm/node --x\nnode()\n")
    return path


def test_a_program_or_what_runs_it_in_a_home_is_refused(script: Path) -> None:
    for command, really in (("/home/alice/x", "/home/alice/x"), (str(script), "alice/.nvm/node")):
        with pytest.raises(McpwrapError, match=f"{really}.*nothing was changed"):
            expect_visible(config(command))
    expect_visible(config("/home/alice/x", "/home/alice"))
    expect_visible(config(str(script), "/home/alice/.nvm"))


def test_a_link_is_followed(script: Path) -> None:
    link = script.with_name("link")
    link.symlink_to(script)
    with pytest.raises(McpwrapError, match=r"alice/\.nvm/node"):
        expect_visible(config(str(link)))


@pytest.mark.parametrize("command", ["/usr/bin/env", "/nowhere", "/", "/dev/null"])
def test_other_programs_are_not(command: str) -> None:
    expect_visible(config(command))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Whoever proposes a server says what its command is."""
    os.mkfifo(tmp_path / "pipe")
    expect_visible(config(str(tmp_path / "pipe")))

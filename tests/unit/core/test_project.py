"""Project of a session: which of the agent's variables name it, and its place in arguments."""

import pytest

from mcpwrap.core import project
from mcpwrap.core.project import Project

OPEN = Project("/home/alice/src/a", "/home/alice/src/a/sub", is_writable=True)


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("/home/alice/src/a", True),
        ("/home/alice/src/a/sub/deep", True),
        ("/home/alice/src/ab", False),
        ("/home/alice/src", False),
        ("/home/alice/src/a/../b", False),  # leads out of it
        ("/home/alice/src/a/", False),  # not in its shortest form
        ("/home/alice/src/a//b", False),
        ("a", False),
        ("", False),
    ],
)
def test_a_variable_passes_if_its_value_lies_in_the_project(value: str, *, passes: bool) -> None:
    found = project.variables(OPEN, {"CLAUDE_PROJECT_DIR": value, "PATH": "/home/alice/src/a"})
    expected = {"CLAUDE_PROJECT_DIR": value} if passes else {}
    assert found == {"PWD": "/home/alice/src/a/sub", **expected}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--repository", "${PROJECT}"], ["--repository", "/p"]),
        (["--db=${PROJECT}/x.db", "${PROJECT}:${PROJECT}"], ["--db=/p/x.db", "/p:/p"]),
        (["$PROJECT", "${PROJECTS}", "."], ["$PROJECT", "${PROJECTS}", "."]),
    ],
)
def test_the_project_is_filled_in(args: list[str], expected: list[str]) -> None:
    assert project.filled_in(args, "/p") == expected
    assert project.names_project(args) is (args != expected)

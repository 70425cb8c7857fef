"""Modules as read from files: names, rooms, first lines and classes."""

from pathlib import Path

import pytest

from tests.project import sources
from tests.unit.project import trees

TEXT = '''"""Calls of a session.

More of them.
"""

import os


class Call:
    """A call."""

    class Inner:
        """Not at the top level."""


class Answer:
    text = ""
'''


@pytest.mark.parametrize(
    ("path", "name", "room", "is_package"),
    [
        ("mcpwrap/core/names.py", "mcpwrap.core.names", "mcpwrap.core", False),
        ("mcpwrap/core/__init__.py", "mcpwrap.core", "mcpwrap.core", True),
        ("mcpwrap/errors.py", "mcpwrap.errors", "mcpwrap", False),
        ("packaging/stage.py", "packaging.stage", "packaging", False),
    ],
)
def test_a_path_has_a_name_and_a_room(path: str, name: str, room: str, *, is_package: bool) -> None:
    module = sources.parsed(path, "")
    assert (module.name, module.room, module.is_package) == (name, room, is_package)


def test_a_module_has_lines_and_classes() -> None:
    module = sources.parsed("mcpwrap/core/calls.py", TEXT)
    assert module.lines == 17
    assert [(one.name, one.line) for one in module.classes] == [("Call", 9), ("Answer", 16)]
    assert [(one.text, one.line) for one in module.first_lines] == [
        ("Calls of a session.", 1),
        ("A call.", 10),
    ]


@pytest.mark.parametrize("text", ["", "x = 1", '""', "# a comment"])
def test_a_module_without_a_docstring_has_no_first_line(text: str) -> None:
    assert sources.parsed("mcpwrap/x.py", text).first_line is None


def test_a_tree_is_read_in_order(tmp_path: Path) -> None:
    tree = trees.write(tmp_path, {**trees.TEXTS, "tests/x.py": "", "docs/conf.py": ""})
    assert [one.path for one in sources.read(tree)] == sorted(trees.TEXTS)
    assert [one.path for one in sources.read(tree, ("tests", "absent"))] == ["tests/x.py"]

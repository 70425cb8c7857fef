"""Source trees of a few modules, for the tests of `tests/project/`."""

from pathlib import Path

from tests.project import sources
from tests.project.graph import Pair
from tests.project.sources import Module

PYPROJECT = """
[tool.importlinter]
root_package = "mcpwrap"
include_external_packages = true

[[tool.importlinter.contracts]]
name = "Data flows down"
type = "layers"
layers = ["mcpwrap.cli | mcpwrap.as_root", "mcpwrap.core", "mcpwrap.errors"]

[[tool.importlinter.contracts]]
name = "core is alone"
type = "forbidden"
source_modules = ["mcpwrap.core"]
forbidden_modules = ["socket"]
"""
TEXTS = {
    "mcpwrap/__init__.py": '"""Wrapper of servers."""',
    "mcpwrap/errors.py": '"""Errors."""',
    "mcpwrap/as_root/__init__.py": '"""RUNS AS ROOT: changes of the machine."""',
    "mcpwrap/as_root/main.py": '"""Program."""\nfrom mcpwrap.core import names',
    "mcpwrap/cli/__init__.py": '"""RUNS AS THE CALLER: commands."""',
    "mcpwrap/cli/main.py": (
        '"""Commands."""\nfrom mcpwrap.core.gate import calls\nimport mcpwrap.errors'
    ),
    "mcpwrap/core/__init__.py": '"""PURE: decisions."""',
    "mcpwrap/core/gate/__init__.py": '"""Calls <and> "answers"."""',
    "mcpwrap/core/gate/calls.py": '"""Calls."""\nfrom mcpwrap.core import names',
    "mcpwrap/core/names.py": '"""Names."""\nfrom mcpwrap import errors',
}


def write(tree: Path, texts: dict[str, str], pyproject: str = PYPROJECT) -> Path:
    """Write the files of a tree, and return it."""
    for name, text in {**texts, "pyproject.toml": pyproject}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return tree


def pairs(text: str) -> list[Pair]:
    """Return the arrows of a text such as `ab bc`."""
    return [(one[0], one[1]) for one in text.split()]


def modules(texts: dict[str, str]) -> list[Module]:
    """Return the modules of some texts, without files."""
    return [sources.parsed(path, text) for path, text in texts.items()]

"""Version of this installation: of mcpwrap, its package, its commit, and its Python."""

import platform
from pathlib import Path

import msgspec

import mcpwrap
from mcpwrap import __version__

PYTHON = platform.python_version()
# Written by packaging/stage.py. A tree or a wheel has none.
_BUILD_FILE = Path(mcpwrap.__file__).with_name("build.json")


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """Package and commit of an installation."""

    package: str = "from source"
    commit: str = ""


def build() -> Build:
    """Return package and commit, as the build of the package wrote them."""
    try:
        return msgspec.json.decode(_BUILD_FILE.read_bytes(), type=Build)
    except FileNotFoundError:
        return Build()


def version_text() -> str:
    """Return the line of `mcpwrap --version`."""
    found = build()
    commit = f", commit {found.commit}" if found.commit else ""
    return f"mcpwrap {__version__} ({found.package}{commit}, Python {PYTHON})"

"""`make pins`: write pip's packages to tests/constraints.txt. RUNS AS ROOT on the test host.

Shipped packages stay as in packaging/site.txt, and packages with a version in
tests/requirements.txt or in a recipe of the bed stay at that version; the rest is the newest. A
recipe's `*.lock.txt` has all packages of one environment, and is written by hand.
"""

import re
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from tests.system.bed import roots

TOP = Path(__file__).resolve().parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==(\S+)", re.MULTILINE)
HEADER = """\
# What pip brings into .venv and into the roots of the bed beside what is named with its version
# elsewhere: a release of today changes no run. Written by `make pins`.
"""


def main() -> None:
    """Build all roots that use pip, read the installed packages, and write them down."""
    roots.need_root("make pins")
    shipped = pins(TOP / "packaging/site.txt")
    named = {"mcpwrap", "pip"}
    for path in (TOP / "tests/requirements.txt", *roots.RECIPES.iterdir()):
        if not path.name.endswith(".lock.txt"):
            named |= pins(path).keys()
    found = dict(brought())
    kept = {name: version for name, version in found.items() if name not in named} | shipped
    lines = [f"{name}=={version}\n" for name, version in sorted(kept.items())]
    roots.PIP_CONSTRAINTS.write_text(HEADER + "".join(lines))
    print(f"tests/constraints.txt: {len(lines)} pins")


def pins(path: Path) -> dict[str, str]:
    """Return the versions that a file names, by normalized name (PEP 503)."""
    return {normalized(name): version for name, version in PIN.findall(path.read_text())}


def normalized(name: str) -> str:
    """Return a distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def brought() -> Iterator[tuple[str, str]]:
    """Yield name and version of every package that pip installed, the older release's last."""
    yield from _in_folder(TOP / ".venv")
    for suite in reversed(roots.SUITES):
        yield from _in_folder(roots.ensure(roots.run_root(suite)).path / "opt/mcp")
        yield from _in_folder(roots.ensure(roots.browser_root(suite)).path / "opt/browser")
    # Last, for its setuptools: that of the other roots came with Python.
    for suite in reversed(roots.SUITES):
        for wheel in (roots.ensure(roots.trial_root(suite)).path / "opt/trial/wheels").iterdir():
            name, version, *_ = wheel.name.split("-")
            yield normalized(name), version


def _in_folder(folder: Path) -> Iterator[tuple[str, str]]:
    for each in distributions(path=[str(path) for path in folder.rglob("site-packages")]):
        yield normalized(each.name), each.version


if __name__ == "__main__":
    main()

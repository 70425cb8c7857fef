"""Imports between the modules of a tree, and its import contracts, kept or broken.

    python -m tests.project.imports TREE

prints them as JSON, in a process of its own: grimp finds a package as `import` does, and the
caller may have imported that of another tree.
"""

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grimp
from importlinter import Contract, api
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

from tests.project.sources import PACKAGE

TOP = Path(__file__).resolve().parents[2]
TYPES: dict[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}


@dataclass(frozen=True)
class Verdict:
    """Import contract of pyproject.toml, and whether the tree keeps it."""

    name: str
    is_kept: bool
    problem: str = ""  # of a contract that cannot be checked, such as one of a module that is gone


@dataclass(frozen=True)
class Imports:
    """Imports of a tree, as pairs of importer and imported; layers are highest first."""

    pairs: tuple[tuple[str, str], ...]
    verdicts: tuple[Verdict, ...]
    layers: tuple[tuple[str, ...], ...]


class UnreadableTreeError(Exception):
    """Tree whose imports cannot be read, with the reason."""


def read(tree: Path) -> Imports:
    """Return the imports of a tree.

    Raises:
        UnreadableTreeError: it has no package, no pyproject.toml, or a file that is not Python.
    """
    argv = [sys.executable, "-m", "tests.project.imports", str(tree.resolve())]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True)
    if done.returncode:
        raise UnreadableTreeError(f"cannot read the imports of {tree}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    return Imports(
        pairs=tuple((importer, imported) for importer, imported in found["pairs"]),
        verdicts=tuple(Verdict(**verdict) for verdict in found["verdicts"]),
        layers=tuple(tuple(layer) for layer in found["layers"]),
    )


def layer_names(contract: dict[str, Any]) -> list[list[str]]:
    """Return the full names in each layer of a contract of the type `layers`.

    Source: import-linter's manual, "Layers": `|` and `:` part siblings, `(x)` is optional.
    """
    prefixes = [f"{container}." for container in contract.get("containers", [])] or [""]
    return [
        [
            prefix + name.strip(" ()")
            for prefix in prefixes
            for name in layer.replace(":", "|").split("|")
        ]
        for layer in contract["layers"]
    ]


def verdict(contract: dict[str, Any], session: dict[str, Any], graph: grimp.ImportGraph) -> Verdict:
    """Return whether a graph keeps a contract; the graph may be changed by that."""
    try:
        made = TYPES[contract["type"]](contract["name"], session, contract)
        return Verdict(contract["name"], made.check(graph, verbose=False).kept)
    except Exception as error:  # noqa: BLE001 - a contract of modules that moved is a finding
        return Verdict(contract["name"], is_kept=False, problem=str(error) or repr(error))


def built(tree: Path) -> Imports:
    """Return the imports of a tree, for a process that has imported nothing of any tree."""
    sys.path.insert(0, str(tree))
    configured = api.read_configuration(str(tree / "pyproject.toml"))
    graph = grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)
    contracts = configured["contracts_options"]
    session = configured["session_options"]
    pairs = sorted(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if imported == PACKAGE or imported.startswith(f"{PACKAGE}.")
    )
    layered = [layer_names(one) for one in contracts if one["type"] == "layers"]
    return Imports(
        pairs=tuple(pairs),
        verdicts=tuple(verdict(one, session, deepcopy(graph)) for one in contracts),
        layers=tuple(tuple(layer) for layers in layered for layer in layers),
    )


def main() -> None:
    """Print the imports of the tree that is the first argument."""
    print(json.dumps(asdict(built(Path(sys.argv[1])))))


if __name__ == "__main__":
    main()

"""Shims of version managers, laid out as the managers do in a home."""

from pathlib import Path

import pytest

from mcpwrap.machine.agent_files.programs import resolve_shim
from tests.unit.machine.agent_files.program_files import link, script


@pytest.mark.parametrize(
    ("shim", "programs", "expected"),
    [
        (".asdf/shims/npx", [".asdf/installs/nodejs/22.1.0/bin/npx"], 0),
        ("mise/shims/npx", ["mise/installs/node/22.1.0/bin/npx"], 0),
        (
            "mise/shims/npx",
            ["mise/installs/node/20/bin/npx", "mise/installs/node/22/bin/npx"],
            None,
        ),
        (".volta/bin/npx", [".volta/tools/image/node/22.1.0/bin/npx"], 0),
        (".volta/bin/x", [".volta/tools/image/packages/@of/x/bin/x"], 0),
        (".volta/bin/x", [], None),
        (".pyenv/shims/python", [".pyenv/versions/3.12.1/bin/python"], None),  # the system's
        (".nvm/bin/npx", [], "itself"),
    ],
)
def test_what_a_shim_starts(
    tmp_path: Path, shim: str, programs: list[str], expected: int | str | None
) -> None:
    path = script(tmp_path / shim)
    if ".volta" in shim:
        script(path.parent / "volta-shim")
    for program in programs:
        script(tmp_path / program)
    found = str(tmp_path / programs[expected]) if isinstance(expected, int) else None
    assert resolve_shim(path) == (str(path) if expected == "itself" else found)


def test_a_version_with_a_short_name_is_the_same(tmp_path: Path) -> None:
    program = script(tmp_path / "mise/installs/node/22.1.0/bin/npx")
    link(tmp_path / "mise/installs/node/22", "./22.1.0")
    assert resolve_shim(script(tmp_path / "mise/shims/npx")) == str(program)


@pytest.mark.parametrize(
    ("said", "is_found"), [("3.12.1\n", True), ("system\n", False), ("", False), ("../x", False)]
)
def test_the_version_that_a_file_names(tmp_path: Path, said: str, *, is_found: bool) -> None:
    shim = script(tmp_path / ".pyenv/shims/python")
    program = script(tmp_path / ".pyenv/versions/3.12.1/bin/python")
    script(tmp_path / ".pyenv/versions/3.13.0/bin/python")
    (tmp_path / ".pyenv/version").write_text(said)
    assert resolve_shim(shim) == (str(program) if is_found else None)

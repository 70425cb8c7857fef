"""Ordinary programs: code as agents write it gives the results that it gives anywhere else."""

import pytest

from tests.system.bed.machine import Machine
from tests.system.execution import science
from tests.system.execution.ordinary_programs import PROGRAMS, Program
from tests.system.support.python_servers import RunResult, run_all
from tests.system.support.tiers import only_in_test_all

STAGE = science.booted
pytestmark = only_in_test_all("a root of its own: numpy, pandas and matplotlib")


@pytest.fixture(scope="module")
def results(stage: Machine) -> dict[str, RunResult]:
    """Execute all programs in one session: each starts empty all the same."""
    calls = [{"code": each.code, "files": dict(each.files)} for each in PROGRAMS.values()]
    return dict(zip(PROGRAMS, run_all(stage, calls), strict=True))


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_elsewhere(name: str, results: dict[str, RunResult]) -> None:
    program, result = PROGRAMS[name], results[name]
    assert not result.is_error, result.text
    assert (result.stdout, result.value) == (program.stdout, program.value), result.stderr
    assert result.exit_code == program.exit_code, result.stderr
    assert_error(program, result)
    assert_files(program, result)
    assert not result.killed
    assert result.cpu_ms > 0


def assert_error(program: Program, result: RunResult) -> None:
    """Compare standard error and hint: the fragments in their order, and nothing of mcpwrap's."""
    if not program.stderr:
        assert result.stderr == ""
    at = 0
    for fragment in program.stderr:
        assert fragment in result.stderr[at:], result.stderr
        at = result.stderr.index(fragment, at) + len(fragment)
    # The stack that a crash of the interpreter leaves has all of its frames.
    assert program.exit_code > 128 or "mcpwrap" not in result.stderr
    hint = result.structured.get("hint", "")
    assert hint.startswith(program.hint) if program.hint else hint == "", hint


def assert_files(program: Program, result: RunResult) -> None:
    """Compare the files of /out by the form in which they came."""
    type_by_name = {file["name"]: file["mimeType"] for file in result.files}
    links = {block["name"] for block in result.content if block["type"] == "resource_link"}
    shown = [f"{name} {kind}" for name, kind in type_by_name.items() if name not in links]
    assert sorted(shown) == sorted(program.images)
    assert sorted(f"{name} {type_by_name[name]}" for name in links) == sorted(program.links)
    types = [block["mime_type"] for block in result.content if block["type"] == "image"]
    assert types == [image.rpartition(" ")[2] for image in program.images]

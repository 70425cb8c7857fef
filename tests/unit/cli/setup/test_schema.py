"""`mcpwrap schema` as typed."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mcpwrap.cli.setup.schema import command
from mcpwrap.config.json_schema import SCHEMAS


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_printed(kind: str) -> None:
    found = CliRunner().invoke(command, [kind], standalone_mode=False)
    assert found.return_value == 0
    assert json.JSONDecoder().decode(found.output) == SCHEMAS[kind]()


def test_making_the_schemas_leaves_memory_sound() -> None:
    """msgspec frees memory twice for some unions, which aborts the process when it ends."""
    made = "from mcpwrap.config.json_schema import SCHEMAS as s; [one() for one in s.values()]"
    env = {"PYTHONMALLOC": "debug", "PYTHONPATH": str(Path(__file__).parents[4])}
    subprocess.run([sys.executable, "-c", made], env=env, check=True)


def test_another_kind_is_none() -> None:
    found = CliRunner().invoke(command, ["audit"], standalone_mode=False)
    assert isinstance(found.exception, click.BadParameter)


def test_the_package_has_the_same_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script adds to it
    stage = runpy.run_path(str(Path(__file__).parents[4] / "packaging/stage.py"), run_name="stage")
    stage["put_schemas"](tmp_path)
    for kind, schema in SCHEMAS.items():
        staged = (tmp_path / f"usr/share/mcpwrap/schema/{kind}.json").read_text()
        assert json.JSONDecoder().decode(staged) == schema()
    for example in Path(__file__).parents[4].glob("examples/**/*.*"):
        if ".cases" not in example.name:
            assert "/usr/share/mcpwrap/schema/" in example.read_text().partition("\n")[0]

"""Definition of the tool: what a model reads before its first call."""

from typing import Any

import pytest

from mcpwrap.core.execution import tool
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.core.wire.execution.worker_file import RunLimits

LIMITS = RunLimits()
FORTY = {f"p{n:02}": "1" for n in range(40)}
MANY = FORTY | {"p40": "1"}


def described(**given: Any) -> str:
    return tool.description(
        RunEnvironment(**{"limits": LIMITS, "python_version": "3.11.2", **given})
    )


def test_the_first_sentence_is_about_state() -> None:
    assert described().startswith("Every call starts empty; carry files by `files`")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "Runs Python 3.11.2 code"),
        ({"python_version": ""}, "Runs Python code"),
        ({}, "Installed: the standard library. No other packages can be added."),
        ({"packages": ("pandas>=2",)}, "Installed: the standard library, pandas>=2. No other"),
        ({"packages": ("pandas>=2",), "version_by_package": {"pandas": "2.2.3", "NumPy": "2.1"}},
         "Installed: the standard library, NumPy 2.1, pandas 2.2.3. No other"),
        ({"packages": ("a",), "version_by_preinstalled": {"six": "1.16"}}, "library, a, six 1.16."),
        ({"version_by_package": {"a-b": "2"}, "version_by_preinstalled": {"c": "1", "A.b": "1"}},
         "library, a-b 2, c 1. No other"),
        ({"version_by_preinstalled": MANY}, "p39 1. importlib.metadata lists all. No other"),
        ({"version_by_preinstalled": FORTY}, "p39 1. No other"),
        ({"version_by_package": MANY}, "p39 1. importlib.metadata lists all. No other"),
        ({"version_by_package": {"a": "1"}, "version_by_preinstalled": MANY}, "p39 1. importlib"),
        ({"version_by_preinstalled": None},
         "packages of another machine's interpreter, which importlib.metadata lists. No other"),
        ({"can_install": True}, "`packages` adds others for one call"),
        ({}, "Limits: 60 s, 512 MiB of memory, 100 % of one processor, 256 processes and threads,"),
        ({}, " code 64 KiB, output 256 KiB (head and tail are kept), `files` 8 MiB, 2 runs at"),
        ({"limits": RunLimits(code_bytes=1000)}, "code 1000 bytes"),
    ],
)  # fmt: skip
def test_the_description_states_what_there_is(given: dict[str, Any], text: str) -> None:
    assert text in described(**given)


@pytest.mark.parametrize("can_install", [False, True])
def test_packages_are_an_argument_where_they_can_be_added(*, can_install: bool) -> None:
    environment = RunEnvironment(limits=LIMITS, python_version="", can_install=can_install)
    schema: Any = tool.input_schema(environment)
    assert ("packages" in schema["properties"]) is can_install
    assert schema["required"] == ["code"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("revision", "has_schema"),
    [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True), ("2026-07-28", True)],
)
def test_an_output_schema_is_of_later_revisions(revision: str, *, has_schema: bool) -> None:
    definition = tool.definition(RunEnvironment(limits=LIMITS, python_version=""), revision)
    assert ("outputSchema" in definition) is has_schema
    assert definition["name"] == "run_python"

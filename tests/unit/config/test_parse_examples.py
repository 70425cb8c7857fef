"""Installed examples: the configuration is valid, and each policy passes its cases."""

from pathlib import Path

import pytest

from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.policy.cases import difference
from mcpwrap.core.policy.compiled import compile_policy

EXAMPLE = Path(__file__).parents[3] / "examples/config.toml"


def test_the_example_configuration_is_one() -> None:
    assert parse([SourceFile("config.toml", EXAMPLE.read_bytes())]).servers


POLICIES = sorted(
    path for path in (EXAMPLE.parent / "policies").iterdir() if ".cases" not in path.name
)


def file(path: Path) -> SourceFile:
    return SourceFile(path.name, path.read_bytes())


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_an_example_of_a_policy_does_what_its_cases_say(path: Path) -> None:
    policy = parse_policy([file(path)])
    cases = parse_cases(file(path.with_suffix(".cases.yaml")))
    for case in cases:
        assert difference(compile_policy(policy, case.server), case) == "", case.name
    decided = {case.rule for case in cases}
    blocking = {rule.name for rule in policy.rules if rule.action in {"block", "hide"}}
    assert len(cases) > len(blocking)
    assert decided & blocking


def test_examples_can_be_used_together_but_for_what_stands_in_one_file() -> None:
    names = [rule.name for path in POLICIES for rule in parse_policy([file(path)]).rules]
    assert len(names) == len(set(names))

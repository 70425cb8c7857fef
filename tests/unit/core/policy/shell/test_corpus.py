"""Corpus of command lines under the default policy, before and after it."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_default_policy
from mcpwrap.core.policy.rules import ArgumentCondition, Shell
from mcpwrap.core.policy.shell.judge import judge_shell
from mcpwrap.core.policy.tristate import FAILS
from tests.shared import shell_corpus

POLICY = Path(__file__).parents[5] / "mcpwrap/machine/default_policy/policy.yaml"

HONEST = 232
HARMFUL = {
    "recursive-delete": 85, "force-push": 25, "database-reset": 45, "infrastructure-destroy": 36,
    "sql-by-shell": 16,
}  # fmt: skip


@pytest.fixture(scope="module")
def tests_by_rule() -> dict[str, Shell]:
    """Return the shell tests of the default policy, for a server with workspaces."""
    policy = parse_default_policy(SourceFile(str(POLICY), POLICY.read_bytes()))
    return {
        rule.name.removeprefix("default."): replace(
            condition.test, workspaces=shell_corpus.WORKSPACES
        )
        for rule in policy.rules
        for condition in rule.when
        if isinstance(condition, ArgumentCondition) and isinstance(condition.test, Shell)
    }


def _held_by(text: str, tests: dict[str, Shell]) -> list[str]:
    return [name for name, test in tests.items() if judge_shell(text, test) is not FAILS]


def test_honest_lines_pass(tests_by_rule: dict[str, Shell]) -> None:
    held = {text: _held_by(text, tests_by_rule) for text in shell_corpus.honest()}
    assert {text: rules for text, rules in held.items() if rules} == {}


def test_harmful_lines_are_held_by_their_rule(tests_by_rule: dict[str, Shell]) -> None:
    wrong = [
        (rule, text, found)
        for rule, text in shell_corpus.harmful()
        if (found := _held_by(text, tests_by_rule)) != [rule]
    ]
    assert wrong == []


def test_the_table_of_the_design_page() -> None:
    """Before the default policy nothing was held: no rule judged command lines."""
    by_rule = Counter(rule for rule, _ in shell_corpus.harmful())
    assert len(shell_corpus.honest()) == HONEST
    assert by_rule == HARMFUL

"""Shell tests of a policy, decided by the text of a command line alone.

They guard against accidents: a program can do what its name and its arguments do not say.
"""

import functools
import re
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    NegatedCondition,
    NegatedTest,
    Rule,
    Shell,
)
from mcpwrap.core.policy.shell import database_clients, deletions, pushes
from mcpwrap.core.policy.shell.database_clients import drops_data
from mcpwrap.core.policy.shell.deletions import deletes_outside
from mcpwrap.core.policy.shell.patterns import CommandPatterns
from mcpwrap.core.policy.shell.pushes import forces_a_push
from mcpwrap.core.policy.shell.trace import Invocation, trace
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate

MAX_HIT_CHARS = 120
_NOT_PRINTED = re.compile(r"[^\x20-\x7e]+")


def judge_shell(untrusted_text: str, test: Shell) -> Tristate:
    """Return whether the test holds for a command of the text. It never raises.

    A text that cannot be parsed is not judged if it has the words of what the test is about.
    """
    line = trace(untrusted_text)
    if any(map(_judge(test), line.invocations)):
        return HOLDS
    return FAILS if line.is_whole or not _has_words(untrusted_text, test) else UNJUDGEABLE


def shell_hit(untrusted_text: str, test: Shell) -> str:
    """Return the command for which the test holds, on one line, in printable ASCII; or ""."""
    runs = filter(_judge(test), trace(untrusted_text).invocations)
    source = next((run.source for run in runs), "")
    text = " ".join(_NOT_PRINTED.sub(" ", source.replace("\\\n", "")).split())
    return text if len(text) <= MAX_HIT_CHARS else f"{text[: MAX_HIT_CHARS - 3]}..."


def with_workspaces(rule: Rule, workspaces: tuple[str, ...]) -> Rule:
    """Return a rule whose shell tests know the folders in which the server may delete."""
    if not workspaces or not any(_shell_test(condition) for condition in rule.when):
        return rule
    return replace(rule, when=tuple(_placed(condition, workspaces) for condition in rule.when))


def _shell_test(condition: Condition) -> Shell | None:
    about = condition.condition if isinstance(condition, NegatedCondition) else condition
    test = about.test.test if isinstance(about.test, NegatedTest) else about.test
    return test if isinstance(test, Shell) else None


def _placed(condition: Condition, workspaces: tuple[str, ...]) -> Condition:
    if isinstance(condition, NegatedCondition):
        return NegatedCondition(_placed_argument(condition.condition, workspaces))
    return _placed_argument(condition, workspaces)


def _placed_argument(
    condition: ArgumentCondition, workspaces: tuple[str, ...]
) -> ArgumentCondition:
    test = _shell_test(condition)
    if test is None:
        return condition
    placed = replace(test, workspaces=workspaces)
    negated = isinstance(condition.test, NegatedTest)
    return replace(condition, test=NegatedTest(placed) if negated else placed)


def _judge(test: Shell) -> Callable[[Invocation], bool]:
    match test.test:
        case "runs":
            return _patterns(test.commands).match
        case "forces_a_push":
            return forces_a_push
        case "deletes_outside":
            return lambda run: deletes_outside(run, test.workspaces)
        case "drops_data":
            return drops_data
        case _:
            assert_never(test.test)


def _has_words(text: str, test: Shell) -> bool:
    match test.test:
        case "runs":
            return _patterns(test.commands).occur_in(text)
        case "forces_a_push":
            return _has_any(text, pushes.WORDS)
        case "deletes_outside":
            return _has_any(text, deletions.WORDS)
        case "drops_data":
            return _has_any(text, database_clients.WORDS)
        case _:
            assert_never(test.test)


def _has_any(text: str, alternatives: tuple[tuple[str, ...], ...]) -> bool:
    return any(
        all(re.search(rf"(?<![\w-]){re.escape(word)}", text) for word in words)
        for words in alternatives
    )


@functools.lru_cache(maxsize=32)
def _patterns(texts: tuple[str, ...]) -> CommandPatterns:
    return CommandPatterns(texts)

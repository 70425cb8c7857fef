"""`make default-policy`: write policy.json from the default policy's YAML, and play its cases."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.policy.parse import parse_default_policy
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH
from mcpwrap.core.policy.cases import Case, difference
from mcpwrap.core.policy.compiled import CALL, CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.default_policy import with_default_policy
from mcpwrap.core.policy.rules import ArgumentCondition, Condition, Policy, Rule
from mcpwrap.machine.default_policy import shipped
from tests.project.imports import TOP
from tests.project.names import Breach

FOLDER = "mcpwrap/machine/default_policy"
ACTIONS = {"block", "allow_with_approval"}


def policy_of(tree: Path) -> Policy:
    """Return the default policy as its YAML in a tree has it."""
    path = tree / FOLDER / shipped.TEXT
    return parse_default_policy(SourceFile(str(path), path.read_bytes()))


def cases_of(tree: Path) -> tuple[Case, ...]:
    """Return the cases of the default policy."""
    path = tree / FOLDER / shipped.CASES
    return parse_cases(SourceFile(str(path), path.read_bytes()))


def text_of(policy: Policy) -> str:
    """Return the content of policy.json."""
    return rules.encode(policy).decode() + "\n"


def _is_of_kind(condition: Condition) -> bool:
    return isinstance(condition, ArgumentCondition) and condition.arg in KIND_BY_PATH


def breaches(policy: Policy, cases: tuple[Case, ...]) -> Iterator[Breach]:
    """Return the rules of another kind, the cases that differ, and the rules without both cases.

    Each rule needs a case that it decides, and one that is like it and passes.
    """
    for rule in policy.rules:
        # `policy replay` relies on that: without arguments it does not apply.
        is_sure = rule.only_if_sure or all(map(_is_of_kind, rule.when))
        if rule.action not in ACTIONS or not rule.tools or not rule.since or not is_sure:
            fix = "write `tool`, `since`, with `arg` also `only_if_sure`, and block or ask"
            yield Breach(f"{FOLDER}/{shipped.TEXT}", 1, f"{rule.name}: not supported", fix)
    compiled = {
        case.server: compile_policy(with_default_policy(Policy(), policy), case.server)
        for case in cases
    }
    for case in cases:
        if text := difference(compiled[case.server], case):
            fix = "correct the case or the rule"
            yield Breach(f"{FOLDER}/{shipped.CASES}", 1, f"{case.name}: {text}", fix)
    passing = [case for case in cases if _passes(compiled[case.server], case)]
    for rule in policy.rules:
        yield from _without_cases(rule, cases, passing)


def _without_cases(rule: Rule, cases: tuple[Case, ...], passing: list[Case]) -> Iterator[Breach]:
    decided = [case for case in cases if case.rule == rule.name]
    if not decided:
        problem, fix = "no case that it decides", f"write one, with `rule: {rule.name}`"
    elif not any(_is_like(rule, one, other) for one in decided for other in passing):
        problem, fix = "no case that it leaves alone", "write one of the same server and tool"
    else:
        return
    yield Breach(f"{FOLDER}/{shipped.CASES}", 1, f"{rule.name} has {problem}", fix)


def _is_like(rule: Rule, one: Case, other: Case) -> bool:
    """Return whether two cases differ in what the rule is about: arguments, or the tool's name."""
    is_same_tool = one.params.get("name") == other.params.get("name")
    return one.server == other.server and (is_same_tool or not rule.when)


def _passes(judge: CompiledPolicy, case: Case) -> bool:
    return case.method == CALL and judge.judge(CALL, case.params).decision is Decision.ALLOW


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if the file is not current, or a case is wrong or missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--tree", type=Path, default=TOP)
    options = parser.parse_args(arguments)
    policy = policy_of(options.tree)
    found = list(breaches(policy, cases_of(options.tree)))
    target = options.tree / FOLDER / shipped.ENCODED
    text = text_of(policy)
    if not options.check:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        fix = "run `make default-policy`"
        found.append(Breach(f"{FOLDER}/{shipped.ENCODED}", 1, "not that of the YAML", fix))
    for breach in found:
        print(breach, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

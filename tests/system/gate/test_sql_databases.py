"""SQL that the gate classifies as bounded or harmless, run by the databases of its dialects."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.statements import MAX_ROWS, judge_sql
from mcpwrap.core.policy.tristate import FAILS
from tests.shared.sql_corpus import DATABASES, texts
from tests.system.bed.machine import Machine
from tests.system.gate import databases
from tests.system.support.tiers import only_in_test_all

STAGE = databases.booted
pytestmark = [
    only_in_test_all(
        "three databases, for what the tables of tests/unit/core/policy/sql/test_statements.py say"
    ),
    pytest.mark.parametrize("dialect", DATABASES),
]
# A row of `t` has 120 characters. A value of all rows has 2 MB, and 20 000 numbers have 100 000.
SIZES = ("rows", "markers", "largest")
MAX_VALUE_CHARS = 25_000
# Arguments with which an aggregate may collect, and with which a function may make rows.
ARGUMENTS = [
    "s",
    "id",
    "s, ','",
    "id, s",
    "s, id",
    "s, 20000",
    "s, id, 20000",
    "1, 20000",
    "t",
    "*",
]
FORMS = ["SELECT {} FROM t", "SELECT {} FROM t LIMIT 1", "SELECT {}", "SELECT * FROM {} LIMIT 1"]
NOTATION = ["SELECT t.{} FROM t LIMIT 1", "SELECT t.{} FROM t"]  # PostgreSQL's, of a call


def verdicts(text: str, dialect: Dialect) -> set[str]:
    """Return the conditions that do not hold, by the gate's judgement."""
    tests: tuple[SqlTest, ...] = get_args(SqlTest)
    return {test for test in tests if judge_sql(text, test, dialect) is FAILS}


def too_much(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer has more rows than the bound, or values of more than a row."""
    most = max(answer["rows"], answer["markers"])
    return most > MAX_ROWS or int(answer["largest"]) > MAX_VALUE_CHARS


def wrongly_denied(denied: set[str], answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions that did hold, by the state of the tables.

    A table without rows may be one that was deleted from, updated or truncated.
    """
    left = answer["left"]
    names = {row[0] for row in left["names"] or ()}
    rows, as_they_were = left["t"][0][:2] if left["t"] else ("none", "none")
    if "unbounded_select" in denied and too_much(answer):
        yield "unbounded_select"
    if "writes" in denied and answer["is_changed"]:
        yield "writes"
    if "drop" in denied and not {"t", "u"} <= names:
        yield "drop"
    if {"drop", "delete_without_where"} <= denied and rows == "0":
        yield "delete_without_where"
    if {"drop", "delete_without_where", "update_without_where"} <= denied and as_they_were == "0":
        yield "update_without_where"


def report(machine: Machine, dialect: Dialect, run: int, bounded: list[dict[str, Any]]) -> None:
    """Print the largest results of texts classified as bounded."""
    most = [max((answer[key] for answer in bounded), default=0) for key in SIZES]
    print(
        f"{machine.suite} {dialect}: {run} run, {len(bounded)} bounded, at most",
        *zip(most, SIZES, strict=True),
    )


def violations(machine: Machine, dialect: Dialect, run: list[str]) -> list[str]:
    """Run the texts denied a condition by the gate; return where the database disagrees."""
    denied = {text: found for text in run if (found := verdicts(text, dialect))}
    answers = dict(zip(denied, databases.answers(machine, dialect, list(denied)), strict=True))
    bounded = [answers[text] for text in denied if "unbounded_select" in denied[text]]
    report(machine, dialect, len(denied), bounded)
    return [
        f"{wrong}: {text} -> {answers[text]}"
        for text, found in denied.items()
        for wrong in wrongly_denied(found, answers[text])
    ]


def test_what_people_write_is_called_bounded_and_runs(machine: Machine, dialect: Dialect) -> None:
    ordinary = texts("ordinary", dialect)
    assert [text for text in ordinary if "unbounded_select" not in verdicts(text, dialect)] == []
    told = dict(zip(ordinary, databases.answers(machine, dialect, ordinary), strict=True))
    assert {text: answer["error"] for text, answer in told.items() if answer["error"]} == {}
    assert [text for text, answer in told.items() if not answer["rows"]] == []
    assert [text for text, answer in told.items() if too_much(answer)] == []
    report(machine, dialect, len(told), list(told.values()))


def test_nothing_hostile_passes_for_bounded_or_harmless(machine: Machine, dialect: Dialect) -> None:
    hostile = texts("hostile", dialect)
    assert violations(machine, dialect, hostile) == []
    refused = [text for text in hostile if not verdicts(text, dialect) & {"unbounded_select"}]
    told = databases.answers(machine, dialect, refused)
    assert sum(map(too_much, told)) >= 10  # the twin: without the gate the database does it
    print(f"{machine.suite} {dialect}: {sum(map(too_much, told))} of {len(refused)} are too much")


def test_no_function_of_the_database_collects_unseen(machine: Machine, dialect: Dialect) -> None:
    """Each name in its catalogue, called in several ways."""
    names = databases.functions(machine, dialect)
    calls = [f"{name}({arguments})" for name in names for arguments in ARGUMENTS]
    run = [form.format(call) for call in calls for form in FORMS]
    run += [form.format(name) for name in names for form in NOTATION]
    bounded = [text for text in run if judge_sql(text, "unbounded_select", dialect) is FAILS]
    told = dict(zip(bounded, databases.read(machine, dialect, bounded), strict=True))
    report(machine, dialect, len(told), list(told.values()))
    assert {text: answer for text, answer in told.items() if too_much(answer)} == {}

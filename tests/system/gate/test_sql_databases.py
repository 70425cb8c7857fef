"""SQL that the gate classifies as bounded or harmless, run by the databases of its dialects."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.rows import MAX_ROWS
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.tristate import FAILS, HOLDS
from tests.shared.sql_corpus import DATABASES, texts
from tests.system.bed.machine import Machine
from tests.system.gate import databases
from tests.system.guest import shop
from tests.system.support.tiers import only_in_test_all

STAGE = databases.booted
REASON = "four databases, for what the tables of tests/unit/core/policy/sql/test_statements.py say"
OF_EACH = pytest.mark.parametrize("dialect", DATABASES)
IN_TEST_ALL = only_in_test_all(REASON)
# The fast tier has one of them.
OF_ONE = pytest.mark.parametrize(
    "dialect",
    ["sqlite", *(pytest.param(one, marks=IN_TEST_ALL) for one in DATABASES if one != "sqlite")],
)
# Errors of a database if the account has no right, or if what a statement reaches is not there.
REFUSED_THERE = re.compile(
    r"denied|permission|must be (?:superuser|owner|able)|not allowed|does not exist|not authorized"
    r"|cannot open|unable to open|no such (?:function|table|column)|secure.file.priv|disabled"
    r"|INSTALL"
    r"|HTTP|IO Error|could not|not exist|no privileges|only.*superuser|Unknown|read-only|must have"
    r"|can't|dependencies|Dependency|depend|only roles|Failed",
    re.IGNORECASE,
)
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


@IN_TEST_ALL
@OF_EACH
def test_what_people_write_is_called_bounded_and_runs(machine: Machine, dialect: Dialect) -> None:
    ordinary = texts("ordinary", dialect)
    assert [text for text in ordinary if "unbounded_select" not in verdicts(text, dialect)] == []
    told = dict(zip(ordinary, databases.answers(machine, dialect, ordinary), strict=True))
    assert {text: answer["error"] for text, answer in told.items() if answer["error"]} == {}
    assert [text for text, answer in told.items() if not answer["rows"]] == []
    assert [text for text, answer in told.items() if too_much(answer)] == []
    report(machine, dialect, len(told), list(told.values()))


@IN_TEST_ALL
@OF_EACH
def test_nothing_hostile_passes_for_bounded_or_harmless(machine: Machine, dialect: Dialect) -> None:
    hostile = texts("hostile", dialect)
    assert violations(machine, dialect, hostile) == []
    refused = [text for text in hostile if not verdicts(text, dialect) & {"unbounded_select"}]
    told = databases.answers(machine, dialect, refused)
    assert sum(map(too_much, told)) >= 10  # the twin: without the gate the database does it
    print(f"{machine.suite} {dialect}: {sum(map(too_much, told))} of {len(refused)} are too much")


@IN_TEST_ALL
@OF_EACH
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


NO_HARM: dict[str, str] = {  # harmful by its form alone, and why
    """SELECT * FROM customers WHERE "id" = 'id'""": "the table has such a column",
    "drop view if exists recent": "a view has no rows of its own, and the shop has none",
    "SELECT * FROM customers WHERE id = 0": "here it is a number; of MySQL's texts most equal 0",
    "SELECT * FROM pg_stats": "it has values of tables that were analysed, and these were not",
    "ALTER TABLE customers ALTER COLUMN name TYPE text": "the state has no types of columns",
    "ALTER TABLE customers MODIFY name TEXT": "the state has no types of columns",
    "ALTER DATABASE alice SET work_mem = '1GB'": "it changes a setting of the database",
}
PARAMETERS = re.compile(r"\$\d|\?|:[a-z]")
RULES: tuple[SqlTest, ...] = ("unbounded_select", "calls_outside", "delete", "drop", "alter")


def harm(test: SqlTest, answer: Mapping[str, Any]) -> bool:
    """Return whether a statement did what a test is for."""
    match test:
        case "unbounded_select":
            return max(int(answer["rows"]), int(answer["emails"])) >= shop.ROWS
        case "delete" | "drop":
            return bool(answer["lost"] or answer["columns"])
        case "alter":
            return bool(answer["columns"])
        case _:
            return not answer["error"]


@OF_ONE
def test_what_agents_write_runs_there(machine: Machine, dialect: Dialect) -> None:
    """The corpus of honest work, but for texts with parameters, and what passes reads no table."""
    honest = [text for text in texts("honest", dialect) if not PARAMETERS.search(text)]
    told = dict(zip(honest, databases.shop_answers(machine, dialect, honest), strict=True))
    assert {text: answer["error"] for text, answer in told.items() if answer["error"]} == {}
    passing = [text for text in honest if all(not holds_for_any(text, test) for test in RULES)]
    assert {text: told[text] for text in passing if told[text]["emails"] > shop.ROWS // 4} == {}
    assert {text: told[text] for text in passing if told[text]["lost"]} == {}
    print(f"{machine.suite} {dialect}: {len(honest)} run, {len(passing)} pass")


@OF_ONE
def test_each_harmful_statement_does_harm(machine: Machine, dialect: Dialect) -> None:
    """The twin: what the rules hold does what they are for, unless the database refuses it."""
    harmful = texts("harmful", dialect)
    told = dict(zip(harmful, databases.shop_answers(machine, dialect, harmful), strict=True))
    done, refused, harmless = [], {}, []
    for text, answer in told.items():
        found = [test for test in RULES if holds_for_any(text, test)]
        assert found, text
        if any(harm(test, answer) for test in found):
            done.append(text)
        elif answer["error"] and REFUSED_THERE.search(answer["error"]):
            refused[text] = answer["error"]
        else:
            harmless.append(text)
    print(f"{machine.suite} {dialect}: {len(done)} do harm; none: {harmless}; refused: {refused}")
    assert [text for text in harmless if text not in NO_HARM] == []


def holds_for_any(text: str, test: SqlTest) -> bool:
    """Return whether a test of the default policy holds."""
    return judge_sql(text, test, "any") is HOLDS

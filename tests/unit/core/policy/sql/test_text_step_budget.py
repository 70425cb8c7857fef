"""Bound on SQL parsing: expensive texts are abandoned, by steps and not by a clock."""

import pytest

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.sql.text import (
    GRAMMARS,
    StepLimitError,
    budget_for,
    parse_statement,
    statements,
)
from mcpwrap.core.policy.tristate import HOLDS, UNJUDGEABLE


def steps_of(text: str, dialect: Dialect) -> tuple[int, int]:
    """Return how many tokens a text has, and how many steps it takes."""
    tokens = GRAMMARS[dialect]().tokenize(text)
    budget = budget_for(len(tokens))
    before = budget.steps
    assert parse_statement(tokens, text, dialect, budget) is not None
    return len(tokens), before - budget.steps


@pytest.mark.parametrize("dialect", GRAMMARS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t" + " JOIN t" * 24,
        "SELECT a::" + "STRUCT(" * 24 + "int" + ")" * 24,
        "SELECT a" + ".b()" * 500,
        "SELECT (" + "+".join("a" * 3000) + ")" + ".b()" * 50,
    ],
    ids=["joins", "types", "calls", "calls of a sum"],
)
def test_what_is_read_again_and_again_is_given_up(text: str, dialect: Dialect) -> None:
    with pytest.raises(StepLimitError):
        steps_of(text, dialect)
    assert judge_sql(text, "drop", dialect) is UNJUDGEABLE


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "duckdb"])
def test_elements_of_elements_are_given_up(dialect: Dialect) -> None:
    with pytest.raises(StepLimitError):
        steps_of("SELECT a" + "[1]" * 500, dialect)


def test_the_statements_of_a_text_share_what_it_may_take() -> None:
    one = "SELECT * FROM t" + " JOIN t" * 8 + ";"
    assert judge_sql(one + "DROP TABLE t", "drop", "duckdb") is HOLDS
    assert judge_sql(one * 20 + "DROP TABLE t", "drop", "duckdb") is UNJUDGEABLE


@pytest.mark.parametrize("dialect", GRAMMARS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t " + " ".join(f"JOIN t{n} ON t.id = t{n}.id" for n in range(30)),
        "SELECT * FROM " + "(SELECT * FROM " * 10 + "t" + ") x" * 10,
        "INSERT INTO t (a, b) VALUES " + ",".join("(1, 'x')" for _ in range(100)),
        "SELECT " + ",".join(f"CASE WHEN a > {n} THEN CAST(b AS int) END" for n in range(50)),
        "SELECT " + ",".join(f"s.t.c{n}[1]" for n in range(50)),
        "SELECT " + ",".join(f"pg_catalog.lower(c{n})" for n in range(50)),
    ],
    ids=["joins", "subqueries", "values", "cases", "elements", "calls"],
)
def test_what_people_write_takes_about_a_step_for_each_token(text: str, dialect: Dialect) -> None:
    tokens, steps = steps_of(text, dialect)
    assert steps < 2 * tokens


def test_texts_are_parsed_anew_once_too_many_were_cached() -> None:
    first = statements("SELECT 'first'", "sqlite")
    assert statements("SELECT 'first'", "sqlite") is first
    for number in range(4):
        statements(f"SELECT '{number}{'x' * 90_000}'", "sqlite")
    again = statements("SELECT 'first'", "sqlite")
    assert (again == first, again is first) == (True, False)

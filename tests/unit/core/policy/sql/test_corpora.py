"""SQL tests of the default policy on what agents write, on harm, and on prose."""

from collections import Counter

import pytest

from mcpwrap.core.policy.rules import SqlTest
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.tristate import HOLDS
from tests.shared.sql_corpus import all_texts, phrases

# In the order of the rules of the default policy, which are all `only_if_sure`.
RULES: tuple[SqlTest, ...] = ("unbounded_select", "calls_outside", "delete", "drop", "alter")
PASSES = "passes"
# Work that is meant well and refused: a SELECT that has no LIMIT, no key and no GROUP BY, and one
# that collects five rows in one.
REFUSED = 11
# Prose that is whole SQL: only a tool's name or schema tells it apart.
TAKEN_FOR_SQL = {
    "drop index fund": "drop",
    "select items from cart": "unbounded_select",
    "install postgres": "calls_outside",
    "install httpfs": "calls_outside",
}


def verdict(text: str) -> str:
    return next((test for test in RULES if judge_sql(text, test, "any") is HOLDS), PASSES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("honest", {PASSES: 289, "unbounded_select": REFUSED}),
        ("harmful",
         {"unbounded_select": 63, "calls_outside": 17, "delete": 16, "drop": 20, "alter": 8}),
    ],
)  # fmt: skip
def test_the_table_of_a_corpus(name: str, expected: dict[str, int]) -> None:
    found = Counter(map(verdict, all_texts(name)))
    print(name, dict(found))
    assert found == expected


def test_what_is_refused_of_honest_work_reads_rows_without_a_bound() -> None:
    refused = [text for text in all_texts("honest") if verdict(text) != PASSES]
    assert all(" LIMIT " not in text or "group_concat" in text for text in refused)


def test_of_search_phrases_only_whole_sql_is_judged() -> None:
    found = {text: verdict(text) for text in phrases() if verdict(text) != PASSES}
    assert len(phrases()) >= 200
    assert found == TAKEN_FOR_SQL

"""Values of several calls have a test in common that lets only foreseeable values pass."""

import pytest

from mcpwrap.core.policy.conditions import compiled
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Inside,
    Length,
    Matches,
    OneOf,
    Range,
    Test,
)
from mcpwrap.core.policy.tristate import HOLDS
from mcpwrap.core.policy_review.common_values import (
    common_tests,
    distinct,
    exact_test,
    free_test,
    shape_of,
)
from mcpwrap.core.protocol.json_value import Json

SQL = [f"DELETE FROM sessions WHERE id = {n}" for n in (7, 12, 345)]
PUSHES = [f"git push --force origin {b}" for b in ("fix-1", "topic/x", "wip")]


@pytest.mark.parametrize(
    ("key", "values", "kinds"),
    [
        ("sql", SQL, [Matches]),
        ("sql", SQL[:2], []),  # two are no habit
        ("sql", [*SQL, 5], []),
        ("sql", [*SQL, "DELETE FROM users WHERE id = 1"], []),
        ("sql", ["x" * 501, "y", "z"], []),
        ("title", ["one", "two", "three"], []),  # they have nothing in common
        ("path", ["/home/u/p/a", "/home/u/p/b/c", "/home/u/p/d"], [Inside]),
        ("path", ["/srv/d/r1", "/srv/d/r2", "/srv/d/r3"], [Matches, Inside]),
        ("path", ["/home/u/a", "/home/u/b", "/home/u/c"], []),  # a whole home
        ("path", ["/srv/a", "/srv/b", "/srv/c"], []),
        ("path", ["/etc/x/a", "/etc/x/b", "/etc/x/c"], []),
        ("path", ["/home/u/p/a", "/home/u/p/../b", "/home/u/p/c"], []),
        ("path", ["/home/u/p/a", "b", "c"], []),
        ("path", ["/home/u/p/a", "/home/u/p/a\n", "/home/u/p/c"], []),
        ("command", PUSHES, [Matches]),
        ("command", [*PUSHES, "git fetch origin"], []),  # another subcommand
        ("command", ["ls a", "ls b", "ls c"], []),  # no subcommand
        ("command", ["rm -r a", "rm -r b", "rm -r c"], []),  # an option is not a subcommand
        ("command", ["git push a; x", "git push b", "git push c"], []),
    ],
)
def test_values_have_tests_in_common(key: str, values: list[Json], kinds: list[type]) -> None:
    found = common_tests(key, values)
    assert list(map(type, found)) == kinds
    for test in found:
        assert all(holds(test, value) for value in values)


def holds(test: Test, value: Json) -> bool:
    return compiled(ArgumentCondition("x", test), {})({"x": value}) is HOLDS


@pytest.mark.parametrize(
    ("key", "values", "passes", "held"),
    [
        (
            "sql",
            SQL,
            ["DELETE FROM sessions WHERE id = 999"],
            [
                "DELETE FROM sessions WHERE id = 1 OR 1 = 1",
                "DELETE FROM sessions WHERE id = 1; DROP TABLE x",
                "DELETE FROM sessions WHERE id = 1\n",
                "DELETE FROM sessions WHERE id = 10000",  # the longest had three digits
                "DELETE FROM sessions WHERE id = ",
            ],
        ),
        (
            "command",
            PUSHES,
            ["git push --force origin other", "git push --force origin a/b.c"],
            [
                "git push --force origin main; rm -rf /",
                "git push --force origin $(rm -rf /)",
                "git push --force origin main --mirror",
                "git push --force origin :main",
                "git push --force origin a b",
                "git push --force upstream a",
                "git push --force origin a\nrm -rf /",
                "git push --force origin ../x",
                "git  push --force origin a",
                "git push --force origin a && b",
            ],
        ),
        (
            "command",
            ["npm run a", "npm run b --if-present", "npm run c"],
            ["npm run d", "npm run d --if-present"],
            ["npm run a --prefix /x", "npm run /x", "npm run", "npx run a"],
        ),
        (
            "name",
            ["é.1", "é.2", "é.3"],
            ["é.9"],
            ["éx1", "e.1", "é.100"],
        ),
        ("name", ["a\t1", "a\t2", "a\t3"], ["a\t4"], ["a 4"]),
        ("path", ["/srv/d/x/a", "/srv/d/b", "/srv/d/c"], ["/srv/d/x/y"], ["/srv/e", "/srv/d/../e"]),
    ],
)
def test_a_test_lets_similar_values_pass_alone(
    key: str, values: list[Json], passes: list[Json], held: list[Json]
) -> None:
    test = common_tests(key, values)[0]
    assert all(holds(test, value) for value in [*values, *passes])
    assert [value for value in held if holds(test, value)] == []


@pytest.mark.parametrize(
    ("key", "value", "shape"),
    [
        ("x", 1, ""),
        ("x", "text", ""),
        ("x", "PROJ-12", "PROJ-0"),
        ("path", "/home/u/p/q/file", "/home/u/p"),
        ("path", "/srv/x", "/srv"),
        ("command", "git push x", "git push"),
        ("command", "ls", ""),
        ("command", "git push 'x'", ""),
    ],
)
def test_a_value_has_a_shape(key: str, value: Json, shape: str) -> None:
    assert shape_of(key, value) == shape


@pytest.mark.parametrize(
    ("values", "test"),
    [
        (["a", 1, None], OneOf(('"a"', "1", "null"))),
        (list(range(21)), None),
        (["x" * 501], None),
    ],
)
def test_exact_values(values: list[Json], test: Test | None) -> None:
    assert exact_test(values) == test


@pytest.mark.parametrize(
    ("values", "test"),
    [
        (["a", "b"], Length(None, 200)),
        (["a" * 300, "b"], Length(None, 600)),
        ([1, 2.5], OneOf(("1", "2.5"))),
        (list(range(30)), Range(0, 29)),
        ([True, False], OneOf(("true", "false"))),
        ([[n] for n in range(30)], None),
    ],
)
def test_arguments_that_decide_nothing_have_a_bound(values: list[Json], test: Test | None) -> None:
    assert free_test(values) == test


def test_different_values_keep_their_order() -> None:
    assert distinct([2, 1, 2, True, 1.0, "1"]) == [2, 1, True, 1.0, "1"]

"""Rules that no listed tool meets are named; those that meet one are not."""

import pytest

from mcpwrap.core.policy.arguments.kinds import SQL_ARGUMENTS
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Equals,
    NegatedCondition,
    Policy,
    Rule,
)
from mcpwrap.core.policy_review.live_check import DeadRule, ListedTools, dead_rules
from mcpwrap.core.protocol.json_value import Json

TEST = Equals("1")
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "free": {"type": "object"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "closed": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {}}}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        "either": {"anyOf": [{"type": "string"}, {"properties": {"deep": {}}}]},
        "maybe": {"type": ["object", "null"]},
        "far": {"$ref": "https://example.org/schema"},
        "lost": {"$ref": "#/$defs/none"},
        "loop": {"$ref": "#/$defs/loop"},
        "patterns": {"patternProperties": {"^x": {}}},
    },
    "$defs": {"a": {"type": "object", "properties": {"b": {}}}, "loop": {"$ref": "#/$defs/loop"}},
}
LISTED = ListedTools(
    {
        "db": {"read_query": SCHEMA, "no_schema": True, "no_arguments": {"type": "object"}},
        "git": {"push": {"type": "object", "properties": {"force": {"type": "boolean"}}}},
        "new": None,
    }
)


def rule(**fields: object) -> Rule:
    return Rule(name="r", action="block", **fields)  # type: ignore[arg-type]


def on(path: str, tool: str = "read_query") -> Rule:
    return rule(servers=("db",), tools=(tool,), when=(ArgumentCondition(path, TEST),))


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (rule(servers=("db",), tools=("read_*",)), None),
        (rule(servers=("db", "git"), tools=("push",)), None),
        (rule(servers=("db",), tools=("drop-database",)), "no listed tool is drop-database"),
        (rule(servers=("db",), tools=("a", "b")), "no listed tool is a or b"),
        (rule(servers=("dbs",), tools=("*",)), "no configured server is dbs"),
        (rule(servers=("new",), tools=("x",)), None),  # its tools are not known
        (rule(tools=("x",)), None),  # nor whether that server has one
        (rule(methods=("prompts/get",)), None),
    ],
)
def test_a_rule_meets_a_tool(one: Rule, problem: str | None) -> None:
    assert dead_rules(Policy(rules=(one,)), LISTED) == (
        [] if problem is None else [DeadRule("r", problem)]
    )


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("query", True),
        ("qeury", False),
        ("query.x", False),  # text has no parts
        ("free.any.thing", True),
        ("map.any", True),
        ("closed.a.b", True),
        ("closed.b", False),
        ("list[*].x", True),
        ("list[0].x", True),
        ("list[*].y", False),
        ("pair[*]", True),
        ("query[*]", False),
        ("either.deep", True),
        ("either.other", False),
        ("maybe.x", True),
        ("far.x", True),
        ("lost.x", True),
        ("loop.x", True),
        ("patterns.x", True),
        (SQL_ARGUMENTS, True),
    ],
)
def test_a_condition_is_on_an_argument_of_the_tool(path: str, *, exists: bool) -> None:
    problem = f"no tool that it meets has the argument {path}"
    expected = [] if exists else [DeadRule("r", problem, path)]
    assert dead_rules(Policy(rules=(on(path),)), LISTED) == expected
    inverted = rule(
        servers=("db",),
        tools=("read_query",),
        when=(NegatedCondition(ArgumentCondition(path, TEST)),),
    )
    assert dead_rules(Policy(rules=(inverted,)), LISTED) == expected


def test_one_tool_with_the_argument_is_enough() -> None:
    assert dead_rules(Policy(rules=(on("query", "*"),)), LISTED) == []
    assert len(dead_rules(Policy(rules=(on("query", "no_arguments"),)), LISTED)) == 1
    assert dead_rules(Policy(rules=(on("query", "no_schema"),)), LISTED) == []


def test_servers_without_known_tools_are_named() -> None:
    assert LISTED.unknown() == ["new"]

"""Serialized policy: sent to running sessions as bytes, to each only its own part."""

import msgspec
import pytest

from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    DisabledDefault,
    Equals,
    Inside,
    Length,
    LimitsEntry,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Policy,
    Range,
    ResultRule,
    Rule,
    Sql,
    decode,
    digest,
    encode,
    for_agents,
    for_project,
    for_server,
)

TESTS = (
    Equals('{"a":1}'), OneOf(('"a"', "1")), Matches("a"), Length(1, None), Range(None, 1.5),
    Inside("/a"), Sql("drop", "mysql"), NegatedTest(Sql("writes")),
)  # fmt: skip
POLICY = Policy(
    default="block",
    observe=("git*", "x"),
    limits=(LimitsEntry(servers=("sql*",), calls=5), LimitsEntry(failures=3)),
    rules=(
        Rule(
            name="a",
            action="block",
            servers=("sql*", "x"),
            tools=("t*",),
            when=(
                *(ArgumentCondition("a.b", test, "1") for test in TESTS),
                NegatedCondition(ArgumentCondition("c", TESTS[0])),
            ),
        ),
        Rule(name="b", action="log", methods=("*",)),
    ),
    results=(ResultRule(name="c", servers=("git",), methods=("*",), max_bytes=5),),
)  # fmt: skip


def test_a_policy_comes_back_as_it_went() -> None:
    assert decode(encode(POLICY)) == POLICY
    assert decode(encode(Policy())) == Policy()
    assert digest(decode(encode(POLICY))) == digest(POLICY) != digest(Policy())


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"new": 1}', b'{"default": "maybe"}', b'{"rules": [{"name": "a"}]}']
)
def test_what_is_no_policy_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(text)


@pytest.mark.parametrize(
    ("server", "observe", "limits", "rules", "results"),
    [
        ("git", 1, 1, ["b"], 1),
        ("sqlite", 0, 2, ["a", "b"], 0),
        ("x", 1, 1, ["a", "b"], 0),
        ("SQLITE", 0, 1, ["b"], 0),
    ],
)
def test_a_server_has_its_own_part(
    server: str, observe: int, limits: int, rules: list[str], results: int
) -> None:
    part = for_server(POLICY, server)
    assert part.default == "block"
    assert (len(part.observe), len(part.limits), len(part.results)) == (observe, limits, results)
    assert [rule.name for rule in part.rules] == rules
    assert for_server(part, server) == part


def test_agents_see_no_names_of_other_servers() -> None:
    policy = Policy(
        observe=("git", "other"),
        rules=(Rule(name="r", servers=("g*", "secret"), tools=("*",), action="block"),),
        results=(ResultRule(name="s", servers=("*", "secret"), max_bytes=1),),
        limits=(LimitsEntry(servers=("git", "secret"), calls=1),),
        disabled=(DisabledDefault(rule="x", servers=("g*", "secret")),),
    )
    seen = for_agents(policy, "git")
    assert b"secret" not in encode(seen)
    assert b"other" not in encode(seen)
    assert len(seen.rules) == len(seen.results) == len(seen.limits) == len(seen.observe) == 1
    assert for_agents(policy, "db").observe == ()


BY_PROJECT = Policy(
    rules=(
        Rule(name="all", tools=("*",), action="log"),
        Rule(name="prod", projects=("/a/prod", "/a/prod/*"), tools=("*",), action="block"),
        Rule(name="any", projects=("*",), tools=("*",), action="block"),
    ),
    default_rules=(Rule(name="default.d", projects=("/a/dev",), tools=("*",), action="block"),),
    results=(ResultRule(name="cap", projects=("/a/p??d",), max_bytes=5),),
)


@pytest.mark.parametrize(
    ("project", "names"),
    [
        ("/a/prod", ["all", "prod", "any", "cap"]),
        ("/a/prod/sub/x", ["all", "prod", "any"]),
        ("/a/prod2", ["all", "any"]),
        ("/b/a/prod", ["all", "any"]),  # a glob is of the whole path
        ("/a/PROD", ["all", "any"]),
        ("/a/dev", ["all", "any", "default.d"]),
        ("", ["all"]),  # `*` is any project, and not none
    ],
)
def test_a_rule_is_for_the_projects_that_it_names(project: str, names: list[str]) -> None:
    part = for_project(BY_PROJECT, project)
    found = [one.name for one in (*part.rules, *part.default_rules)]
    assert [*found, *(one.name for one in part.results)] == names
    assert decode(encode(part)) == part

"""Suggested rules answer the approved questions, and none that a person denied."""

import pytest

from mcpwrap.core.audit.records import Record
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    OneOf,
    Policy,
    Rule,
    Sql,
)
from mcpwrap.core.policy_review.suggestions import Suggestion, suggest
from tests.unit.core.policy_review.history import asked, read, refused

ASKS = Rule(name="ask", tools=("t",), action="allow_with_approval")
ON_PATH = Rule(
    name="ask",
    tools=("t",),
    when=(ArgumentCondition("path", Inside("/srv")),),
    action="allow_with_approval",
)

ON_FLAG = Rule(
    name="ask",
    tools=("t",),
    when=(ArgumentCondition("force", Equals("true")),),
    action="allow_with_approval",
)


def compiled(policy: Policy, server: str) -> CompiledPolicy:
    return compile_policy(policy, server)


def suggested(policy: Policy, *records: list[Record]) -> list[Suggestion]:
    return suggest(policy, read(*records).by_key, compiled)


def questions(answer: str, *calls: object, first: int = 1) -> list[Record]:
    """Return the records of one question for each call."""
    found = [asked(first + n, "t", call, answer) for n, call in enumerate(calls)]
    return [one for some in found for one in some]


def arg(name: str, test: object, default: str | None = None) -> Condition:
    return ArgumentCondition(name, test, default)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "calls", "when"),
    [
        (ASKS, [{}, {}], ()),
        (ASKS, [{"x": 1}, {"x": 1}], (arg("x", Equals("1")),)),
        (ASKS, [{"x": "a"}, {"x": "b"}], (arg("x", OneOf(('"a"', '"b"'))),)),
        (ASKS, [{"odd key": 1}] * 2, (arg('["odd key"]', Equals("1")),)),
        (
            ASKS,
            [{"p": f"/srv/d/{name}", "force": True} for name in "abc"],
            (arg("force", Equals("true")), arg("p", Inside("/srv/d"))),
        ),
        (
            ASKS,
            [{"sql": f"DELETE FROM t WHERE id = {n}"} for n in (1, 22, 3)],
            (arg("sql", Matches("^DELETE FROM t WHERE id = [0-9]{1,3}$")),),
        ),
        # What the question was not about may be any text, as it may without the question.
        (
            ON_PATH,
            [{"path": f"/srv/d/{name}", "content": name} for name in ("a", "b", "c")],
            (arg("content", Length(None, 200)), arg("path", Inside("/srv/d"))),
        ),
        # An argument that is missing in some calls is no other value.
        (
            ON_PATH,
            [{"path": "/srv/d/a", "mode": "x"}, {"path": "/srv/d/a"}],
            (arg("mode", OneOf(('"x"', "null")), "null"), arg("path", Equals('"/srv/d/a"'))),
        ),
        # The question of this rule is answered for equal calls alone.
        (
            Rule(name="default.recursive-delete", tools=("t",), action="allow_with_approval"),
            [{"command": f"rm -rf /srv/d/{name}"} for name in ("a", "b", "c")],
            (arg("command", OneOf(tuple(f'"rm -rf /srv/d/{name}"' for name in "abc"))),),
        ),
        # Nor are buckets, branches and databases with other names as good as those approved.
        *(
            (
                Rule(name=f"default.{name}", tools=("t",), action="allow_with_approval"),
                [{"command": f"{line}-{end}"} for end in "abc"],
                (arg("command", OneOf(tuple(f'"{line}-{end}"' for end in "abc"))),),
            )
            for name, line in (
                ("infrastructure-destroy", "aws s3 rm --recursive s3://tmp/build"),
                ("force-push", "git push --force origin feature"),
                ("database-reset", "mysqladmin drop test"),
                ("sql-by-shell", "sqlite3 test.db .x"),
            )
        ),
        # A flag that is asked about does not tell what the call changes: the others do.
        (
            ON_FLAG,
            [{"force": True, "branch": branch} for branch in ("a", "b")],
            (arg("branch", OneOf(('"a"', '"b"'))), arg("force", Equals("true"))),
        ),
        # All arguments count where the question is about SQL, wherever it is.
        (
            Rule(
                name="ask",
                tools=("t",),
                when=(ArgumentCondition("@sql", Sql("delete", "any")),),
                action="allow_with_approval",
            ),
            [],
            None,
        ),
    ],
)
def test_approved_calls_make_a_rule(
    rule: Rule, calls: list[object], when: tuple[Condition, ...] | None
) -> None:
    found = suggested(Policy(rules=(rule,)), questions("approved", *calls))
    assert [one.rule.when for one in found] == ([] if when is None else [when])
    for one in found:
        assert one.rule.servers == ("sqlite",)
        assert one.rule.tools == ("t",)
        assert one.rule.instead_of == (rule.name,)
        assert (one.asked, one.answered, one.denied) == (len(calls), len(calls), 0)


PATHS = [{"path": f"/srv/d/{name}"} for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("others", "tests"),
    [
        ([], [Inside]),
        (questions("denied", {"path": "/etc/x"}, first=9), [Inside]),  # far from it
        (questions("denied", {"path": "/srv/d/secret"}, first=9), [OneOf]),  # narrower
        (questions("denied", {"path": "/srv/d/a"}, first=9), []),  # an equal call was denied, too
        (questions("expired", {"path": "/srv/d/secret"}, first=9), [OneOf]),
        (questions("expired", {"path": "/srv/d/a"}, first=9), [Inside]),  # approved later
        (refused(9, "t", {"path": "/srv/d/x"}), [OneOf]),
        (refused(9, "t", {"path": "/srv/d/a", "force": True}), [Inside]),  # never named, so held
        (refused(9, "other", {"path": "/srv/d/x"}), [Inside]),
    ],
)
def test_no_refused_call_passes(others: list[Record], tests: list[type]) -> None:
    policy = Policy(rules=(ASKS,))
    found = suggested(policy, questions("approved", *PATHS), others)
    conditions = [one.rule.when[0] for one in found]
    assert [type(c.test) for c in conditions if isinstance(c, ArgumentCondition)] == tests


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),  # no question any more
        Policy(rules=(Rule(name="no", tools=("t",), action="block"), ASKS)),
        Policy(rules=(ASKS, Rule(name="no", tools=("t",), action="block"))),  # blocks behind it
        Policy(rules=(ASKS,), observe=("*",)),
    ],
)
def test_nothing_is_suggested_where_it_would_have_no_effect(policy: Policy) -> None:
    assert suggested(policy, questions("approved", *PATHS)) == []


def test_one_approval_makes_no_rule_but_two_do() -> None:
    policy = Policy(rules=(ASKS,))
    assert suggested(policy, questions("approved", {"x": 1})) == []
    assert len(suggested(policy, questions("approved", {"x": 1}, {"x": 1}))) == 1
    many = {f"k{n}": n for n in range(31)}
    assert suggested(policy, questions("approved", many, many)) == []


def test_calls_of_several_kinds_make_a_rule_each() -> None:
    lines = [
        *(f"git push --force origin {name}" for name in ("a", "b", "c")),
        *(f"npm publish {name}" for name in ("x", "y", "z")),
        "make all",
        "make clean",
    ]
    found = suggested(
        Policy(rules=(ASKS,)), questions("approved", *({"command": line} for line in lines))
    )
    assert [one.answered for one in found] == [3, 3, 2]
    assert sum(one.answered for one in found) == len(lines)


def test_calls_are_divided_by_the_other_arguments_that_decide() -> None:
    calls: list[object] = [{"db": db, "id": n} for db in ("test", "dev") for n in range(3)]
    found = suggested(Policy(rules=(ASKS,)), questions("approved", *calls))
    assert [one.rule.when[0] for one in found] == [
        arg("db", Equals(f'"{db}"')) for db in sorted(("test", "dev"), key=lambda d: _id(found, d))
    ]
    # Too many values, and nothing in common: no rule.
    many: list[object] = [{"x": [n]} for n in range(30)]
    assert suggested(Policy(rules=(ASKS,)), questions("approved", *many)) == []


def _id(found: list[Suggestion], db: str) -> int:
    return next(n for n, one in enumerate(found) if one.approved[0]["db"] == db)


def test_all_rules_that_ask_are_answered_together() -> None:
    also = Rule(name="also", tools=("*",), action="allow_with_approval")
    (found,) = suggested(Policy(rules=(ASKS, also)), questions("approved", {"x": 1}, {"x": 1}))
    assert found.rule.instead_of == ("also", "ask")


def test_an_accepted_rule_is_not_suggested_again() -> None:
    records = questions("approved", *PATHS)
    (found,) = suggested(Policy(rules=(ASKS,)), records)
    assert found.rule.name == f"accepted-{found.id}"
    assert suggested(Policy(rules=(ASKS, found.rule)), records) == []
    # The name depends on the rule alone.
    (again,) = suggested(Policy(rules=(ASKS,)), questions("approved", *reversed(PATHS)))
    assert again.id == found.id


def test_a_suggestion_counts_questions_and_keeps_what_is_refused() -> None:
    blocked = Rule(
        name="no",
        tools=("t",),
        when=(ArgumentCondition("path", Equals('"/b"')),),
        action="block",
    )
    free = Rule(
        name="free",
        tools=("t",),
        when=(ArgumentCondition("path", Equals('"/free"')),),
        action="allow",
    )
    (found,) = suggested(
        Policy(rules=(blocked, free, ASKS)),
        questions("approved", *PATHS, *PATHS),
        questions("denied", {"path": "/x"}, {"path": "/y"}, first=20),
        questions("", {"path": "/z"}, first=30),
        refused(40, "t", {"path": "/b"}),
        refused(41, "t", {"path": "/free"}),  # another rule allows it by now
    )
    assert (found.asked, found.answered, found.denied) == (9, 6, 2)
    assert found.approved == tuple(PATHS)
    assert [(call["path"], expect) for call, expect in found.refused] == [
        ("/x", "needs-approval"),
        ("/y", "needs-approval"),
        ("/b", "block"),
        ("/z", "needs-approval"),
    ]

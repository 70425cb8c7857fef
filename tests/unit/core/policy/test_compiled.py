"""Policy: order of rules, three-valued conditions, observing, hiding, and the default."""

from itertools import product
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS, KnownTools
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import Decision, Judgement, ResultJudgement, ServerPolicy
from mcpwrap.core.policy.rules import (
    Action,
    ArgumentCondition,
    Condition,
    Dialect,
    Equals,
    LimitsEntry,
    Matches,
    NegatedCondition,
    Policy,
    ResultRule,
    Rule,
    Shell,
    Sql,
    SqlTest,
    encode,
)
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.json_values import OF_FEW_KEYS
from tests.unit.core.no_files import run_without_files
from tests.unit.core.policy.condition_table import TESTS

ALLOW, BLOCK, ASK = Decision.ALLOW, Decision.BLOCK, Decision.NEEDS_APPROVAL
X = ArgumentCondition("x", Equals("1"))
NOT_X = NegatedCondition(X)


def rule(
    action: Action, name: str = "r", *when: Condition, tool: str = "t", observe: bool = False
) -> Rule:
    return Rule(name=name, action=action, tools=(tool,), when=when, observe=observe)


def on(method: str, action: Action, *when: Condition) -> Rule:
    return Rule(name="m", action=action, methods=(method,), when=when)


def policy(*rules: Rule, **others: object) -> CompiledPolicy:
    return compile_policy(Policy(rules=rules, **others), "s")  # type: ignore[arg-type]


def call(arguments: Json, tool: str = "t") -> dict[str, Json]:
    return {"name": tool, "arguments": arguments}


def test_it_is_what_the_gate_asks() -> None:
    asked: ServerPolicy = policy()
    assert asked.judge("tools/call", call({})) == Judgement(ALLOW)
    assert not asked.names("x/y")
    assert not asked.hides("t")
    assert asked.judge_result("tools/call", "t", [1]) == ResultJudgement([1])


@pytest.mark.parametrize(
    ("action", "holds", "fails", "cannot_be_judged"),
    [
        ("block", BLOCK, ALLOW, BLOCK),
        ("allow_with_approval", ASK, ALLOW, ASK),
        ("allow", ALLOW, BLOCK, BLOCK),  # the default is the opposite
    ],
)
def test_what_cannot_be_judged_counts_against_the_agent(
    action: Action, holds: Decision, fails: Decision, cannot_be_judged: Decision
) -> None:
    default = "block" if action == "allow" else "allow"
    for condition, one, two in ((X, holds, fails), (NOT_X, fails, holds)):
        judge = policy(rule(action, "r", condition), default=default).judge
        assert judge("tools/call", call({"x": 1})).decision is one
        assert judge("tools/call", call({"x": 2})).decision is two
        unclear: list[Json] = [{}, {"X": 1}, {"x": "1"}, {"x": True}, [], "x", None]
        for arguments in unclear:
            found = judge("tools/call", call(arguments)).decision
            assert found is cannot_be_judged
        assert judge("tools/call", {"name": "t"}).decision is cannot_be_judged


def test_all_conditions_must_hold() -> None:
    judge = policy(rule("block", "r", X, ArgumentCondition("y", Matches("a")))).judge
    table: list[tuple[Json, Decision]] = [
        ({"x": 1, "y": "a"}, BLOCK),
        ({"x": 1, "y": "b"}, ALLOW),
        ({"x": 2, "y": "a"}, ALLOW),
        ({"x": 1}, BLOCK),
        ({"y": "b"}, ALLOW),
        ({}, BLOCK),
    ]
    for arguments, decision in table:
        assert judge("tools/call", call(arguments)).decision is decision


@pytest.mark.parametrize(
    ("rules", "judgement"),
    [
        ([rule("block", "a"), rule("allow", "b")], Judgement(BLOCK, "a")),
        ([rule("allow", "b"), rule("block", "a")], Judgement(ALLOW, "b")),
        ([rule("block", "a", X), rule("allow", "b")], Judgement(ALLOW, "b")),
        ([rule("log", "a"), rule("block", "b")], Judgement(BLOCK, "b", notes=("a",))),
        ([rule("log", "a", NOT_X), rule("log", "b", X)], Judgement(ALLOW, notes=("a",))),
        (
            [rule("block", "a", observe=True), rule("allow_with_approval", "b")],
            Judgement(ASK, "b", notes=("a would block",)),
        ),
        (
            [
                rule("allow", "a", observe=True),
                rule("hide", "b", observe=True),
                rule("allow_with_approval", "c", observe=True),
                rule("block", "d"),
            ],
            Judgement(BLOCK, "d", notes=("a would allow", "b would hide", "c would need approval")),
        ),
        ([rule("block", "a", tool="T"), rule("block", "b", tool="?")], Judgement(BLOCK, "b")),
        ([rule("block", "a", tool="tt")], Judgement(ALLOW)),
        ([on("tools/call", "block")], Judgement(BLOCK, "m")),
        ([on("tools/*", "block")], Judgement(BLOCK, "m")),
        ([on("resources/read", "block")], Judgement(ALLOW)),
    ],
)
def test_rules_are_looked_at_in_order(rules: list[Rule], judgement: Judgement) -> None:
    assert policy(*rules).judge("tools/call", call({"x": 2})) == judgement


def test_a_rule_says_why_to_the_agent() -> None:
    told = Rule(name="r", action="block", tools=("*",), message="Add a LIMIT.")
    assert policy(told).judge("tools/call", call({})) == Judgement(BLOCK, "r", "Add a LIMIT.")


def test_without_a_rule_the_default_decides() -> None:
    assert policy(default="block").judge("tools/call", call({})) == Judgement(
        BLOCK, message="no rule allows it"
    )
    assert policy(rule("log"), default="block").judge("tools/call", call({})) == Judgement(
        BLOCK, message="no rule allows it", notes=("r",)
    )


@pytest.mark.parametrize("name", [None, 5, ["t"], {}])
def test_a_tool_without_a_name_is_called_by_nobody(name: Json) -> None:
    assert policy().judge("tools/call", {"name": name}).decision is BLOCK
    assert policy(rule("allow", tool="*")).judge("tools/call", {}).decision is BLOCK


def test_rules_on_methods_look_into_the_params() -> None:
    judge = policy(
        on("resources/read", "block", ArgumentCondition("uri", Matches("^file:"))),
        on("tools/call", "block", ArgumentCondition("arguments.x", Equals("1"))),
    ).judge
    assert judge("resources/read", {"uri": "file:///x"}).decision is BLOCK
    assert judge("resources/read", {"uri": "db://x"}).decision is ALLOW
    assert judge("resources/read", {}).decision is BLOCK
    assert judge("resources/subscribe", {"uri": "file:///x"}).decision is ALLOW
    assert judge("tools/call", call({"x": 1})).decision is BLOCK
    assert judge("tools/call", call({"x": 2})).decision is ALLOW


def test_only_a_rule_with_the_whole_name_lets_an_unknown_method_pass() -> None:
    names = policy(
        on("x/one", "allow"),
        on("x/two", "allow_with_approval"),
        on("x/three", "block"),
        on("y/*", "allow"),
        Rule(name="o", action="allow", methods=("x/four",), observe=True),
    ).names
    found = [m for m in ("x/one", "x/two", "x/three", "x/four", "y/*", "y/a") if names(m)]
    assert found == ["x/one", "x/two", "y/*"]  # the last is not a method


@pytest.mark.parametrize(
    ("rules", "is_hidden"),
    [
        ([rule("hide")], True),
        ([rule("log"), rule("block", "b", X), rule("hide")], True),
        ([rule("hide"), rule("allow")], True),
        ([rule("allow"), rule("hide")], False),  # in order, like all rules
        ([rule("block"), rule("hide")], False),
        ([rule("allow", "a", X), rule("hide")], True),
        ([rule("hide", observe=True)], False),
        ([rule("hide", tool="u")], False),
        ([], False),
    ],
)
def test_what_is_hidden_is_not_callable(rules: list[Rule], *, is_hidden: bool) -> None:
    tried = policy(*rules)
    assert tried.hides("t") is is_hidden
    if is_hidden:
        assert tried.judge("tools/call", call({"x": 1})) == Judgement(BLOCK, "r")


def test_where_all_is_observed_nothing_is_blocked() -> None:
    rules = (rule("log", "l"), rule("block", "b", X), rule("allow_with_approval", "a", tool="u"))
    tried = policy(*rules, rule("hide", "h", tool="v"), default="block", observe=("s",))
    would = {
        "t": ("l", "b would block"),
        "u": ("a would need approval",),
        "v": ("h would hide",),
        "w": ("default would block",),
    }
    for tool, notes in would.items():
        judgement = tried.judge("tools/call", call({"x": 1}, tool))
        assert (judgement.decision, judgement.notes) == (ALLOW, notes)
    assert not tried.hides("v")
    assert policy(rule("allow", "a"), observe=("s",)).judge("tools/call", call({})).rule == "a"
    elsewhere = policy(*rules, observe=("other",))
    assert elsewhere.judge("tools/call", call({"x": 1})).decision is BLOCK


def test_results_have_rules_by_tool_and_by_method() -> None:
    tried = policy(
        results=(
            ResultRule(name="a", tools=("t*",), max_bytes=5),
            ResultRule(name="b", methods=("resources/*",), max_bytes=5),
            ResultRule(name="c", methods=("*",), control_characters="block"),
        )
    )

    def refused_by(method: str, target: str, value: Json) -> str | None:
        refusal = tried.judge_result(method, target, value).refusal
        return refusal.rule if refusal else None

    assert refused_by("tools/call", "t", "12345") == "a"
    assert refused_by("tools/call", "u", "12345") is None
    assert refused_by("tools/call", "u", "\x00") == "c"
    assert refused_by("resources/read", "t", "12345") == "b"
    assert refused_by("prompts/get", "t", "12345") is None
    assert refused_by("prompts/get", "t", "\x00") == "c"


def test_where_all_is_observed_no_result_is_changed() -> None:
    cap = ResultRule(name="a", tools=("*",), max_bytes=1)
    judgement = policy(results=(cap,), observe=("s",)).judge_result("tools/call", "t", "12")
    assert judgement == ResultJudgement("12", None, ("a would block the result",))


def test_the_first_limits_that_match_count() -> None:
    one, two = LimitsEntry(tools=("a*",), calls=1), LimitsEntry(tools=("*b",), calls=2)
    tried = policy(limits=(one, two))
    assert [tried.limits_for(tool) for tool in ("ab", "cb", "c")] == [one, two, None]


def test_names_without_end_do_not_fill_the_memory() -> None:
    tried = policy(rule("block"))
    for number in range(2000):
        assert tried.judge("tools/call", call({}, f"x{number}")).decision is ALLOW
    assert tried.judge("tools/call", call({}, "t" * 10_000)).decision is ALLOW
    assert tried.judge("tools/call", call({})).decision is BLOCK


TEXTS = [
    "SELECT a, count(*) FROM t WHERE b = 'c' GROUP BY a ORDER BY 1 LIMIT 5", "DROP TABLE t", "(",
    "DELETE FROM t WHERE a IN (SELECT 1)", "ALTER TABLE t DROP COLUMN a", "PRAGMA table_info(t)",
    "WITH x AS (SELECT 1) UPDATE t SET a = 1 RETURNING *", "SELECT CAST(a AS INT) || 'x' FROM t",
    "CREATE TABLE t(a INT PRIMARY KEY, b TEXT DEFAULT 'x')", "EXPLAIN SELECT 1", "ä", "VACUUM",
    "SELECT date('now'), json_extract(a, '$.b'), a->'$.c', trim(a) FROM t TABLESAMPLE (5)",
    "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE", "INSERT INTO t VALUES (1), ('a')",
    "SELECT date_trunc('day', a), b::int, interval '1 day', now() FROM t", "SHOW TABLES",
    "SET a = 1",
    "SELECT TOP 5 * FROM t CROSS APPLY u", "SELECT strftime('%Y', a), struct_pack(a := 1) FROM t",
]  # fmt: skip
COMPILE = """
import msgspec
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import decode
policy = compile_policy(decode(given[0]), "s")
"""
JUDGE = """
for text in given[1:]:
    policy.judge("tools/call", msgspec.json.decode(text))
    policy.judge_result("tools/call", "t", msgspec.json.decode(text))
policy.hides("t"), policy.limits_for("t")
"""


def test_judging_opens_no_file_and_loads_no_module() -> None:
    conditions = [ArgumentCondition("x", test) for test, _, _ in TESTS]
    conditions += [
        ArgumentCondition("x", Sql(*two)) for two in product(get_args(SqlTest), get_args(Dialect))
    ]
    rules = [rule("log", f"r{number}", condition) for number, condition in enumerate(conditions)]
    results = ResultRule(
        name="a", methods=("*",), control_characters="remove", redact=("x",), redact_keys=("y",),
        max_bytes=5, tools=("*",),
    )  # fmt: skip
    given = [encode(Policy(rules=tuple(rules), results=(results,)))]
    values: list[Json] = [*TEXTS, *(value for _, value, _ in TESTS if value != "a\ud800")]
    given += [msgspec.json.encode(call({"x": value})) for value in values]
    run_without_files(COMPILE, JUDGE, given)


@given(OF_FEW_KEYS, st.text(), OF_FEW_KEYS)
def test_no_message_raises(arguments: Json, method: str, params: Json) -> None:
    rules = [
        rule("log", f"r{n}", ArgumentCondition("x", test)) for n, (test, _, _) in enumerate(TESTS)
    ]
    judge = policy(*rules, on("*", "log", X)).judge
    judge("tools/call", call(arguments))
    judge(method, params if isinstance(params, dict) else {})


def test_an_approval_may_be_given_in_the_agents_own_window_where_a_rule_says_so() -> None:
    asks = Rule(name="r", action="allow_with_approval", tools=("t",), ask_in_client=True)
    assert policy(asks).judge("tools/call", call({})) == Judgement(ASK, "r", in_client=True)
    watched = policy(asks, observe=("s",)).judge("tools/call", call({}))
    assert watched == Judgement(ALLOW, "r", notes=("r would need approval",))


def test_a_method_that_is_not_known_may_need_approval() -> None:
    assert policy(on("x/y", "allow_with_approval")).names("x/y")
    assert not policy(on("x/*", "allow_with_approval")).names("x/y")
    assert not policy(on("x/y", "block")).names("x/y")


OF_KINDS = Rule(
    name="kinds", action="block", tools=("*",), only_if_sure=True,
    when=(ArgumentCondition(SQL_ARGUMENTS, Sql("drop", "any")),),
)  # fmt: skip
NAMED_TEXT = b'{"inputSchema": {"properties": {"text": {"description": "SQL query"}}}}'
NO_SQL_TOOL = (
    b'{"inputSchema": {"properties": {"query": {"type": "string", "description": "Search terms"}}}}'
)


def test_a_rule_on_a_kind_of_arguments_finds_them_by_name_and_by_schema() -> None:
    compiled = compile_policy(Policy(rules=(OF_KINDS,)), "files")
    refused = compiled.judge("tools/call", call({"sql": "DROP TABLE t"}, "run"))
    assert (refused.decision, refused.hit) == (Decision.BLOCK, "`sql`: DROP TABLE t")
    by_text = call({"text": "DROP TABLE t"}, "run")
    assert compiled.judge("tools/call", by_text).decision is Decision.ALLOW
    known = KnownTools()
    known.take("run", NAMED_TEXT)
    known.take("read_query", NO_SQL_TOOL)
    compiled.learn(known)
    assert compiled.judge("tools/call", by_text).hit == "`text`: DROP TABLE t"
    assert compiled.rules_for_tool("read_query") == ()
    assert compiled.rules_for_tool("write_query") != ()


def test_a_condition_on_a_kind_fails_where_there_is_none_of_it() -> None:
    asked = Rule(
        name="x", action="allow", tools=("*",),
        when=(NegatedCondition(ArgumentCondition(SQL_ARGUMENTS, Sql("writes"))),),
    )  # fmt: skip
    compiled = compile_policy(Policy(default="block", rules=(asked,)), "files")
    table: list[tuple[Json, Decision]] = [
        ({}, ALLOW),
        ({"sql": "SELECT 1"}, ALLOW),
        ({"sql": "DELETE FROM t"}, BLOCK),
        ({"sql": "prose that is no SQL"}, BLOCK),
    ]
    for arguments, decision in table:
        assert compiled.judge("tools/call", call(arguments, "run")).decision is decision


IN_A = ("/a", "/a/*")
OF_A = (
    Rule(name="no-t", action="block", tools=("t",), projects=IN_A),
    Rule(name="u", action="allow", tools=("u",), projects=IN_A),
    Rule(name="ask", action="allow_with_approval", tools=("v",), ask_in_client=True, projects=IN_A),
    Rule(name="read", action="block", methods=("resources/read",), projects=IN_A),
    Rule(name="t", action="allow", tools=("t", "v")),
    Rule(name="reads", action="allow", methods=("resources/*",)),
)


@pytest.mark.parametrize(
    ("tool", "in_a", "elsewhere"),
    [
        ("t", (BLOCK, "no-t"), (ALLOW, "t")),
        ("u", (ALLOW, "u"), (BLOCK, "")),  # its `allow` holds in no other project
        ("v", (ASK, "ask"), (ALLOW, "t")),
    ],
)
def test_a_rule_for_a_project_holds_in_it_alone(
    tool: str, in_a: tuple[Decision, str], elsewhere: tuple[Decision, str]
) -> None:
    without = policy(*OF_A, default="block")
    for project, expected in (
        ("/a", in_a), ("/a/sub", in_a), ("/b", elsewhere), ("", elsewhere),
    ):  # fmt: skip
        judgement = without.in_project(project).judge("tools/call", call({}, tool))
        assert (judgement.decision, judgement.rule) == expected, project
        assert without.in_project("/a").in_project(project).context.project == project
    assert without.in_project("/a").judge("resources/read", {}).rule == "read"
    assert without.judge("resources/read", {}).rule == "reads"


def test_results_are_judged_by_project() -> None:
    cap = ResultRule(name="cap", tools=("*",), max_bytes=3, projects=("/a",))
    capped = compile_policy(Policy(results=(cap,)), "s").in_project("/a")
    assert capped.judge_result("tools/call", "t", "long").refusal
    assert not capped.in_project("").judge_result("tools/call", "t", "long").refusal


def test_the_monitor_has_facts_on_all_projects() -> None:
    """It compiles once for the sessions of all projects: what it reads may not depend on them."""
    assert policy(*OF_A).asks_in_client
    assert policy(*OF_A).in_project("/b").asks_in_client


def test_rules_for_other_projects_are_known_by_name() -> None:
    without = policy(*OF_A)
    assert without.rules_elsewhere("tools/call", "t") == ("no-t",)
    assert without.rules_elsewhere("resources/read", "") == ("read",)
    assert without.in_project("/a").rules_elsewhere("tools/call", "t") == ()


def test_a_server_may_delete_in_its_project() -> None:
    deletes = ArgumentCondition(SHELL_ARGUMENTS, Shell("deletes_outside"))
    anywhere = policy(Rule(name="d", action="block", tools=("*",), when=(deletes,)))
    for found, inside in ((anywhere.in_project("/home/a/p"), ALLOW), (anywhere, BLOCK)):
        for folder, decision in (("/home/a/p/x", inside), ("/home/a/q", BLOCK)):
            asked = call({"command": f"rm -rf {folder}"})
            assert found.judge("tools/call", asked).decision is decision

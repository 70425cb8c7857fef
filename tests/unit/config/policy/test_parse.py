"""Valid policies, and their parsed rules."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import files_by_server, parse_policy, parse_with_warnings
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.decision import ApprovalTimeouts, Decision
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
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
    Shell,
    Sql,
)

FULL = """
version: 1
default: block
observe: ["git*"]
limits: {calls: 120/min, identical_calls: 5, failures: 10, cool_down: 30s}
rules:
  - name: no-unbounded-select
    server: "sqlite*"
    tool: read_query
    when:
      - {arg: query, sql: unbounded_select}
    action: block
    message: Add a LIMIT.
    observe: true
  - {name: b, tool: [a, "b*"], server: [x, z], action: hide}
  - {name: c, method: resources/read, action: allow, project: /home/a/src/prod*}
  - {name: d, method: ["*", "x/*"], action: log}
results:
  - {name: cap, server: "*", tool: "*", max_bytes: 1M, project: ["*/p", /a?b]}
  - {name: no-control, control_characters: remove}
  - {name: no-tokens, redact_keys: [password, "*_token"], redact: 'AKIA[0-9A-Z]{16}'}
  - {name: e, method: prompts/get, max_bytes: 64K, control_characters: block}
"""


def parsed(*texts: str) -> Policy:
    return parse_policy([SourceFile(f"{n}.yaml", text.encode()) for n, text in enumerate(texts)])


def test_everything_that_can_be_said() -> None:
    assert parsed(FULL) == Policy(
        default="block",
        observe=("git*",),
        limits=(
            LimitsEntry(
                calls=120, calls_window_s=60, identical_calls=5, failures=10, cool_down_s=30
            ),
        ),
        rules=(
            Rule(
                name="no-unbounded-select",
                action="block",
                servers=("sqlite*",),
                tools=("read_query",),
                when=(ArgumentCondition("query", Sql("unbounded_select")),),
                message="Add a LIMIT.",
                observe=True,
            ),
            Rule(name="b", action="hide", servers=("x", "z"), tools=("a", "b*")),
            Rule(
                name="c",
                action="allow",
                methods=("resources/read",),
                projects=("/home/a/src/prod*",),
            ),
            Rule(name="d", action="log", methods=("*", "x/*")),
        ),
        results=(
            ResultRule(name="cap", tools=("*",), max_bytes=1024**2, projects=("*/p", "/a?b")),
            ResultRule(name="no-control", methods=("*",), control_characters="remove"),
            ResultRule(
                name="no-tokens",
                methods=("*",),
                redact_keys=("password", "*_token"),
                redact=("AKIA[0-9A-Z]{16}",),
            ),
            ResultRule(
                name="e",
                methods=("prompts/get",),
                max_bytes=64 * 1024,
                control_characters="block",
            ),
        ),
    )


def test_without_a_file_everything_is_allowed() -> None:
    assert parsed() == parsed("version: 1") == Policy()


CONDITIONS: list[tuple[str, Condition]] = [
    ("{arg: 'a.b[0]', equals: 1}", ArgumentCondition("a.b[0]", Equals("1"))),
    ("{arg: a, equals: null}", ArgumentCondition("a", Equals("null"))),
    ('{arg: a, equals: "no"}', ArgumentCondition("a", Equals('"no"'))),
    ("{arg: a, equals: {b: [1, true]}}", ArgumentCondition("a", Equals('{"b":[1,true]}'))),
    ("{arg: a, one_of: [x, 1.5]}", ArgumentCondition("a", OneOf(('"x"', "1.5")))),
    ("{arg: a, matches: '(?i)drop'}", ArgumentCondition("a", Matches("(?i)drop"))),
    ("{arg: a, length: {min: 1, max: 5}}", ArgumentCondition("a", Length(1, 5))),
    ("{arg: a, length: {max: 5}}", ArgumentCondition("a", Length(None, 5))),
    ("{arg: a, range: {min: -1.5}}", ArgumentCondition("a", Range(-1.5, None))),
    ("{arg: a, inside: /home/a}", ArgumentCondition("a", Inside("/home/a"))),
    ("{arg: a, sql: drop, dialect: mysql}", ArgumentCondition("a", Sql("drop", "mysql"))),
    ("{arg: a, sql: delete, dialect: any}", ArgumentCondition("a", Sql("delete", "any"))),
    ("{arg: a, shell: forces_a_push}", ArgumentCondition("a", Shell("forces_a_push"))),
    (
        "{arguments: shell, shell: deletes_outside}",
        ArgumentCondition("@shell", Shell("deletes_outside")),
    ),
    ("{arguments: shell, runs: a b}", ArgumentCondition("@shell", Shell("runs", ("a b",)))),
    (
        "{arg: a, runs: [a|b* -f|--force c:d|e, x]}",
        ArgumentCondition("a", Shell("runs", ("a|b* -f|--force c:d|e", "x"))),
    ),
    ("{arg: a, not: {runs: [a]}}", ArgumentCondition("a", NegatedTest(Shell("runs", ("a",))))),
    ("{arg: a, not: {equals: 1}}", ArgumentCondition("a", NegatedTest(Equals("1")))),
    (
        "{arg: a, not: {sql: drop, dialect: tsql}}",
        ArgumentCondition("a", NegatedTest(Sql("drop", "tsql"))),
    ),
    ("{arg: 'a[*]', not: {inside: /a}}", ArgumentCondition("a[*]", NegatedTest(Inside("/a")))),
    ("{not: {arg: a, equals: 1}}", NegatedCondition(ArgumentCondition("a", Equals("1")))),
    (
        "{not: {arg: a, not: {equals: 1}}}",
        NegatedCondition(ArgumentCondition("a", NegatedTest(Equals("1")))),
    ),
    ("{arg: a, equals: true, default: false}", ArgumentCondition("a", Equals("true"), "false")),
]


def test_each_condition() -> None:
    when = "\n".join(f"      - {text}" for text, _ in CONDITIONS)
    rule = f"version: 1\nrules:\n  - name: a\n    tool: t\n    action: block\n    when:\n{when}"
    assert parsed(rule).rules[0].when == tuple(condition for _, condition in CONDITIONS)


def test_an_allow_rule_may_ask_that_no_element_is_otherwise() -> None:
    rule = "{name: a, tool: t, action: allow, when: [{not: {arg: 'p[*]', not: {inside: /a}}}]}"
    [condition] = parsed(f"version: 1\nrules: [{rule}]").rules[0].when
    assert condition == NegatedCondition(ArgumentCondition("p[*]", NegatedTest(Inside("/a"))))


def test_limits_may_differ_by_server_and_tool() -> None:
    text = "version: 1\nlimits:\n  - {server: a, tool: [b, c], calls: 5/s}\n  - {failures: 3}"
    assert parsed(text).limits == (
        LimitsEntry(servers=("a",), tools=("b", "c"), calls=5, calls_window_s=1),
        LimitsEntry(failures=3),
    )


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("{expires: 5m, wait: 45s}", ApprovalTimeouts()),
        ("{expires: 10s, wait: 5s}", ApprovalTimeouts(10, 5)),
        ("{expires: 24h, wait: 1h}", ApprovalTimeouts(86_400, 3600)),
        ("{expires: 1min}", ApprovalTimeouts(60, 45)),
        ("{expires: never}", ApprovalTimeouts(None, 45)),
        ("{wait: 30s}", ApprovalTimeouts(300, 30)),
        ("{}", ApprovalTimeouts()),
    ],
)
def test_how_long_an_approval_waits(text: str, times: ApprovalTimeouts) -> None:
    policy = parsed(f"version: 1\napproval: {text}", "version: 1")
    assert policy.approval == times
    assert compile_policy(policy, "s").times == times


def test_a_rule_may_answer_the_questions_of_others() -> None:
    rule = "{name: a, tool: t, action: allow, instead_of: [b, default.c]}"
    assert parsed(f"version: 1\nrules: [{rule}]").rules == (
        Rule(name="a", action="allow", tools=("t",), instead_of=("b", "default.c")),
    )


def test_a_rule_may_have_the_agents_own_window_asked() -> None:
    rule = "{name: a, tool: t, action: allow_with_approval, ask_in_client: true}"
    assert parsed(f"version: 1\nrules: [{rule}]").rules == (
        Rule(name="a", action="allow_with_approval", tools=("t",), ask_in_client=True),
    )


def test_files_are_one_after_another() -> None:
    rule = "version: 1\nrules: [{{name: {}, tool: '*', action: log}}]"
    policy = parsed(rule.format("b"), "version: 1\ndefault: block", rule.format("a"))
    assert [found.name for found in policy.rules] == ["b", "a"]
    assert policy.default == "block"


def warnings(rule: str) -> list[str]:
    """Return the problems of the warnings: some if the rule decides a call without arguments."""
    text = f"version: 1\nrules:\n- {{name: a, {rule}}}\n"
    policy, found = parse_with_warnings([SourceFile("0.yaml", text.encode())])
    method = "x/y" if policy.rules[0].methods else "tools/call"
    judgement = compile_policy(policy, "s").judge(method, {"name": "t", "arguments": {}})
    assert (judgement.rule == "a" and judgement.decision is not Decision.ALLOW) == bool(found)
    return [str(warning).split("\n")[0].split(": ", 1)[1] for warning in found]


PATH = "{arg: path, matches: /etc}"


@pytest.mark.parametrize(
    ("rule", "warned"),
    [
        (
            f'tool: "*", when: [{PATH}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        (
            f'tool: ["t", "**"], when: [{PATH}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        (
            f'tool: "*", when: [{PATH}], action: allow_with_approval',
            "'a' asks for approval of every call without `path`, whichever the tool",
        ),
        (
            f'method: "*", when: [{PATH}], action: block',
            "'a' blocks every message without `path`, whichever the method",
        ),
        # what cannot be judged stays so, also negated
        (
            'tool: "*", when: [{arg: path, not: {inside: /srv}}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        (
            f'tool: "*", when: [{{not: {PATH}}}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        (
            f'tool: "*", when: [{PATH}, {{arg: "tags[*]", equals: 1}}], action: block',
            "'a' blocks every call without `path` and `tags[*]`, whichever the tool",
        ),
        # a default that the test cannot judge is like an absent one
        (
            'tool: "?*", when: [{arg: path, equals: 1, default: "2"}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        (
            'tool: "*", when: [{arg: path, inside: /srv, default: ""}], action: block',
            "'a' blocks every call without `path`, whichever the tool",
        ),
        # the twins
        ('tool: "*", when: [{arg: path, matches: /etc, default: ""}], action: block', ""),
        (f'tool: "*", when: [{PATH}, {{arg: f, equals: 1, default: 0}}], action: block', ""),
        (f'tool: "*", when: [{PATH}], action: allow', ""),  # does not apply without it
        (f'tool: "*", when: [{PATH}], action: log', ""),
        (f'tool: "*", when: [{PATH}], action: block, observe: true', ""),
    ],
)
def test_a_rule_on_everything_that_wants_an_argument_is_warned_of(rule: str, warned: str) -> None:
    expected = [f"{warned} [E-POLICY-ARGUMENT-MISSING]"] if warned else []
    assert warnings(rule) == expected


@pytest.mark.parametrize(
    "rule",
    [
        f"tool: t, when: [{PATH}], action: block",  # the named tool has the argument
        f'tool: "t*", when: [{PATH}], action: block',
        'tool: "*", action: block',  # it blocks everything, and says so
        'tool: "*", action: hide',
    ],
)
def test_a_rule_that_says_what_it_blocks_is_not(rule: str) -> None:
    text = f"version: 1\nrules:\n- {{name: a, {rule}}}\n"
    assert parse_with_warnings([SourceFile("0.yaml", text.encode())])[1] == []


def test_a_warning_has_its_place_and_what_to_write() -> None:
    text = f'version: 1\nrules:\n- name: a\n  tool: "*"\n  when: [{PATH}]\n  action: block\n'
    [warning] = parse_with_warnings([SourceFile("0.yaml", text.encode())])[1]
    assert str(warning.mark) == "0.yaml:5:3"
    assert "or write `default: …`" in warning.fix
    [each] = parse_with_warnings([SourceFile("0.yaml", text.replace("path", '"p[*]"').encode())])[1]
    assert each.fix == "name the tools that have `p[*]` instead of `*`"  # it takes no default


RULE = "rules: [{{name: a-{1}, server: '{0}', tool: '*', action: block}}]"


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("version: 1", []),
        ("version: 1\ndefault: allow", []),  # as without it
        ("version: 1\ndefault: block", ["one", "two"]),
        ("version: 1\n" + RULE.format("one", 1), ["one"]),
        ("version: 1\n" + RULE.format("t*", 1), ["two"]),
        ("version: 1\nlimits: {server: two, calls: 3/h}", ["two"]),
        ("version: 1\nobserve: [one]", ["one"]),
        ("version: 1\napproval: {expires: 1m}", ["one", "two"]),
        ("version: 1\nresults: [{name: a, server: one, tool: '*', redact_keys: [token]}]", ["one"]),
    ],
)
def test_each_server_has_the_files_that_say_something_of_it(text: str, servers: list[str]) -> None:
    files = [SourceFile("a", b"version: 1\n" + RULE.format("two", 2).encode())]
    found = files_by_server([*files, SourceFile("b", text.encode())], ["one", "two"])
    assert [name for name, of in found.items() if "b" in of] == servers
    assert [name for name, of in found.items() if "a" in of] == ["two"]


def test_of_files_with_mistakes_each_server_has_all() -> None:
    files = [SourceFile("a", b"version: 1"), SourceFile("b", b"version: 2")]
    assert files_by_server(files, ["one"]) == {"one": ("a", "b")}

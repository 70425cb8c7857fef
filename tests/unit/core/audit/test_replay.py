"""Policy replay: recorded requests get the decision that the policy would have made."""

import random

import msgspec
import pytest

from mcpwrap.core.audit.params import Params, UnreadableParams
from mcpwrap.core.audit.records import Record
from mcpwrap.core.audit.replay import Replay
from mcpwrap.core.audit.replay import judge as replayed
from mcpwrap.core.gate.session import is_refused
from mcpwrap.core.policy.compiled import ServerContext, compile_policy
from mcpwrap.core.policy.rules import ArgumentCondition, Equals, Policy, Range, Rule
from tests.unit.core.audit_records import OPENS, record, sealed

IF_LARGE = (ArgumentCondition("size", Range(100, None)),)
IF_LARGER = (ArgumentCondition("size", Range(150, None)),)
OLD = Policy(
    rules=(
        Rule(name="no-drop", tools=("drop_*",), action="block"),
        Rule(name="large", tools=("read",), when=IF_LARGE, action="block"),
        Rule(name="seen", tools=("*",), when=IF_LARGE, action="log"),
        Rule(name="own", servers=("other",), methods=("x/y",), action="allow"),
    )
)
NEW = Policy(
    rules=(
        Rule(name="hidden", tools=("drop_*",), action="hide"),
        Rule(name="larger", tools=("read",), when=IF_LARGER, action="block"),
        Rule(name="no-write", tools=("write",), action="allow_with_approval"),
        Rule(name="no-prompts", methods=("prompts/get",), action="block"),
    )
)
SERVERS = ["one", "other"]


def made(policy: Policy, number: int) -> Record:
    """Return the gate's record of a call."""
    chance = random.Random(number)
    server, tool = chance.choice(SERVERS), chance.choice(["read", "write", "drop_table"])
    params: Params = {"name": tool, "arguments": {"size": chance.randrange(200)}}
    method = chance.choice(["tools/call"] * 8 + ["prompts/get", "x/y", "initialize"])
    judgement = replayed(compile_policy(policy, server), method, params)
    decision = "blocked" if is_refused(judgement) else chance.choice(["allowed"] * 9 + ["limited"])
    kept = {"plain": msgspec.Raw(msgspec.json.encode(params))}
    one = record(id=number, server=server, method=method, target=tool, decision=decision)
    return msgspec.structs.replace(one, rule=judgement.rule, **kept)


def replay(policy: Policy, records: list[Record], *, is_root: bool = True) -> Replay:
    found = Replay(policy, OPENS if is_root else None)
    for one in records:
        found.take(one)
    return found


@pytest.fixture(scope="module")
def recorded() -> list[Record]:
    return [made(OLD, number) for number in range(10_000)]


def test_the_same_policy_decides_the_same(recorded: list[Record]) -> None:
    found = replay(OLD, recorded)
    assert found.judged == 10_000
    assert found.blocked_by_rule == found.allowed_by_rule == {}


def test_another_policy_differs_where_its_rules_do(recorded: list[Record]) -> None:
    found = replay(NEW, recorded)
    sizes = [
        (r.method, r.target, r.server, msgspec.json.decode(r.plain)["arguments"]["size"])
        for r in recorded
    ]
    calls = [(tool, size) for method, tool, _, size in sizes if method == "tools/call"]
    expected = {
        "no-write": sum(tool == "write" for tool, _ in calls),
        "no-prompts": sum(method == "prompts/get" for method, *_ in sizes),
        # No rule of this policy names the method of `other`.
        "": sum(method == "x/y" and server == "other" for method, _, server, _ in sizes),
    }
    assert {name: group.count for name, group in found.blocked_by_rule.items()} == expected
    assert min(expected.values()) > 100
    now_small_enough = sum(tool == "read" and 100 <= size < 150 for tool, size in calls)
    assert {n: group.count for n, group in found.allowed_by_rule.items()} == {
        "large": now_small_enough
    }
    examples = found.allowed_by_rule["large"].examples
    assert [params["arguments"] for _, params in examples if params] == [
        {"size": size} for tool, size in calls if tool == "read" and 100 <= size < 150
    ][:3]
    assert found.judged == 10_000


@pytest.mark.parametrize(
    ("fields", "judged"),
    [
        ({}, 1),
        ({"decision": "limited"}, 1),
        ({"decision": "blocked"}, 1),
        ({"decision": "held"}, 1),  # once, and not again at its response
        ({"decision": "approved"}, 0),
        ({"decision": "unasked"}, 1),
        ({"decision": "denied"}, 0),
        ({"decision": "suspended"}, 0),
        ({"decision": "put off"}, 0),  # the same, in an audit of version 0.1.0
        ({"decision": "malformed"}, 0),  # was refused before the policy
        ({"decision": "unknown"}, 0),
        ({"id": None}, 0),  # a notification
        ({"sender": "server"}, 0),
    ],
)
def test_only_requests_that_the_policy_judged_are_replayed(
    fields: dict[str, object], judged: int
) -> None:
    assert replay(Policy(), [record(**{"id": 1, "decision": "allowed", **fields})]).judged == judged


LONG = "read" * 100
ON_ANY = Rule(name="any", methods=("*",), when=IF_LARGE, action="block")


@pytest.mark.parametrize(
    ("rules", "fields", "blocked"),
    [
        ((), {}, 0),
        ((), {"target": LONG}, None),  # only its beginning was recorded
        ((), {"method": LONG}, None),
        (OLD.rules, {}, None),
        (OLD.rules, {"target": "drop_table"}, 1),
        (OLD.rules, {"target": "write"}, 0),  # rules that only watch decide nothing
        ((ON_ANY,), {}, None),
        ((ON_ANY,), {"method": "prompts/get", "target": "p"}, None),
        ((Rule(name="all", tools=("*",), action="block"), ON_ANY), {}, 1),
        ((Rule(name="all", tools=("*",), action="allow"), ON_ANY), {}, 0),
        ((Rule(name="all", methods=("*",), action="block"),), {"method": "ping"}, 0),
    ],
)
def test_a_hash_is_judged_where_a_name_is_enough(
    rules: tuple[Rule, ...], fields: dict[str, object], blocked: int | None
) -> None:
    called = record(**{"id": 1, "decision": "allowed", "target": "read", "hash": "00", **fields})
    found = replay(Policy(rules=rules), [called])
    assert found.judged == (blocked is not None)
    assert found.unread[UnreadableParams.HASHED] == (blocked is None)
    assert sum(group.count for group in found.blocked_by_rule.values()) == (blocked or 0)


def test_sealed_params_are_judged_with_the_root_key_only() -> None:
    rule = Rule(name="x", tools=("t",), when=(ArgumentCondition("x", Equals("1")),), action="block")
    text = sealed(b'{"name":"t","arguments":{"x":1}}')
    calls = [record(id=1, decision="allowed", target="t", sealed=text)]
    assert replay(Policy(rules=(rule,)), calls).blocked_by_rule["x"].count == 1
    found = replay(Policy(rules=(rule,)), calls, is_root=False)
    assert (found.judged, found.unread) == (0, {UnreadableParams.SEALED: 1})
    broken = [msgspec.structs.replace(calls[0], sealed="AAAA")]
    assert replay(Policy(rules=(rule,)), broken).unread == {UnreadableParams.BROKEN: 1}


BY_NAME = Rule(name="default.gone", tools=("drop",), action="allow_with_approval")
BY_ARGUMENT = Rule(
    name="default.large", tools=("*",), when=IF_LARGE, action="block", only_if_sure=True
)


@pytest.mark.parametrize(
    ("rules", "fields", "refused"),
    [
        # What a rule on arguments decided depends on the arguments; what passed is left alone.
        ((BY_ARGUMENT,), {"decision": "blocked", "rule": "default.large"}, None),
        ((BY_ARGUMENT,), {}, False),
        ((), {"decision": "blocked", "rule": "default.large"}, False),  # it is disabled now
        ((BY_NAME,), {"target": "drop"}, True),
        ((BY_NAME,), {"target": "drop", "decision": "held", "rule": "default.gone"}, True),
        ((BY_NAME, BY_ARGUMENT), {"target": "drop"}, True),
        ((BY_ARGUMENT,), {"method": "prompts/get"}, False),
    ],
)
def test_a_hash_is_judged_by_the_default_policys_rules_on_names(
    *, rules: tuple[Rule, ...], fields: dict[str, object], refused: bool | None
) -> None:
    one = record(**{"id": 1, "decision": "allowed", "target": "read", "hash": "00", **fields})
    found = replay(Policy(default_rules=rules), [one])
    assert found.judged == (refused is not None)
    was_refused = one.decision in {"blocked", "held"}
    assert bool(found.blocked_by_rule) == (refused is True and not was_refused)
    assert bool(found.allowed_by_rule) == (refused is False and was_refused)


def test_a_hubs_calls_are_not_judged_by_the_default_policy() -> None:
    calls = [
        record(id=1, decision="allowed", server=name, target="drop") for name in ("all", "git")
    ]
    found = Replay(Policy(default_rules=(BY_NAME,)), None, {"all": ServerContext(is_hub=True)})
    for one in calls:
        found.take(one)
    assert [one.server for one, _ in found.blocked_by_rule["default.gone"].examples] == ["git"]


def test_a_request_is_judged_in_the_project_of_its_session() -> None:
    projects = ["/a/prod", "/a/dev", "", "/a/prod"]
    calls = [
        msgspec.structs.replace(record(id=1, decision="allowed", target="write"), project=project)
        for project in projects
    ]
    rule = Rule(name="prod", tools=("write",), action="block", projects=("/a/prod*",))
    found = replay(Policy(rules=(rule,)), calls)
    assert found.judged == len(projects)
    assert found.blocked_by_rule["prod"].count == 2
    of_server = Rule(name="prod", servers=("x",), tools=("*",), action="block", projects=("*",))
    assert replay(Policy(rules=(of_server,)), calls).blocked_by_rule == {}


def test_held_requests_count_as_refused() -> None:
    """It was held, and would now pass without an approval, or still need one."""
    held = [record(id=1, decision="held", rule="no-write", target="write")]
    assert replay(Policy(), held).allowed_by_rule["no-write"].count == 1
    found = replay(NEW, held)
    assert found.allowed_by_rule == found.blocked_by_rule == {}


def test_a_group_has_at_most_three_examples() -> None:
    calls = [record(id=n, decision="allowed") for n in range(5)]
    found = replay(Policy(default="block"), calls)
    assert found.blocked_by_rule[""].count == 5
    assert [one.id for one, _ in found.blocked_by_rule[""].examples] == [0, 1, 2]


def test_a_question_that_another_rule_may_answer_needs_the_arguments() -> None:
    asks = Rule(name="ask", tools=("t",), action="allow_with_approval")
    answer = Rule(name="a", tools=("t",), when=IF_LARGE, action="allow", instead_of=("ask",))
    call = record(id=1, target="t", decision="held", rule="ask", hash="00")
    assert replay(Policy(rules=(asks, answer)), [call]).unread == {UnreadableParams.HASHED: 1}
    assert replay(Policy(rules=(asks,)), [call]).judged == 1  # the twin

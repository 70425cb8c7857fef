"""Result rules on lists and instructions of a server: they apply, and break no call."""

import pytest
from hypothesis import given

from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import ResultJudgement
from mcpwrap.core.policy.list_rules import judge_description
from mcpwrap.core.policy.result_rules import compiled
from mcpwrap.core.policy.rules import Policy, ResultRule
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.json_values import OF_FEW_KEYS

CLEAN = ResultRule(name="clean", methods=("*",), control_characters="remove")
STRICT = ResultRule(name="strict", methods=("*",), control_characters="block")
PINS = ResultRule(name="pins", methods=("*",), redact_keys=("pin*",), redact=("pin \\d+",))
CAP = ResultRule(name="cap", methods=("*",), max_bytes=1)
GONE = "[redacted by pins]"
CHANGED = "clean changed the result"
LISTS = ["prompts/list", "resources/list", "resources/templates/list", "skills/list"]


def policy(*rules: ResultRule, observe: tuple[str, ...] = ()) -> CompiledPolicy:
    return compile_policy(Policy(results=rules, observe=observe), "s")


def tools(*entries: Json) -> dict[str, Json]:
    return {"tools": list(entries)}


HELLO: dict[str, Json] = {
    "protocolVersion": "2025-11-25\u200b",
    "capabilities": {"x": "\u200b"},
    "serverInfo": {"name": "s\u200b", "version": "1"},
    "instructions": "do\u202e\x1b[2J",
}


@pytest.mark.parametrize(
    ("rule", "method", "value"),
    [
        (CLEAN, "tools/list", tools({"name": "t", "description": "a\tb\n👩\u200d👩"}, 7)),
        (CLEAN, "initialize", {"protocolVersion": "\u200b", "capabilities": {"a": "\x1b"}}),
        (STRICT, "tools/list", {"tools": [], "nextCursor": "\u200b"}),  # the server's own
        (STRICT, "server/discover", {"supportedVersions": ["\x00"]}),
        (CAP, "tools/list", tools({"name": "t"})),  # a list is not refused for its size
        # The name of an argument, in a schema, is not a secret.
        (PINS, "tools/list", tools({"inputSchema": {"properties": {"pin": {"type": "string"}}}})),
        (PINS, "tools/list", tools({"name": "t", "description": "pin"})),
    ],
)
def test_what_no_rule_concerns_stays(rule: ResultRule, method: str, value: dict[str, Json]) -> None:
    judgement = policy(rule).judge_description(method, value)
    assert judgement.value is value
    assert judgement == ResultJudgement(value)


@pytest.mark.parametrize(
    ("rule", "method", "value", "after", "note"),
    [
        (
            CLEAN,
            "tools/list",
            tools({"name": "t", "description": "a\u200b", "inputSchema": {"a": ["\x1bx"]}}),
            tools({"name": "t", "description": "a", "inputSchema": {"a": ["x"]}}),
            CHANGED,
        ),
        (
            CLEAN,
            "initialize",
            HELLO,
            {**HELLO, "serverInfo": {"name": "s", "version": "1"}, "instructions": "do[2J"},
            CHANGED,
        ),
        # Without `serverInfo` no client continues, so it is changed where others are left out.
        (
            STRICT,
            "initialize",
            HELLO,
            {
                "protocolVersion": HELLO["protocolVersion"],
                "capabilities": HELLO["capabilities"],
                "serverInfo": {"name": "s", "version": "1"},
            },
            "strict changed the result|strict left out instructions",
        ),
        (
            PINS,
            "server/discover",
            {"instructions": "the pin 5"},
            {"instructions": f"the {GONE}"},
            "pins changed the result",
        ),
        (STRICT, "tools/list", tools({"name": "t", "x": "\x1b"}), tools(), "strict left out t"),
        # By another URI the agent could not read it.
        (
            CLEAN,
            "resources/list",
            {"resources": [{"uri": "a\u200b"}, {"uri": "b", "name": "b\u200b"}]},
            {"resources": [{"uri": "b", "name": "b"}]},
            f"{CHANGED}|clean left out a\\u200b",
        ),
        (
            CLEAN,
            "tools/list",
            tools({"na\u200bme": "t"}, {"N\u200bame": "t"}, {"a": 1, "a\x1b": 2}),
            tools(),
            "clean left out , , ",
        ),
        (CLEAN, "tools/list", {"tools": "\u200b", "x": {}}, {"tools": "", "x": {}}, CHANGED),
        (STRICT, "tools/list", {"tools": [], "_meta": "\u200b"}, tools(), "strict left out _meta"),
        (
            STRICT,
            "tools/list",
            {"tools": [{"name": f"t{n}", "x": "\x1b"} for n in range(12)]},
            tools(),
            "strict left out t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more",
        ),
    ],
)
def test_what_is_changed_and_what_is_left_out(
    rule: ResultRule, method: str, value: dict[str, Json], after: Json, note: str
) -> None:
    judgement = policy(rule).judge_description(method, value)
    assert judgement == ResultJudgement(after, None, tuple(note.split("|")))


@pytest.mark.parametrize("method", LISTS)
def test_each_list_is_judged_by_its_entries(method: str) -> None:
    key = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
    good: Json = {"name": "a", "uri": "a", "description": "b"}
    value: dict[str, Json] = {key: [good, {"name": "c", "uri": "c", "description": "\u200b"}]}
    judged = policy(STRICT).judge_description(method, value).value
    assert judged == {key: [good]}
    assert isinstance(judged, dict)
    assert isinstance(judged[key], list)


def test_a_rule_on_tools_holds_for_the_tools_it_names() -> None:
    rule = ResultRule(name="r", tools=("get_*",), control_characters="remove")
    listed = tools(
        {"name": "get_a", "description": "\u200b"}, {"name": "put_a", "description": "\u200b"}
    )
    judgement = policy(rule).judge_description("tools/list", {**listed, "x": "\u200b"})
    assert judgement.value == {
        **tools({"name": "get_a", "description": ""}, {"name": "put_a", "description": "\u200b"}),
        "x": "\u200b",
    }
    prompts: dict[str, Json] = {"prompts": [{"name": "get_a", "description": "\u200b"}]}
    assert policy(rule).judge_description("prompts/list", prompts).value is prompts


@pytest.mark.parametrize(
    ("methods_", "method", "is_judged"),
    [
        (("tools/list",), "tools/list", True),
        (("*/list",), "resources/list", True),
        (("initialize",), "initialize", True),
        (("tools/call",), "tools/list", False),  # of what tools return
        (("tools/list",), "initialize", False),
    ],
)
def test_a_rule_on_methods_holds_for_those(
    methods_: tuple[str, ...], method: str, *, is_judged: bool
) -> None:
    rule = ResultRule(name="r", methods=methods_, control_characters="remove")
    value: dict[str, Json] = {"instructions": "\u200b", "tools": [{"name": "t", "x": "\u200b"}]}
    assert (policy(rule).judge_description(method, value).value is not value) == is_judged


def test_where_all_is_observed_nothing_is_changed() -> None:
    value = tools({"name": "t", "x": "\u200b"}, {"name": "pin 5"})
    judgement = policy(CLEAN, PINS, observe=("s",)).judge_description("tools/list", value)
    notes = ("clean would change the result", "pins would leave out pin 5")
    assert judgement == ResultJudgement(value, None, notes)
    assert judgement.value is value


def test_what_is_nested_too_deeply_is_left_out() -> None:
    deep: Json = "x"
    for _ in range(5000):
        deep = [deep]
    value = tools({"name": "deep", "x": deep}, {"name": "t"})
    assert policy(CLEAN).judge_description("tools/list", value).value == tools({"name": "t"})


@given(OF_FEW_KEYS)
def test_nothing_raises_and_the_same_comes_back(value: Json) -> None:
    rules = tuple(map(compiled, (CLEAN, PINS)))
    whole: dict[str, Json] = {"tools": [value], "x": value, "instructions": value}
    for method in methods.DESCRIPTIONS:
        judged = judge_description(rules, lambda _: rules, method, whole)
        assert isinstance(judged.value, dict)
        again = judge_description(rules, lambda _: rules, method, judged.value)
        assert again.value is judged.value

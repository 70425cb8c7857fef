"""Results: refused, cleaned, redacted, or forwarded as the very same value."""

import pytest
from hypothesis import given

from mcpwrap.core.policy import result_rules
from mcpwrap.core.policy.decision import ResultJudgement
from mcpwrap.core.policy.result_rules import compiled, judge_result, observed
from mcpwrap.core.policy.rules import ResultRule
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.json_values import OF_FEW_KEYS

SIZE = ResultRule(name="cap", max_bytes=20)
CLEAN = ResultRule(name="clean", control_characters="remove")
STRICT = ResultRule(name="strict", control_characters="block")
TOKENS = ResultRule(
    name="tokens", redact_keys=("password", "*_Token"), redact=("AKIA[0-9A-Z]{4}", "(?i)pin \\d+")
)
GONE = "[redacted by tokens]"


def judged(rule: ResultRule, value: Json) -> ResultJudgement:
    return judge_result((compiled(rule),), value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (SIZE, "x" * 18),  # with its quotes
        (CLEAN, {"a": ["b\tc\r\n", 5, None, True, 1.5, "ä\u200d👩\ufe0f"]}),
        (STRICT, {"a": ["b\tc\r\n", "ö"]}),
        (TOKENS, {"pass": "word", "tokens": ["AKIA12", 5], "content": [{"text": "{no json"}]}),
        (TOKENS, {"text": '{"a": 1}', "other": "[1, 2"}),
        (TOKENS, {"text": "[" * 100_000}),  # deeper than any parser goes
        (TOKENS, {"text": "[NaN, " + "[" * 100_000}),
        (TOKENS, {"text": '{"a": NaN}\n[INFO] x\n{"b": 1}\n', "more": "x\n{y"}),
        (TOKENS, {"text": '{"a": "\\ud83d", "v": 1}'}),  # half of a surrogate pair
        (TOKENS, {"text": "x\n[password]\n {}"}),
        (TOKENS, {"password": GONE}),
    ],
)
def test_what_no_rule_concerns_is_passed_on_as_it_is(rule: ResultRule, value: Json) -> None:
    judgement = judged(rule, value)
    assert judgement.value is value
    assert (judgement.refusal, judgement.notes) == (None, ())


UNSEEN = (
    "\xad\u034f\u061c\u115f\u17b4\u180b\u180e\u200b\u200e\u2028\u2060\u3164\ufe00\ufeff\uffa0\ufff9"
)
UNSEEN += "\U0001bca0\U0001d173\U000e0000\U000e0041\U000e0100\U000e01ef\U000e0200\U000e0fff"


@pytest.mark.parametrize("char", UNSEEN)
def test_each_character_that_is_not_seen_goes_wherever_it_stands(char: str) -> None:
    for text in ("hello{}", "hello{}\n", "h\u00e9llo{}", "{}"):
        assert judged(CLEAN, text.format(char)).value == text.format("")
        assert judged(STRICT, text.format(char)).refusal is not None


def test_joiners_stay_where_they_join() -> None:
    family = "\U0001f468\u200d\U0001f469\u2764\ufe0f\u200d\U0001f525\u0646\u0645\u06cc\u200c\u062e"
    assert judged(STRICT, family).refusal is None
    assert judged(CLEAN, "a" + "\u200c\u200d" * 20 + "b").value == "ab"


@pytest.mark.parametrize(
    ("rule", "value", "after"),
    [
        (CLEAN, "a\x1b[31mb\x00\x7f\x9b", "a[31mb"),
        (CLEAN, ["\u202eevil\u2066", "\U000e0041\U000e0042x\ufeff\u200b"], ["evil", "x"]),
        (CLEAN, {"k\x07": {"a": "b\x0b"}}, {"k": {"a": "b"}}),
        (TOKENS, {"Password": ["x"], "a": 1}, {"Password": GONE, "a": 1}),
        (TOKENS, {"MY_TOKEN": 5}, {"MY_TOKEN": GONE}),
        (TOKENS, [{"x": {"password": {"a": 1}}}], [{"x": {"password": GONE}}]),
        (TOKENS, "ä AKIA1234, PIN 5!", f"ä {GONE}, {GONE}!"),
        (TOKENS, {"AKIA1234": 1}, {GONE: 1}),
        (TOKENS, [' {"password": "x", "a": [1]}'], [f'{{"password":"{GONE}","a":[1]}}']),
        (TOKENS, {"text": '[{"a":"AKIA1234"}]'}, {"text": f'[{{"a":"{GONE}"}}]'}),
        (TOKENS, '{"password":1,"ä": [NaN,1e999]}', f'{{"password":"{GONE}","ä":[NaN,Infinity]}}'),
        (TOKENS, '{"password": "x", "a": "b\nc"}', f'{{"password":"{GONE}","a":"b\\nc"}}'),
        (TOKENS, '{"a":1}\n{"password":"x"}\n', f'{{"a":1}}\n{{"password":"{GONE}"}}\n'),
        (TOKENS, 'rows:\n{"password":NaN}\n[]', f'rows:\n{{"password":"{GONE}"}}\n[]'),
        (TOKENS, '["{\\"password\\":1}"]', f'["{{\\"password\\":\\"{GONE}\\"}}"]'),
    ],
)  # fmt: skip
def test_what_is_changed(rule: ResultRule, value: Json, after: Json) -> None:
    judgement = judged(rule, value)
    assert judgement == ResultJudgement(after, None, (f"{rule.name} changed the result",))


@pytest.mark.parametrize(
    ("rule", "value", "why"),
    [
        (SIZE, "x" * 19, "over 20 bytes"),
        (SIZE, "ä" * 10, "over 20 bytes"),
        (STRICT, {"a": ["\x1b"]}, "invisible"),
        (STRICT, {"\u202e": 1}, "invisible"),
        (CLEAN, {"a": 1, "a\x00": 2}, "two keys"),
        (TOKENS, {"AKIA1234": 1, "AKIA1235": 2}, "two keys"),
        (TOKENS, "\ud800", "cannot be judged"),
    ],
)
def test_what_is_refused(rule: ResultRule, value: Json, why: str) -> None:
    judgement = judged(rule, value)
    assert judgement.refusal is not None
    assert (judgement.refusal.decision, judgement.refusal.rule) == ("block", rule.name)
    assert why in judgement.refusal.message


def test_what_is_nested_too_deeply_is_refused() -> None:
    value: Json = "x"
    for _ in range(5000):
        value = [value]
    refusal = judged(CLEAN, value).refusal
    assert refusal is not None
    assert "cannot be judged" in refusal.message


def test_rules_act_one_after_another_up_to_the_first_that_refuses() -> None:
    rules = tuple(map(compiled, (CLEAN, TOKENS, STRICT, SIZE)))
    assert judge_result(rules, "AKIA\x001234").refusal is not None  # the marker is too long
    assert judge_result(rules, "a\x00").value == "a"  # and the strict one finds nothing


def test_where_all_is_observed_nothing_happens() -> None:
    rules = tuple(map(compiled, (CLEAN, STRICT, SIZE)))
    value: Json = "\x00" + "x" * 30
    assert observed(judge_result(rules, value), value) == ResultJudgement(
        value, None, ("clean would change the result", "cap would block the result")
    )
    assert observed(judge_result(rules, "x"), "x") == ResultJudgement("x")


def test_short_words_are_remembered_by_each_rule_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_rules, "_MAX_SHORT", 2)
    clean, tokens = compiled(CLEAN), compiled(TOKENS)
    words: list[Json] = ["text", "type", "pin 1", "text", "pin 1", "x\x07", "type"]
    for _ in range(2):
        assert judge_result((clean,), words).value == [*words[:5], "x", "type"]
        assert judge_result((tokens,), words).value == [
            "text", "type", GONE, "text", GONE, "x\x07", "type"
        ]  # fmt: skip


def test_keys_without_end_do_not_fill_the_memory() -> None:
    value: Json = {f"key{i}": 1 for i in range(3000)}
    found = judged(TOKENS, [value, {"password": 1}, {"password": 2}]).value
    assert found == [value, {"password": GONE}, {"password": GONE}]


@given(OF_FEW_KEYS)
def test_no_result_raises(value: Json) -> None:
    for rule in (SIZE, CLEAN, STRICT, TOKENS):
        judged(rule, value)

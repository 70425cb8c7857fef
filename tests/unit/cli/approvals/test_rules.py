"""Approvals that are saved as rules: options of `approve`, and the commands on rules."""

import json
from collections.abc import Callable

import click
import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.cli.approvals import command
from mcpwrap.core.approval.approval_rule import ApprovalRule, RuleRequest, TickedArgument, decoded
from mcpwrap.core.pins import pin_question
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Proof, Scope
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import tty
from tests.unit.cli.scripted_gate import ScriptedGate, question, saved_rule

Run = Callable[..., str]
ITEM = replace(question(list="groceries", id=5), definition="")
NOTE = replace(question(path="/notes/a", sql="DROP TABLE t"), definition="")
FIXED = AskingRules(rules=("asks",), deciding=("sql", "path"), exact=("sql",))
ALWAYS = "approve --yes 7f3a --always"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that types a command and returns what it printed."""

    def typed(line: str) -> str:
        assert command.command.main(line.split(), standalone_mode=False) in {0, None}
        return capsys.readouterr().out

    return typed


def rule(id_: str, **fields: object) -> ApprovalRule:
    return saved_rule(ITEM, "id", id_, **fields)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("--times 20", RuleRequest(times=20)),
        ("--for 8h", RuleRequest(for_s=8 * 3600)),
        ("--for 30d --times 9999", RuleRequest(for_s=30 * 86_400, times=9999)),
        ("--session", RuleRequest(in_session=True)),
        ("--vary id --session --times 2",
         RuleRequest(ticked=(TickedArgument("id"),), in_session=True, times=2)),
        ("--vary id --vary list=gro* --for 10m",
         RuleRequest(ticked=(TickedArgument("id"), TickedArgument("list", "gro*")), for_s=600)),
        ("--vary list= --times 1", RuleRequest(ticked=(TickedArgument("list"),), times=1)),
    ],
)  # fmt: skip
def test_a_rule_is_saved_with_what_was_typed(
    gate: ScriptedGate, run: Run, typed: str, wanted: RuleRequest
) -> None:
    gate.put("7f3a", ITEM)
    run(f"{ALWAYS} {typed}")
    (one,) = gate.decided
    assert one.scope is Scope.RULE
    assert msgspec.json.decode(one.rule, type=RuleRequest) == wanted


@pytest.mark.parametrize(
    ("typed", "ticked"),
    [
        ("a", TickedArgument("a")),
        ("a=x*", TickedArgument("a", "x*")),
        ("a=*", TickedArgument("a=*")),  # is named so, and is shown before it is saved
        ("a=*=y*", TickedArgument("a=*", "y*")),
        ("a=", TickedArgument("a")),
        ("b=c", TickedArgument("b=c")),
        ("ab=x*", TickedArgument("ab", "x*")),
    ],
)
def test_a_name_may_have_what_divides_it_from_its_pattern(
    gate: ScriptedGate, run: Run, typed: str, ticked: TickedArgument
) -> None:
    arguments: dict[str, Json] = {"a": "x", "a=*": "y", "b=c": 1, "ab": "x"}
    gate.put("7f3a", replace(question(**arguments), definition=""))
    run(f"{ALWAYS} --times 1 --vary {typed}")
    (one,) = gate.decided
    assert decoded(one.rule).ticked == (ticked,)


def test_the_rule_is_printed_before_it_is_saved(
    gate: ScriptedGate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.put("7f3a", ITEM, asking=AskingRules(rules=("no-delete", "default.delete-tools")))
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text))
    out = run("approve 7f3a --always --vary id --for 30d --session")
    for line in (
        "  agent    root\n",
        "  tool     write_query\n",
        "  answers  no-delete, default.delete-tools\n",
        "  bound    for 30 days, in session 1-2 alone\n",
        "  id       any value, or none\n",
        '  list     "groceries", exactly\n',
        "A call that a rule of the policy blocks stays blocked.\n",
    ):
        assert line in out
    assert asked == ["Approve this, and save the rule?"]


@pytest.mark.parametrize(
    ("typed", "code", "why"),
    [
        ("", "BOUND", "a rule needs a bound"),
        ("--vary id", "BOUND", "a rule needs a bound"),
        ("--for soon", "BOUND", "'soon' is not a time"),
        ("--for 400d", "RULE", "at most 365 days"),
        ("--times 1 --vary lst", "VARY", "no argument 'lst' .*\n.*did you mean `list`"),
        ("--times 1 --vary nothing", "VARY", "it has: `id`, `list`"),
        ("--times 1 --vary list=x*", "VARY", "'list' of this call is not like"),
        ("--times 1 --vary id=5", "VARY", "'id' of this call is not like"),
        ("--times 1 --vary id --vary id", "RULE", "twice"),
    ],
)
def test_what_cannot_be_saved_decides_nothing(
    gate: ScriptedGate, run: Run, typed: str, code: str, why: str
) -> None:
    gate.put("7f3a", ITEM)
    with pytest.raises(UsageError, match=why) as raised:
        run(f"{ALWAYS} {typed}")
    assert raised.value.code == f"E-APPROVAL-{code}"
    assert gate.decided == []


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("--vary sql", "'sql' decides what the call does"),
        ("--vary path", "give a pattern"),
        ("--vary path=*", "give a pattern"),
    ],
)
def test_arguments_that_decide(gate: ScriptedGate, run: Run, typed: str, why: str) -> None:
    gate.put("7f3a", NOTE, asking=FIXED)
    with pytest.raises(UsageError, match=f"(?s){why}.*man mcpwrap-policy"):
        run(f"{ALWAYS} --times 1 {typed}")
    run(f"{ALWAYS} --times 1 --vary path=/notes/*")
    assert len(gate.decided) == 1


def test_questions_that_get_no_rule(gate: ScriptedGate, run: Run) -> None:
    gate.put("7f3a", question(id=5))  # its definition has changed
    with pytest.raises(UsageError, match="has changed the tool"):
        run(f"{ALWAYS} --times 1")
    gate.put("7f3a", replace(ITEM, method=pin_question.METHOD, target="0 changes"))
    with pytest.raises(McpwrapError):
        run(f"{ALWAYS} --times 1")
    assert gate.decided == []


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("--vary id", "VARY"),
        ("--for 8h", "BOUND"),
        ("--for 10m --times 101", "TIMES"),
    ],
)
def test_options_that_need_always(gate: ScriptedGate, run: Run, typed: str, code: str) -> None:
    gate.put("7f3a", ITEM)
    with pytest.raises(UsageError) as raised:
        run(f"approve --yes 7f3a {typed}")
    assert raised.value.code == f"E-APPROVAL-{code}"
    assert gate.decided == []


def test_the_agents_own_account_gives_a_proof(
    gate: ScriptedGate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tty, "read_hidden", lambda _: "secret 12")
    gate.put("7f3a", ITEM, may_save="proof")  # it may answer without one, by `same_uid`
    run(f"{ALWAYS} --times 1")
    assert gate.decided[0].proof is Proof.PASSWORD
    run("approve --yes 7f3a")
    assert gate.decided[1].proof is Proof.NONE


def test_rules_are_listed(gate: ScriptedGate, run: Run) -> None:
    assert run("rules") == "no approval was saved as a rule\n"
    gate.rules = [rule("7f3a90c1"), rule("81b0", ticked=(), times=0, until=9e9, session="1-2")]
    head, first, second = run("rules").splitlines()
    assert head.split() == ["ID", "AGENT", "SERVER", "TOOL", "MAY", "DIFFER", "LEFT", "BY", "SINCE"]
    assert first.split()[:7] == ["7f3a90c1", "root", "sqlite", "write_query", "id=*", "20", "times"]
    assert "nothing     for " in second
    assert "in session 1-2 alone" in second
    (one, _) = json.loads(run("rules --json"))
    assert (one["id"], one["agent"], one["ticked"]) == ("7f3a90c1", "root", [{"name": "id"}])


def test_the_list_tells_any_value_from_a_pattern(gate: ScriptedGate, run: Run) -> None:
    gate.rules = [rule("7f3a", ticked=(TickedArgument("id"), TickedArgument("list", "gro*")))]
    assert " id=*, list=gro*  20 times" in run("rules")


def test_a_rule_is_shown_in_words(gate: ScriptedGate, run: Run) -> None:
    gate.rules = [rule("7f3a90c1"), rule("81b0")]
    out = run("rules show 7f")
    for line in (
        "  id       7f3a90c1\n",
        "  left     20 times\n",
        "  id       any value, or none\n",
        '  list     "groceries", exactly\n',
    ):
        assert line in out
    assert json.loads(run("rules show 7f --json"))["id"] == "7f3a90c1"
    gate.rules = [replace(rule("7f3a90c1"), approved="{}")]
    with pytest.raises(McpwrapError, match="of another version"):
        run("rules show 7f")


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("7f3a", ["81b0", "81c0"]),
        ("7 81b", ["81c0"]),
        ("81b0 81b", ["7f3a", "81c0"]),
        ("--all", []),
        ("--all --server todo", ["7f3a", "81b0"]),
        ("--all --server other", ["7f3a", "81b0", "81c0"]),
    ],
)
def test_rules_are_revoked(gate: ScriptedGate, run: Run, typed: str, left: list[str]) -> None:
    gate.rules = [rule("7f3a"), rule("81b0"), rule("81c0", server="todo")]
    run(f"rules revoke {typed}")
    assert [one.id for one in gate.rules] == left


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("revoke", "name the rules"),
        ("revoke 7f3a --all", "name the rules"),
        ("revoke 7f3a --server todo", "name the rules"),
        ("revoke 9", r"no approval rule has the ID '9' \[E-APPROVAL-NO-RULE\]"),
        ("revoke 7f3a 9", "no approval rule has the ID '9'"),
        ("revoke 81", r"2 approval rules .*AMBIGUOUS-ID\]\n.*name one: 81b0, 81c0"),
        ("show 9", "no approval rule"),
    ],
)
def test_unclear_rules_are_not_revoked(gate: ScriptedGate, run: Run, typed: str, why: str) -> None:
    gate.rules = [rule("7f3a"), rule("81b0"), rule("81c0")]
    with pytest.raises(UsageError, match=why):
        run(f"rules {typed}")
    assert len(gate.rules) == 3


def test_a_rule_that_is_gone_meanwhile_is_an_error(
    gate: ScriptedGate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpwrap.gate_client.approvals import ApprovalConnection

    monkeypatch.setattr(ApprovalConnection, "saved_rules", lambda _: [rule("7f3a")])
    with pytest.raises(McpwrapError):
        run("rules revoke 7f3a")

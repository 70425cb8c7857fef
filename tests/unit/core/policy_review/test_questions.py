"""Questions and refusals are read from the audit, with their answers."""

import pytest
from msgspec.structs import replace

from mcpwrap.core.audit.params import UnreadableParams
from mcpwrap.core.audit.records import Record
from mcpwrap.core.policy_review.questions import Answer, CallKey, QuestionReader
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.audit_records import record, sealed
from tests.unit.core.policy_review.history import asked, plain, read, refused

KEY = CallKey("sqlite", "t")
ONE: Json = {"x": 1}


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        (asked(1, "t", ONE), Answer.APPROVED),
        (asked(1, "t", ONE, "denied"), Answer.DENIED),
        (asked(1, "t", ONE, "expired"), Answer.NONE),
        (asked(1, "t", ONE, ""), Answer.NONE),
        # Allowed at once, by an approval that is valid for several calls.
        (
            [record(id=1, target="t", approval="q1", decision="approved", plain=plain("t", ONE))],
            Answer.APPROVED,
        ),
        # In the agent's own window, which the agent could answer itself.
        (asked(1, "t", ONE, by="uid 1000 in the agent's own window"), Answer.NONE),
        (asked(1, "t", ONE, "denied", by="uid 1000 in the agent's own window"), Answer.DENIED),
        # The same question: approved twice, and denied once.
        ([*asked(1, "t", ONE), *asked(1, "t", ONE, "denied")], Answer.DENIED),
        ([*asked(1, "t", ONE, "denied"), *asked(1, "t", ONE)], Answer.DENIED),
    ],
)
def test_a_question_has_one_answer(records: list[Record], answer: Answer) -> None:
    history = read(records).by_key[KEY]
    assert [q.answer for q in history.questions.values()] == [answer]
    assert history.with_answer(answer) == [ONE]
    assert history.refused == []


@pytest.mark.parametrize(
    ("records", "calls"),
    [
        (refused(1, "t", ONE), [ONE]),
        (refused(1, "t", ONE, "denied"), [ONE]),  # no approver could be asked
        (refused(1, "t", ONE, "a word of a later version"), [ONE]),
        ([*refused(1, "t", ONE), *asked(2, "t", ONE)], []),  # a person approved it later
        ([*asked(1, "t", ONE, "denied"), *asked(2, "t", ONE)], [ONE]),  # and here denied it, too
        (asked(1, "t", ONE, "expired"), [ONE]),
        (refused(1, "t", ONE, "limited"), None),
        (refused(1, "t", ONE, "allowed"), None),
        (refused(1, "t", ONE, "unaccepted"), None),
    ],
)
def test_refused_calls_must_not_pass(records: list[Record], calls: list[Json] | None) -> None:
    found = read(records).by_key
    assert (found[KEY].must_not_pass() if KEY in found else None) == calls


@pytest.mark.parametrize(
    "changed",
    [{"sender": "server"}, {"method": "prompts/get"}, {"id": None}],
)
def test_other_messages_are_left_out(changed: dict[str, object]) -> None:
    (one,) = refused(1, "t", ONE)
    assert read([replace(one, **changed)]).by_key == {}


def test_params_that_cannot_be_read_are_counted_by_question() -> None:
    reader = QuestionReader(None)
    about: dict[str, object] = {"id": 1, "target": "t", "approval": "q1"}
    reader.take(record(**about, decision="held", sealed=sealed(b"{}")))
    reader.take(record(**about, decision="approved", by="bob"))
    reader.take(record(id=2, target="t", approval="q2", decision="held", hash="00"))
    assert reader.unread() == {UnreadableParams.SEALED: 1, UnreadableParams.HASHED: 1}
    assert reader.by_key[KEY].with_answer(Answer.APPROVED) == []


@pytest.mark.parametrize(
    "arguments",
    [{"password": "correct horse"}, {"x": "[redacted by audit]"}, {"x": "ghp_" + "a1B2" * 9}],
)
def test_a_call_with_a_secret_is_left_out(arguments: Json) -> None:
    reader = read(asked(1, "t", arguments), refused(2, "t", arguments))
    assert reader.secret == 2
    assert reader.by_key[KEY].with_answer(Answer.APPROVED) == []


@pytest.mark.parametrize("arguments", [[1], "x", None])
def test_arguments_that_are_no_table_are_left_out(arguments: Json) -> None:
    assert read(refused(1, "t", arguments)).by_key.get(KEY) is None


def test_a_name_that_was_cut_is_left_out() -> None:
    (one,) = refused(1, "t", ONE)
    assert read([replace(one, target="t...")]).by_key == {}


def test_calls_that_passed_by_an_approval_rule_are_no_answers_of_a_person() -> None:
    rule = "rule 7f3a of bob (command)"
    reader = read(
        asked(1, "delete", {"id": 1}),
        [record(id=2, target="delete", decision="approved", approval="7f3a", by=rule,
                plain=plain("delete", {"id": 2}))],
    )  # fmt: skip
    (history,) = reader.by_key.values()
    assert history.with_answer(Answer.APPROVED) == [{"id": 1}]
    assert history.must_not_pass() == []

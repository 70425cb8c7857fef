"""Approval document: the text that is shown is approved; only equal questions have equal texts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.approval.client_forms import NO_CLIENT, FormAnswer
from mcpwrap.core.approval.document import Question, digest, document, read
from mcpwrap.core.gate.ports import NO_APPROVALS, ApprovalRequest
from mcpwrap.core.wire.approver_passwords import Approver, Approvers, decode, encode
from tests.unit.core.approval.questions import question
from tests.unit.core.json_values import FINITE

all_params = st.dictionaries(st.text(), FINITE, max_size=4)
OTHERS: list[dict[str, object]] = [
    {"agent_uid": 1001}, {"server": "git"}, {"method": "prompts/get"}, {"target": "u"},
    {"definition": "00"}, {"policy": "12ac"}, {"params": {"a": 1.0}},
]  # fmt: skip


@given(all_params)
def test_a_document_has_all_of_its_question(params: dict[str, object]) -> None:
    asked = question(params)  # type: ignore[arg-type]
    shown = document(asked)
    assert repr(read(shown)) == repr(msgspec.structs.replace(asked, params=read(shown).params))
    assert document(read(shown)) == shown
    turned = question(dict(reversed(params.items())))  # type: ignore[arg-type]
    assert digest(document(turned)) == digest(shown)


@pytest.mark.parametrize("other", OTHERS)
def test_each_field_changes_the_digest(other: dict[str, object]) -> None:
    asked = question({"a": 1})
    changed = msgspec.structs.replace(asked, **other)
    assert digest(document(changed)) != digest(document(asked))


@pytest.mark.parametrize("shown", [b"", b"{}", b"[]", b"\xff", document(question({}))[:-1]])
def test_malformed_documents_are_refused(shown: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        read(shown)


def test_documents_of_another_version_are_refused() -> None:
    shown = document(question({}))
    for changed in (
        shown.replace(b"{", b'{"more":1,', 1),
        shown.replace(b'"params":{}', b'"params":[]'),
    ):
        assert changed != shown
        with pytest.raises(msgspec.MsgspecError):
            read(changed)


def test_without_an_approval_port_requests_are_refused() -> None:
    wanted = ApprovalRequest(
        method="m", target="t", definition="", params={}, rule="r", message="", expires_s=1.0
    )
    answer = NO_APPROVALS.ask(1, wanted)
    assert answer.why == "`mcpwrap run --no-approver` asks no person"
    assert answer.cause == "no-approver"
    NO_APPROVALS.withdraw(1, will_resume=True)
    assert not NO_APPROVALS.asks_by_form(NO_CLIENT, in_client=True)
    NO_APPROVALS.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)


def test_who_has_a_password() -> None:
    known = Approvers(by_user={"bob": Approver(uid=1001, hash="$argon2id$x")})
    assert decode(encode(known).encode()) == known
    assert decode(b"{}") == Approvers()
    for wrong in (b'{"by_user":{"bob":{"uid":1}}}', b'{"users":{}}', b"", b'{"by_user":[]}'):
        with pytest.raises(msgspec.MsgspecError):
            decode(wrong)


def test_a_question_has_nothing_else() -> None:
    assert set(Question.__struct_fields__) == {
        "agent_uid", "server", "method", "target", "definition", "params", "policy",
    }  # fmt: skip

"""Records of clients that were asked by elicitation."""

import msgspec
import pytest

from mcpwrap.core.approval import client_forms
from mcpwrap.core.approval.client_forms import (
    AGAIN_S,
    MAX_CLIENTS,
    NO_CLIENT,
    ClientForms,
    ClientIdentity,
    FormAnswer,
    FormRecord,
)

CODEX = ClientIdentity("codex", "1.0")
BY_ITSELF = "declares forms, and answers them by itself: asked elsewhere"
NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("answers", "may_draw", "text"),
    [
        ([], True, ""),  # to be measured
        ([FormAnswer.BY_ITSELF], False, BY_ITSELF),
        ([FormAnswer.APPROVED], True, "draws forms"),
        ([FormAnswer.DENIED], True, "draws forms"),
        # A program that has an interactive mode and one for batches.
        (
            [FormAnswer.BY_ITSELF, FormAnswer.DENIED],
            True,
            "draws forms, and has answered some by itself",
        ),
        (
            [FormAnswer.APPROVED, FormAnswer.BY_ITSELF],
            True,
            "draws forms, and has answered some by itself",
        ),
    ],
)
def test_a_client_is_measured_once(answers: list[FormAnswer], text: str, *, may_draw: bool) -> None:
    forms = ClientForms()
    for answer in answers:
        assert forms.take(CODEX, answer, NOW)
        assert not forms.take(CODEX, answer, NOW + 1)  # nothing new
    assert forms.may_draw(CODEX, NOW + AGAIN_S) is may_draw
    assert forms.may_draw(CODEX, NOW + AGAIN_S + 1)
    assert forms.may_draw(ClientIdentity("codex", "1.1"), NOW)  # another version
    assert [one.describe() for one in forms.records()] == ([text] if text else [])
    again = ClientForms(client_forms.decode(client_forms.encode(forms.records())))
    assert again.records() == forms.records()


def test_a_client_that_was_measured_again_rests_for_as_long() -> None:
    forms = ClientForms()
    forms.take(CODEX, FormAnswer.BY_ITSELF, NOW)
    assert forms.take(CODEX, FormAnswer.BY_ITSELF, NOW + AGAIN_S)
    assert not forms.may_draw(CODEX, NOW + AGAIN_S + 1)


def test_a_closed_form_tells_nothing() -> None:
    forms = ClientForms()
    assert not forms.take(CODEX, FormAnswer.CLOSED, NOW)
    assert forms.records() == []


def test_records_of_two_files_are_one_with_the_later_times() -> None:
    first, second = ClientForms(), ClientForms()
    first.take(CODEX, FormAnswer.BY_ITSELF, NOW)
    second.take(CODEX, FormAnswer.DENIED, NOW + 1)
    for order in ((first, second), (second, first)):
        [both] = ClientForms([one for forms in order for one in forms.records()]).records()
        assert (both.by_itself_at, both.drawn_at) == (NOW, NOW + 1)


def test_a_client_without_a_name_is_not_remembered() -> None:
    forms = ClientForms()
    assert not forms.take(NO_CLIENT, FormAnswer.BY_ITSELF, NOW)
    assert forms.records() == []


def test_so_many_clients_are_remembered() -> None:
    forms = ClientForms()
    for number in range(MAX_CLIENTS + 1):
        forms.take(ClientIdentity(str(number)), FormAnswer.DENIED, NOW)
    assert [one.name for one in forms.records()] == [str(n) for n in range(1, MAX_CLIENTS + 1)]
    more = [*forms.records(), FormRecord(name="last", version="")]
    assert [one.name for one in ClientForms(more).records()][-2:] == [str(MAX_CLIENTS), "last"]
    assert len(ClientForms(more).records()) == MAX_CLIENTS


@pytest.mark.parametrize("text", [b"", b"[{}]", b'[{"name":"a","version":"1","more":1}]'])
def test_a_damaged_file_is_an_error(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        client_forms.decode(text)

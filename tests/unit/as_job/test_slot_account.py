"""Account of a run slot: no other account's processes are ever ended."""

import os

import pytest

from mcpwrap.as_job import slot_account
from mcpwrap.as_job.slot_account import NotASlotError, SlotAccount
from mcpwrap.core import names


@pytest.fixture(autouse=True)
def _no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail instead of ending all processes of the account that runs the tests."""

    def refuse(pid: int, number: int) -> None:
        pytest.fail(f"kill({pid}, {number})")

    monkeypatch.setattr(os, "kill", refuse)


@pytest.mark.parametrize(
    ("uid", "name"),
    [
        (0, "root"),
        (0, "mcpj-python-0"),  # a second name of root
        (19_999, "mcpj-python-0"),
        (40_000, "mcpj-python-0"),
        (20_000, "mcpw-python"),  # a server
        (20_000, ""),
    ],
)
def test_other_accounts_are_refused(uid: int, name: str) -> None:
    with pytest.raises(NotASlotError, match="E-SLOT-ACCOUNT"):
        SlotAccount(uid, name)


@pytest.mark.parametrize("uid", [20_000, 39_999])
def test_an_account_of_a_run_slot_is_taken(uid: int) -> None:
    assert SlotAccount(uid, "mcpj-python-0").name == "mcpj-python-0"


def test_the_account_of_the_tests_is_refused() -> None:
    with pytest.raises(NotASlotError):
        SlotAccount.of_this_process()


def test_nothing_is_ended_under_another_account() -> None:
    account = SlotAccount(20_000, "mcpj-python-0")  # which this process does not have
    with pytest.raises(NotASlotError, match="has changed"):
        account.end_other_processes()


def test_the_uids_are_those_of_servers() -> None:
    assert (slot_account.FIRST_UID, slot_account.LAST_UID) == (names.FIRST_UID, names.LAST_UID)

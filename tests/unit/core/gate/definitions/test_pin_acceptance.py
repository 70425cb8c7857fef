"""Pins in sessions: first use, and what a person decides while a session runs."""

from typing import Literal

import pytest

from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.gate.definitions.pinned_world import (
    ABOUT,
    HELD,
    MODERN,
    PROMPTS,
    WORSE,
    A,
    B,
    Session,
    Store,
    accepted,
)
from tests.unit.core.scripted import ScriptedPolicy


def test_all_pages_of_the_first_list_are_accepted_and_nothing_else() -> None:
    store = Store()
    session = Session(store)
    assert session.lists(A, following="2") == ["a"]
    assert session.calls("b") != ""  # it was not listed
    assert Session(store, "s2", uid=1001).lists(A, {"name": "other"}) == ["a"]
    assert session.lists(B, cursor="2") == ["b"]
    assert session.lists({"name": "c"}, cursor="2") == []  # no page is the last one twice
    assert session.lists(A, following="2") == ["a"]
    assert session.lists({"name": "d"}, cursor="2") == []
    assert store.names() == ["other", "c", "d"]


def test_a_list_that_is_begun_again_is_not_the_first_any_more() -> None:
    store = Store()
    session = Session(store)
    assert session.lists(A, following="2") == ["a"]
    assert session.lists(A, following="2") == ["a"]
    assert session.lists(B, cursor="2") == []
    assert store.names() == ["b"]


def test_a_page_without_its_list_accepts_nothing() -> None:
    store = Store()
    session = Session(store)
    assert session.lists(B, cursor="7") == []
    assert (store.offers, session.calls("b")) == (
        [],
        HELD.replace('"a"', '"b"').replace(" a`", " b`"),
    )
    assert session.calls("a") == ""  # the first use is still to come
    assert session.lists(A, B) == ["a", "b"]
    assert session.calls("b") == ""


def test_an_empty_list_is_no_first_use() -> None:
    """A server without its login may have no tools; it did not say anything that could change."""
    store = Store()
    assert Session(store, "s0").lists() == []
    assert Session(store, "s1").lists(A) == ["a"]
    assert Session(store, "s2").lists(B) == []


def test_what_cannot_be_recorded_at_first_use_is_left_out() -> None:
    store = Store(broken="the disk is full")
    session = Session(store)
    assert session.lists(A, B) == []
    why = "not accepted: the disk is full"
    left_out = f"left out a ({why}), b ({why})"
    assert session.notes == [f"logged: the response to tools/list id=1: {left_out}"]
    assert session.calls("a") == HELD
    store.broken = ""
    assert session.lists(A, B) == ["a", "b"]
    assert session.calls("a") == ""


def test_where_pins_are_strict_the_first_definitions_wait_too() -> None:
    store = Store("strict")
    session = Session(store)
    assert "E-PINS-HELD" in session.calls("a")
    assert session.lists(A, B) == []
    assert store.names() == ["a", "b"]
    store.accept("a")
    session.renew()
    assert session.lists(A, B) == ["a"]
    assert session.calls("a") == ""
    # What a person has decided holds when the pins are not strict any more.
    store.mode = "first-use"
    assert Session(store, "s2").lists(A, B, {"name": "c"}) == ["a"]


def test_what_a_person_has_rejected_stays_held_back() -> None:
    store = accepted(A)
    session = Session(store)
    session.lists(WORSE)
    store.reject("a")
    assert session.renew() == []
    text = session.calls("a")
    assert text.startswith(
        "Refused by mcpwrap: a person has rejected the tool \"a\" of 'git' as it is"
    )
    assert "`mcpwrap tools diff git a` shows the change" in text  # without the name it does not
    assert text.endswith("[E-PINS-REJECTED]")
    assert session.notes[-1] == "unaccepted: tools/call a id=2: its definition is rejected"
    other = Session(store, "s2")
    assert other.calls("a") == text  # of an account to which the server lists that
    assert other.lists(WORSE) == []
    assert other.notes[-1].endswith("left out a (rejected)")
    assert Session(store, "s3", uid=1001).calls("a") == ""
    assert other.lists(A) == ["a"]


def test_what_is_accepted_appears_in_a_running_session() -> None:
    store = accepted(A)
    session = Session(store)
    session.ask("initialize", {}, ABOUT)
    session.lists(WORSE, B)
    session.lists({"name": "p"}, method=PROMPTS)
    store.accept("b")
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert session.renew() == [changed]
    assert session.renew() == []  # once
    assert session.lists(WORSE, B) == ["b"]
    assert session.calls("b") == ""
    assert session.calls("a") == HELD
    store.accept("a")
    assert session.renew() == [changed]
    assert session.calls("a") == ""


def test_an_agent_that_has_nothing_held_back_is_not_notified() -> None:
    store = accepted(A)
    first, second = Session(store, "s1"), Session(store, "s2")
    for session in (first, second):
        session.ask("initialize", {}, ABOUT)
    first.lists(A, B)
    second.lists(A)
    store.accept()
    assert len(first.renew()) == 1
    assert second.renew() == []


def test_an_agent_without_handshake_is_notified_where_it_listens() -> None:
    store = accepted(A)
    session = Session(store)
    for id_, list_ in (("l1", "tools"), (2, "prompts"), ("l3", "tools")):
        params: dict[str, Json] = {
            "notifications": {f"{list_}ListChanged": True, "resourcesListChanged": "true"},
            "_meta": MODERN,
        }
        session.says({"id": id_, "method": "subscriptions/listen", "params": params})
    session.says({"id": "l4", "method": "subscriptions/listen", "params": {"_meta": MODERN}})
    session.says({"method": "notifications/cancelled", "params": {"requestId": "l3"}})
    session.lists(WORSE)
    store.accept()
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": "l1"}}
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta}
    assert session.renew() == [changed]


@pytest.mark.parametrize("what", ["approved", "void"])
def test_a_call_that_was_approved_is_refused_if_its_tool_has_changed_meanwhile(
    what: Literal["approved", "void"],
) -> None:
    policy = ScriptedPolicy({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    for listed, refusal in ((A, ""), (WORSE, HELD)):
        session = Session(accepted(A), policy=policy)
        session.lists(A)
        session.says({"id": 99, "method": "tools/call", "params": {"name": "a"}})
        session.lists(listed)
        policy.judgement_of["tools/call a"] = Judgement(Decision.ALLOW)
        assert session.is_told(1, what) == refusal
        policy.judgement_of["tools/call a"] = Judgement(Decision.NEEDS_APPROVAL, "all")


def test_a_change_is_offered_once_in_a_session() -> None:
    store = accepted(A, B)
    session = Session(store)
    for _ in range(3):
        session.lists(WORSE, B)
    assert [one.entries[0][0] for one in store.offers] == ["a"]
    session.lists({**WORSE, "title": "x"}, B)
    assert len(store.offers) == 2
    assert len(store.names()) == 1  # of one account the last one counts
    session.lists(A, B)
    assert store.offers[-1].accepted_again == ("a",)
    assert store.names() == []
    session.lists(A, B)
    assert len(store.offers) == 3


def test_what_is_held_for_the_account_already_is_not_offered_again() -> None:
    store = accepted(A)
    Session(store).lists(WORSE)
    assert len(store.offers) == 1
    assert Session(store, "s2").lists(WORSE) == []
    assert len(store.offers) == 1
    Session(store, "s3", uid=1001).lists(WORSE)  # another account is
    assert len(store.offers) == 2


def test_what_the_store_does_not_take_is_offered_at_the_next_list() -> None:
    store = accepted(A)
    store.is_busy = True
    session = Session(store)
    assert session.lists(WORSE) == []
    store.is_busy = False
    assert session.lists(WORSE) == []
    assert store.names() == ["a"]


def test_logins_with_different_tools_do_not_withdraw_the_question_of_each_other() -> None:
    store = accepted(A)
    first, second = Session(store, "s1"), Session(store, "s2")
    second.lists(WORSE)
    first.renew()
    first.lists(A)
    assert store.names() == []
    second.renew()
    second.lists(WORSE)
    assert store.names() == ["a"]
    store.accept()
    for session, tool in ((first, A), (second, WORSE)):
        session.renew()
        assert session.lists(tool) == ["a"]
        assert session.calls("a") == ""

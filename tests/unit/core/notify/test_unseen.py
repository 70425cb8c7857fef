"""New pending requests: each is announced once, also when the list is sent repeatedly."""

import msgspec

from mcpwrap.core.notify.unseen import UnseenItems
from mcpwrap.core.wire.approval_socket import Pending

ONE = Pending(
    id="", digest="", size=0, agent_uid=0, server="", session="", method="", target="", rule="",
    message="", asked_at=0.0, expires_at=0.0, times=1, waiting=1, may="no",
)  # fmt: skip


def pending(*ids: str) -> list[Pending]:
    return [msgspec.structs.replace(ONE, id=id_) for id_ in ids]


def test_only_requests_that_were_not_pending_are_new() -> None:
    newcomers = UnseenItems()
    listed = "ab", "abc", "cb", "", "c"
    found = [[one.id for one in newcomers.unseen(pending(*ids))] for ids in listed]
    assert found == [["a", "b"], ["c"], [], [], ["c"]]


def test_a_repeated_request_is_not_new() -> None:
    newcomers = UnseenItems()
    [one] = newcomers.unseen(pending("a"))
    assert newcomers.unseen([msgspec.structs.replace(one, times=2)]) == []


def test_the_last_pending_requests_are_known() -> None:
    newcomers = UnseenItems()
    assert not newcomers.was_pending("a")
    newcomers.unseen(pending("a"))
    assert newcomers.was_pending("a")
    newcomers.unseen(pending("b"))
    assert not newcomers.was_pending("a")

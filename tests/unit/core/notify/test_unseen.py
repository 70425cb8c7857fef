"""New pending requests: each is announced once, however often the list comes."""

import msgspec

from mcpwrap.core.notify.unseen import UnseenItems
from mcpwrap.core.wire.approval_socket import Pending

ONE = Pending(
    id="", digest="", size=0, agent_uid=0, server="", session="", method="", target="", rule="",
    message="", asked_at=0.0, expires_at=0.0, times=1, waiting=1, may="no",
)  # fmt: skip


def pending(*ids: str) -> list[Pending]:
    return [msgspec.structs.replace(ONE, id=id_) for id_ in ids]


def test_only_what_did_not_wait_before_is_new() -> None:
    newcomers = UnseenItems()
    listed = "ab", "abc", "cb", "", "c"
    found = [[one.id for one in newcomers.unseen(pending(*ids))] for ids in listed]
    assert found == [["a", "b"], ["c"], [], [], ["c"]]


def test_what_is_asked_again_is_not_new() -> None:
    newcomers = UnseenItems()
    [one] = newcomers.unseen(pending("a"))
    assert newcomers.unseen([msgspec.structs.replace(one, times=2)]) == []


def test_it_is_known_what_waits() -> None:
    newcomers = UnseenItems()
    assert not newcomers.was_pending("a")
    newcomers.unseen(pending("a"))
    assert newcomers.was_pending("a")
    newcomers.unseen(pending("b"))
    assert not newcomers.was_pending("a")

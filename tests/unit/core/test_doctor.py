"""Results of `doctor`, each with a fix if there is something to do; and who may give approvals."""

import msgspec
import pytest

from mcpwrap.core.doctor import ApproverAccounts, approver_checks, failed, good, unknown, warned

WATCH = "its programs can watch its password being typed"
OWN = "an account's own calls need its password, or another account"
OTHERS = "its programs can approve calls of other accounts"


@pytest.mark.parametrize(
    ("members", "with_password", "found"),
    [
        ("", "", [("approvals", "warning", "only root can give one")]),
        ("bob", "", [("approvals", "good", "members: bob")]),
        (
            "",
            "carol",
            [
                ("approvals", "good", "by password: carol"),
                ("approvals of calls of alice, zoe", "warning", OWN),
            ],
        ),
        (
            "dora bob",
            "alice",
            [
                ("approvals", "good", "members: bob, dora; by password: alice"),
                ("approvals by alice", "warning", f"under this account too: {WATCH}"),
            ],
        ),
        (
            "alice",
            "",
            [
                ("approvals", "good", "members: alice"),
                ("approvals of calls of alice", "warning", OWN),
                ("approvals by alice", "warning", f"under this account too: {OTHERS}"),
            ],
        ),
        (
            "alice",
            "alice",
            [
                ("approvals", "good", "members: alice; by password: alice"),
                ("approvals by alice", "warning", f"too: {WATCH}, and {OTHERS}"),
            ],
        ),
    ],
)
def test_who_can_approve(
    members: str, with_password: str, found: list[tuple[str, str, str]]
) -> None:
    said = approver_checks(
        ApproverAccounts(
            agents={"alice", "zoe"},
            members=members.split(),
            with_password=with_password.split(),
        )
    )
    assert [(one.what, one.state) for one in said] == [f[:2] for f in found]
    for one, (_, state, text) in zip(said, found, strict=True):
        assert one.found.endswith(text)
        assert bool(one.fix) == (state == "warning")


def test_what_root_wrote_is_said_too() -> None:
    found = ApproverAccounts(agents={"alice"}, members=[], with_password=[], same_uid=True)
    assert [(one.what, one.state) for one in approver_checks(found)] == [
        ("approvals by agents' accounts", "warning")
    ]
    found = ApproverAccounts(agents={"alice"}, members=["bob"], with_password=[], same_uid=True)
    assert [one.what for one in approver_checks(found)][1:] == ["approvals"]


def test_with_polkit_each_account_can_prove_its_own_approval() -> None:
    found = ApproverAccounts(agents={"zoe"}, members=[], with_password=["carol"], has_polkit=True)
    assert [one.what for one in approver_checks(found)] == ["approvals"]


def test_checks_are_written_for_machines_as_they_are() -> None:
    found = [good("Squid", "5.7"), warned("accounts", "a", "b"), failed("kernel", "c", "d")]
    found.append(unknown("watch", "e", "f"))
    assert msgspec.to_builtins(found) == [
        {"what": "Squid", "state": "good", "found": "5.7", "fix": ""},
        {"what": "accounts", "state": "warning", "found": "a", "fix": "b"},
        {"what": "kernel", "state": "failed", "found": "c", "fix": "d"},
        {"what": "watch", "state": "unknown", "found": "could not be checked: e", "fix": "f"},
    ]

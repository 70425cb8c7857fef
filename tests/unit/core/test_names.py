"""Names that are safe as a file, a unit instance and an account; and the UID of each."""

from ipaddress import IPv4Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpwrap.core import names
from mcpwrap.core.wire.sni_front_file import ADDRESSES
from tests.unit.core.bad_names import BAD_NAMES


@pytest.mark.parametrize("name", ["a", "git", "a-b_c9", "a-", "a" * names.MAX_NAME_CHARS])
def test_a_good_name_makes_a_login_that_useradd_takes(name: str) -> None:
    assert names.is_server_name(name)
    assert len(names.account_of(name)) <= 32


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("git", "mcpw-git"),
        ("py/0", "mcpj-py-0"),
        ("a-1/12", "mcpj-a-1-12"),  # the last number is the slot's
        (f"{'a' * names.MAX_POOL_CHARS}/63", f"mcpj-{'a' * names.MAX_POOL_CHARS}-63"),
    ],
)
def test_an_account_is_named_after_its_server_or_slot(name: str, account: str) -> None:
    assert names.account_of(name) == account
    assert names.name_of(account) == name
    assert len(account) <= 32
    assert names.is_slot_name(name) == (account[:5] == names.JOB_PREFIX)


@pytest.mark.parametrize("account", ["mcpj-", "mcpj-py", "mcpj-py-x", "mcpj-py-²"])
def test_an_account_of_somebody_else_is_no_slots(account: str) -> None:
    assert names.name_of(account) == account


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_none(name: str) -> None:
    assert not names.is_server_name(name)


@pytest.mark.parametrize(
    ("untrusted_name", "taken", "name"),
    [
        ("git", (), "git"),
        ("My Server!", (), "my-server"),
        ("@modelcontextprotocol/server-github", (), "modelcontextprotocol-serve"),
        ("Größe", (), "groe"),  # a letter that does not decompose to ASCII is left out
        ("サーバー", (), "server"),
        ("", (), "server"),
        ("__x__", (), "x"),
        ("7zip", (), "mcp-7zip"),
        ("a_b--c", (), "a_b--c"),
        ("git\n", (), "git"),
        ("Git", ("git",), "git-2"),
        ("git", ("git", "git-2"), "git-3"),
        ("a" * 40, (), "a" * 26),
        ("a" * 40, ("a" * 26,), "a" * 24 + "-2"),
        ("a" * 23 + "--b", ("a" * 23 + "--b",), "a" * 23 + "-2"),
    ],
)
def test_a_server_gets_a_name(untrusted_name: str, taken: tuple[str, ...], name: str) -> None:
    assert names.server_name_for(untrusted_name, taken) == name


@given(st.text(), st.sets(st.sampled_from(["a", "server", "mcp-1", "x"])))
def test_a_name_that_is_given_is_one_and_free(untrusted_name: str, taken: set[str]) -> None:
    name = names.server_name_for(untrusted_name, taken)
    assert names.is_server_name(name)
    assert name not in taken
    assert names.server_name_for(name) == name


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        ("postgres-ci", 27514),
        ("git-b", 27514),
        ("sqlite-api", 26136),
        ("aws-remote", 26136),
        ("jira-3", 32089),
        ("linear-server", 32089),
        ("x23306", 31726),
        ("github", 31726),
    ],
)
def test_the_preferred_uid_never_changes(name: str, uid: int) -> None:
    assert names.preferred_uid(name) == uid


@given(st.text())
@example("")
def test_the_preferred_uid_is_in_our_range(name: str) -> None:
    assert names.FIRST_UID <= names.preferred_uid(name) <= names.LAST_UID


@pytest.mark.parametrize(("uid", "after"), [(20_000, 20_001), (39_998, 39_999), (39_999, 20_000)])
def test_after_the_last_uid_comes_the_first(uid: int, after: int) -> None:
    assert names.next_uid(uid) == after


@pytest.mark.parametrize(
    ("uid", "address"),
    [
        (20_000, "127.77.0.0"),
        (20_001, "127.77.0.1"),
        (20_255, "127.77.0.255"),
        (20_256, "127.77.1.0"),
        (39_999, "127.77.78.31"),
    ],
)
def test_each_uid_has_an_egress_address_of_its_own(uid: int, address: str) -> None:
    assert names.egress_address(uid) == address


def test_no_two_uids_share_an_egress_address() -> None:
    every_uid = range(names.FIRST_UID, names.LAST_UID + 1)
    assert len({names.egress_address(uid) for uid in every_uid}) == len(every_uid)
    assert all(IPv4Address(names.egress_address(uid)) in ADDRESSES for uid in every_uid)


@pytest.mark.parametrize(
    ("instance", "address"),
    [
        ("proxy-1", "127.77.128.1"),
        ("proxy-300", "127.77.129.44"),
        ("proxy-9999", "127.77.167.15"),
        ("intercept-1", "127.77.192.1"),
        ("intercept-9999", "127.77.231.15"),
    ],
)
def test_an_instance_of_squid_is_asked_at_an_address_that_no_wrapper_has(
    instance: str, address: str
) -> None:
    assert names.health_address(instance) == address
    assert IPv4Address(names.egress_address(names.LAST_UID)) < IPv4Address(address)
    assert IPv4Address(address) in ADDRESSES


@pytest.mark.parametrize(
    ("uid", "is_one"),
    [
        (0, False),
        (999, False),
        (1000, True),
        (19_999, True),
        (20_000, False),
        (39_999, False),
        (40_000, True),
        (65_534, False),
        (65_535, True),
    ],
)
def test_accounts_of_persons(uid: int, *, is_one: bool) -> None:
    assert names.is_person(uid) is is_one

"""What `apply` does not do, because the machine has changed since it looked."""

import pytest

from mcpwrap.as_root import carry_out
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts
from mcpwrap.plan import steps


@pytest.mark.parametrize(
    ("owner", "running", "problem"),
    [
        ("zed", frozenset(), "UID 31726 has come to belong to 'zed'"),
        (None, frozenset({31_726}), "UID or GID 31726 has come to belong to a process"),
    ],
)
def test_no_account_is_made_with_an_id_that_another_has_got(
    owner: str | None, running: frozenset[int], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "name_of", lambda _: owner)
    monkeypatch.setattr(accounts, "uid_of", lambda _: None)
    monkeypatch.setattr(accounts, "running_ids", lambda: running)
    monkeypatch.setattr(carry_out, "run", lambda *_: pytest.fail("something was done"))
    with pytest.raises(McpwrapError, match=problem):
        carry_out.carry_out(steps.MakeAccount("mcpw-github", 31_726))

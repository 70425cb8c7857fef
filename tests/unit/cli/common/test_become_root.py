"""Commands that only root may run, as another account types them."""

import os

import pytest

from mcpwrap.cli.common.become_root import become_root_program
from mcpwrap.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "command", "fix"),
    [
        (("apply",), "", "run `sudo mcpwrap apply`"),
        # The words of root's program are not those of the command.
        (("passwd", "bob"), "approvals passwd bob", "run `sudo mcpwrap approvals passwd bob`"),
    ],
)
def test_another_account_is_told_the_command_to_type(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], command: str, fix: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError) as refused:
        become_root_program(*arguments, command=command)
    assert refused.value.code == "E-USAGE-NEEDS-ROOT"
    assert fix in str(refused.value)

"""Name of a proposed server: not that of a former one, whose secrets are still there."""

import pytest

from mcpwrap.config.proposal import expect_nobodys
from mcpwrap.errors import UsageError


def test_who_was_here_before_keeps_the_name() -> None:
    with pytest.raises(UsageError, match=r"gh, jira: .* still exist; nothing was changed"):
        expect_nobodys(["jira", "new", "gh"], {"gh": 1, "jira": 2, "time": 3})
    expect_nobodys(["new"], {"gh": 1})

"""Name of a proposed server: not that of a removed one, whose secrets still exist."""

import pytest

from mcpwrap.config.proposal import expect_nobodys
from mcpwrap.errors import UsageError


def test_the_name_of_a_removed_server_is_refused() -> None:
    with pytest.raises(UsageError, match=r"gh, jira: .* still exist; nothing was changed"):
        expect_nobodys(["jira", "new", "gh"], {"gh": 1, "jira": 2, "time": 3})
    expect_nobodys(["new"], {"gh": 1})

"""Where a server's things are: on a path of its own, whatever its name."""

import pytest

from mcpwrap.plan import paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.spec("git"), "/var/lib/mcpwrap/servers/git.json"),
        (paths.sysusers("git"), "/var/lib/mcpwrap/sysusers/git.conf"),
        (paths.drop_in("git"), "/etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf"),
        (paths.link("git"), "/var/lib/mcpwrap/bin/mcp-wrapper-git"),
        (paths.socket_unit("git"), "mcpwrap@git.socket"),
        (paths.service_unit("git"), "mcpwrap@git.service"),
    ],
)
def test_where_it_is(path: str, expected: str) -> None:
    assert path == expected

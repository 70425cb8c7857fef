"""What is right and not yet carried out is refused, all of it, so that nobody relies on it."""

import pytest

from mcpwrap.config.model import ConfigError
from mcpwrap.config.parse import parse
from mcpwrap.plan.unsupported import refuse
from tests.unit.config.places import BARE, ENV, LIMITS, LOCAL, OURS, Place, source


@pytest.mark.parametrize(
    ("place", "line", "keys"),
    [
        (BARE, "url = 'https://x.example/'", ["url"]),
        (ENV, "A = '${KEY}'", ["env.A"]),
        (OURS, "egress = ['x.example']", ["egress"]),
        (OURS, "direct = ['10.0.0.5:5432']", ["direct"]),
        (OURS, "workspace = ['/home/alice:ro']", ["workspace"]),
        (OURS, "secret_files = ['KEY']", ["secret_files"]),
        (OURS, "relay = 'direct'", ["relay"]),
        (OURS, "relay = 'direct'\negress = ['x.example']", ["egress", "relay"]),
    ],
)
def test_what_is_not_carried_out_is_refused(place: Place, line: str, keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse(parse([source(place.with_line(line))]))
    found = [(problem.table, problem.key) for problem in caught.value.problems]
    table = "[mcp_servers.a.mcpwrap]" if place is OURS else "[mcp_servers.a]"
    assert found == [(table, key) for key in keys]
    assert {problem.file for problem in caught.value.problems} == {"f.toml"}


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (LOCAL, ""),
        (ENV, "A = 'b'"),
        (OURS, "state = true\nshared = true\nrelay = 'gate'\negress = []"),
        (LIMITS, "tasks = 5"),
    ],
)
def test_what_is_carried_out_is_not_refused(place: Place, line: str) -> None:
    config = parse([source(place.with_line(line))])
    refuse(config)
    assert list(config.servers) == ["a"]

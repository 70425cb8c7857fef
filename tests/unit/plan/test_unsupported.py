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
    ],
)
def test_what_is_not_carried_out_is_refused(place: Place, line: str, keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse(parse([source(place.with_line(line))]))
    found = [(problem.table, problem.key) for problem in caught.value.problems]
    assert found == [("[mcp_servers.a]", key) for key in keys]
    assert {problem.file for problem in caught.value.problems} == {"f.toml"}


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (LOCAL, ""),
        (ENV, "A = '${KEY}'"),
        (OURS, "state = true\nshared = true\nrelay = 'direct'\negress = []"),
        (OURS, "workspace = ['/home/alice/project:rw']\nprotect = false"),
        (LIMITS, "tasks = 5"),
    ],
)
def test_what_is_carried_out_is_not_refused(place: Place, line: str) -> None:
    config = parse([source(place.with_line(line))])
    refuse(config)
    assert list(config.servers) == ["a"]

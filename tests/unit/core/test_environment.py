"""The environment of a server has what we list, and nothing else."""

import pytest

from mcpwrap.core.environment import PATH, build

ALWAYS = {
    "PATH": PATH,
    "HOME": "/h",
    "USER": "mcpw-a",
    "LOGNAME": "mcpw-a",
    "TMPDIR": "/t",
    "LANG": "C.UTF-8",
}


@pytest.mark.parametrize(
    ("inherited", "declared", "more"),
    [
        ({}, {}, {}),
        ({"TZ": "UTC"}, {"KEY": "1"}, {"TZ": "UTC", "KEY": "1"}),
        ({"TZ": "UTC"}, {"TZ": "Asia/Tokyo"}, {"TZ": "Asia/Tokyo"}),  # the operator wins
        ({"LANG": "de_DE.UTF-8"}, {}, {"LANG": "de_DE.UTF-8"}),
        ({}, {"PATH": "/opt/bin", "HOME": ""}, {"PATH": "/opt/bin", "HOME": ""}),
    ],
)
def test_the_environment_is_built_from_nothing(
    inherited: dict[str, str], declared: dict[str, str], more: dict[str, str]
) -> None:
    built = build(account="mcpw-a", home="/h", tmp="/t", inherited=inherited, declared=declared)
    assert built == ALWAYS | more

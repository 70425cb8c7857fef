"""The environment of a server has what we list, and nothing else."""

import pytest

from mcpwrap.core.environment import PATH, build, filled_in
from mcpwrap.core.spec import SecretPart, Template

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


KEY, OTHER = SecretPart("KEY"), SecretPart("OTHER")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ((), ""),
        (("a", "b"), "ab"),
        ((KEY,), "s3cret"),
        (("Bearer ", KEY, "\n"), "Bearer s3cret\n"),
        ((KEY, KEY), "s3crets3cret"),
        ((OTHER, KEY), "${KEY}s3cret"),  # what a secret contains is never looked at again
        (("${KEY}",), "${KEY}"),  # nor is what the operator wrote
    ],
)
def test_a_secret_comes_in_its_place(template: Template, value: str) -> None:
    assert filled_in(template, {"KEY": "s3cret", "OTHER": "${KEY}"}) == value


def test_a_secret_that_is_not_there_is_not_left_out() -> None:
    with pytest.raises(KeyError):
        filled_in(("Bearer ", KEY), {})

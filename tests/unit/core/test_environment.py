"""Environment of a server: the listed variables, and nothing else."""

import pytest

from mcpwrap.core.environment import PATH, build, filled_in, why_not
from mcpwrap.core.wire.server_files import SecretPart, Template

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
        ({"TZ": "UTC"}, {"TZ": "Asia/Tokyo"}, {"TZ": "Asia/Tokyo"}),  # the operator overrides
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
        ((OTHER, KEY), "${KEY}s3cret"),  # the content of a secret is never expanded
        (("${KEY}",), "${KEY}"),  # nor is the operator's text
    ],
)
def test_a_secret_comes_in_its_place(template: Template, value: str) -> None:
    assert filled_in(template, {"KEY": "s3cret", "OTHER": "${KEY}"}) == value


def test_a_secret_that_is_not_there_is_not_left_out() -> None:
    with pytest.raises(KeyError):
        filled_in(("Bearer ", KEY), {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "uz_UZ.UTF-8@cyrillic"),
        ("LC_TIME", ""),
        ("LANGUAGE", "de_AT:de:en_GB:en"),
        ("LANGUAGE", ""),
        ("TZ", "UTC"),
        ("TZ", "America/Argentina/Buenos_Aires"),
        ("TZ", ":Etc/GMT+8"),
        ("TZ", "CET-1CEST,M3.5.0/2:30,M10.5.0/3"),
        ("TZ", "<+0330>-3:30"),
        ("TERM", "xterm-256color"),
        ("TERM", "screen.xterm+256"),
        ("NO_COLOR", "1"),
        ("COLUMNS", "80"),
        ("DISPLAY", ":0"),
        ("DISPLAY", "localhost:10.0"),  # of ssh -X
        ("WAYLAND_DISPLAY", "wayland-0"),
    ],
)
def test_a_value_of_its_kind_is_taken(name: str, value: str) -> None:
    assert why_not(name, value) == ""


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("LANG", "/home/alice/locale", "is not the name of a locale"),
        ("LC_ALL", "..", "is not the name of a locale"),
        ("LANGUAGE", "de:../../home/alice", "is not the name of a locale"),  # gettext's catalogs
        ("LANGUAGE", "de:/home/alice", "is not the name of a locale"),
        ("TZ", "/home/alice/zone", "is not the name of a time zone"),
        ("TZ", ":/etc/passwd", "is not the name of a time zone"),
        ("TZ", "::/etc/passwd", "is not the name of a time zone"),
        ("TZ", "Europe/../../../../home/alice/zone", "is not the name of a time zone"),
        ("TZ", "./zone", "is not the name of a time zone"),  # musl, from the working folder
        ("TZ", "UTC\n", "is not the name of a time zone"),
        ("TERM", "../x", "is not a plain word"),
        ("TERM", "/home/alice/x", "is not a plain word"),
        ("DISPLAY", "evil.example:0", "is not a plain word"),
        ("DISPLAY", "/tmp/x:0", "is not a plain word"),
        ("WAYLAND_DISPLAY", "/run/user/1000/wayland-0", "is not a plain word"),
        ("NO_COLOR", "\x1b[2J", "is not a plain word"),
        ("PROJECT", "x", "is not of a kind"),  # of a server descriptor from before there were kinds
        ("tz", "UTC", "is not of a kind"),
    ],
)
def test_a_value_that_names_a_file_or_a_host_is_not(name: str, value: str, why: str) -> None:
    assert why in why_not(name, value)

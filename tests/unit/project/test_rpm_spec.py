"""Spec and preset of the .rpm, compared with the units and with the lists of the .deb."""

import re
import shlex
from pathlib import Path

from mcpwrap.plan import purge

TOP = Path(__file__).resolve().parents[3]
SPEC = (TOP / "packaging/rpm/mcpwrap.spec").read_text()
PRESET = (TOP / "packaging/rpm/mcpwrap.preset").read_text()
RULES = (TOP / "packaging/debian/rules").read_text()


def section(name: str) -> str:
    """Return the text of a scriptlet."""
    return re.split(r"^%(?:\w+)$", SPEC, flags=re.MULTILINE)[_names().index(name) + 1]


def _names() -> list[str]:
    return re.findall(r"^%(\w+)$", SPEC, re.MULTILINE)


def test_an_erase_stops_units_in_the_order_of_purge() -> None:
    stops = re.findall(r"systemctl stop (.*?) \|\| :", section("preun"))
    assert [tuple(shlex.split(units)) for units in stops] == [*purge.SESSIONS, purge.EVERYTHING]


def test_every_scriptlet_ends_with_0() -> None:
    for name in ("post", "posttrans", "preun", "postun"):
        assert section(name).rstrip().splitlines()[-1].partition("#")[0].strip() == "exit 0", name


def test_a_first_installation_enables_what_that_of_the_deb_enables() -> None:
    lines = [line.split() for line in PRESET.splitlines() if line[0] != "#"]
    preset = {unit: verb for verb, unit in lines}
    assert all((TOP / "units" / unit).exists() for unit in preset)
    commands = RULES.replace("\\\n", " ").splitlines()
    by_deb = {
        unit: "disable" if "--no-enable" in line else "enable"
        for line in commands
        if line.strip().startswith("dh_installsystemd ")
        for unit in line.split()
        if "." in unit and "[Install]" in (TOP / "units" / unit).read_text()
    }
    assert preset == by_deb


def test_what_squid_reads_or_writes_is_made_before_restorecon_labels_it() -> None:
    """Files that `apply` writes later have the type of their folder."""
    contexts = (TOP / "packaging/selinux/mcpwrap.fc").read_text()
    patterns = re.findall(r"^(/var/\S+)", contexts, re.MULTILINE)
    made = (TOP / "packaging/tmpfiles.d/mcpwrap.conf").read_text()
    folders = re.findall(r"^d (/var/\S+)", made, re.MULTILINE)
    assert [each for each in folders if any(re.fullmatch(one, each) for one in patterns)] == [
        "/var/lib/mcpwrap/squid",
        "/var/lib/mcpwrap/ca",
        "/var/log/mcpwrap/proxy",
        "/var/log/mcpwrap/intercept",
    ]
    assert "/var/lib/mcpwrap /var/log/mcpwrap" in section("post").partition("restorecon")[2]

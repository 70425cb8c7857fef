"""Units that a person enables: they watch the files that the code reads."""

import re
from pathlib import PurePosixPath

import pytest

from mcpwrap.config.agent_files.known_agents import AGENTS
from mcpwrap.config.agent_files.plugin_layouts import PLUGINS
from tests.unit import unit_files
from tests.unit.unit_files import UNITS, unescaped

HOME = PurePosixPath("/home/alice")
WATCHED_BY_TEMPLATE = re.compile(r"mcpwrap-drift@(.+)\.path")


def settings(unit: str) -> dict[str, list[str]]:
    return unit_files.settings(f"user/{unit}")


def watched() -> list[str]:
    """Return the paths of mcpwrap-drift.path, and of those that it starts."""
    unit, template = settings("mcpwrap-drift.path"), settings("mcpwrap-drift@.path")
    paths = unit["[Path] PathChanged"]
    for wanted in unit["[Unit] Wants"]:
        if found := WATCHED_BY_TEMPLATE.fullmatch(wanted):
            place = unescaped(found[1])
            paths = paths + [path.replace("%I", place) for path in template["[Path] PathChanged"]]
    return [path.replace("%h", str(HOME)) for path in paths]


def test_each_file_of_a_user_and_each_place_of_plugins_is_watched_where_it_usually_is() -> None:
    usual = [
        file.place({"HOME": str(HOME)})
        for agent in AGENTS
        for file in agent.files
        if file.scope == "user"
    ]
    usual += [row.place(path, {"HOME": str(HOME)}) for row in PLUGINS for path in row.watched]
    assert len(usual) > 27
    assert sorted(watched()) == sorted(set(usual))


def test_an_instance_is_unescaped_as_systemd_does_it() -> None:
    assert unescaped("a-b.c\\x2dd") == "a/b.c-d"


@pytest.mark.parametrize("unit", ["mcpwrap-drift.path", "mcpwrap-drift@.path"])
def test_a_unit_watches_one_file(unit: str) -> None:
    # What happens beside a file that is not there yet takes down the other watches of its unit.
    assert len(settings(unit)["[Path] PathChanged"]) == 1


def test_no_limit_ends_the_watching() -> None:
    for unit in ("mcpwrap-drift.path", "mcpwrap-drift@.path"):
        assert settings(unit)["[Path] TriggerLimitIntervalSec"] == ["0"]
    service = settings("mcpwrap-drift.service")
    assert service["[Unit] StartLimitIntervalSec"] == ["0"]
    [pause] = service["[Service] ExecStartPre"]
    assert pause.startswith("/usr/bin/sleep ")


def test_what_is_there_when_it_is_enabled_is_looked_at() -> None:
    assert "mcpwrap-drift.service" in settings("mcpwrap-drift.path")["[Unit] Wants"]


@pytest.mark.parametrize("unit", sorted(path.name for path in (UNITS / "user").iterdir()))
def test_each_unit_of_a_person_says_what_it_is(unit: str) -> None:
    said = settings(unit)
    assert said["[Unit] Description"]
    assert said["[Unit] Documentation"] == ["man:mcpwrap(1)"]


@pytest.mark.parametrize("unit", ["mcpwrap-notify.service", "mcpwrap-drift.service"])
def test_what_speaks_to_the_desktop_has_no_network(unit: str) -> None:
    service = settings(unit)
    assert service["[Service] RestrictAddressFamilies"] == ["AF_UNIX"]
    assert service["[Service] NoNewPrivileges"] == ["yes"]
    assert service["[Service] SystemCallFilter"] == ["@system-service"]

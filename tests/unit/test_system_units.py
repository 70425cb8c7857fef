"""Units that follow the resolvers: one file each, and two identical checks."""

import pytest

from tests.unit.unit_files import settings, unescaped

LOOK, AGAIN = "mcpwrap-resolvers.service", "mcpwrap-resolvers-again.service"
PATHS = ("mcpwrap-resolvers.path", "mcpwrap-resolvers@.path")


@pytest.mark.parametrize("unit", PATHS)
def test_a_unit_watches_one_file_without_a_limit(unit: str) -> None:
    # What happens beside a file that is not there yet takes down the other watches of its unit.
    assert len(settings(unit)["[Path] PathChanged"]) == 1
    assert settings(unit)["[Path] TriggerLimitIntervalSec"] == ["0"]


def test_each_place_of_the_resolvers_is_watched() -> None:
    wanted = settings(PATHS[0])["[Unit] Wants"]
    instances = [one.removeprefix("mcpwrap-resolvers@").removesuffix(".path") for one in wanted]
    assert [f"/{unescaped(one)}" for one in instances] == [
        "/run/systemd/resolve/stub-resolv.conf",
        "/run/resolvconf/resolv.conf",
        "/run/NetworkManager/resolv.conf",
    ]
    template = settings(PATHS[1])
    assert (template["[Path] PathChanged"], template["[Path] Unit"]) == (["%f"], [LOOK])


def test_the_second_look_is_the_first_again() -> None:
    first, second = settings(LOOK), settings(AGAIN)
    both = [
        {name: values for name, values in unit.items() if name.startswith("[Service]")}
        for unit in (first, second)
    ]
    assert both[0] == both[1]
    assert first["[Service] Restart"] == ["on-failure"]  # so in the end it succeeds
    assert first["[Unit] OnSuccess"] == [AGAIN]
    assert "[Unit] OnSuccess" not in second  # it would never end
    assert first["[Unit] StartLimitIntervalSec"] == second["[Unit] StartLimitIntervalSec"] == ["0"]

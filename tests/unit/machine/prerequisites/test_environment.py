"""Environment of a machine, by its kernel's release and systemd-detect-virt(1)."""

import platform
import subprocess

import pytest

from mcpwrap.machine.prerequisites import environment
from mcpwrap.machine.prerequisites.environment import Environment


@pytest.mark.parametrize(
    ("release", "container", "found"),
    [
        ("6.1.0-40-amd64", "none\n", Environment.MACHINE),
        ("6.1.0-40-amd64", "", Environment.MACHINE),  # without the program
        ("6.8.0-45-generic", "lxc\n", Environment.CONTAINER),
        ("6.8.0-45-generic", "systemd-nspawn\n", Environment.CONTAINER),
        ("5.15.167.4-microsoft-standard-WSL2", "wsl\n", Environment.WSL),
        ("6.6.87.2-microsoft-standard-WSL2+", "none\n", Environment.WSL),
        ("4.4.0-19041-Microsoft", "", Environment.WSL),  # WSL1
        ("6.18.0-wsl-custom", "docker\n", Environment.WSL),  # a container on it: its kernel counts
    ],
)
def test_the_environment_is_judged(release: str, container: str, found: Environment) -> None:
    assert environment.judged(release, container.strip()) is found


def test_without_the_program_it_is_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-40-amd64")

    def run(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", run)
    assert environment.found() is Environment.MACHINE
    done = subprocess.CompletedProcess((), 0, stdout="lxc\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert environment.found() is Environment.CONTAINER

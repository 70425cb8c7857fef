"""Packages of the configuration, installed when a session begins."""

import threading
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.as_python import configured_packages
from mcpwrap.as_python.configured_packages import ConfiguredPackages
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.execution.tool import RunEnvironment
from tests.shared import pace
from tests.unit.as_python.world import LIMITS, Installed, Installer

ENVIRONMENT = RunEnvironment(limits=LIMITS, python_version="3.11.2", packages=("numpy",))


def test_versions_are_known_once_they_are_installed() -> None:
    installer = Installer(Installed("a" * 64, {"numpy": "2.1"}))
    found = ConfiguredPackages(installer, ENVIRONMENT).environment()
    assert found.version_by_package == {"numpy": "2.1"}
    assert found.packages == ("numpy",)
    assert installer.wanted == [("numpy",)]
    assert not installer.packages.is_held


def test_a_failure_is_logged_and_the_description_goes_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    error = PackageError("no index", fix="x", code="E-PACKAGE-NETWORK")
    found = ConfiguredPackages(Installer(error=error), ENVIRONMENT).environment()
    assert found == ENVIRONMENT
    assert capfd.readouterr().err == (
        "mcpwrap-python: the configured packages: no index [E-PACKAGE-NETWORK]\n"
    )


def test_an_installation_is_stopped_with_the_session() -> None:
    has_begun = threading.Event()

    class Endless(Installer):
        def prepare(self, _requirements: Any, on_progress: Any) -> Installed:
            has_begun.set()
            while True:
                on_progress("installing")

    configured = ConfiguredPackages(Endless(), ENVIRONMENT)
    assert has_begun.wait(pace.WAIT_S)
    configured.stop(pace.WAIT_S)
    assert not configured._thread.is_alive()


def test_a_description_does_not_wait_for_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configured_packages, "_WAIT_S", 0.0)
    may_end = threading.Event()

    class Slow(Installer):
        def prepare(self, *given: Any) -> Installed:
            assert may_end.wait(pace.WAIT_S)
            return super().prepare(*given)

    configured = ConfiguredPackages(Slow(Installed("a" * 64, {"numpy": "2"})), ENVIRONMENT)
    assert configured.environment().version_by_package == {}
    may_end.set()
    configured._thread.join(pace.WAIT_S)
    assert configured.environment().version_by_package == {"numpy": "2"}

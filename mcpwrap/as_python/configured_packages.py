"""Packages of the configuration, installed when a session begins, before its first call."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from mcpwrap.as_python.call_progress import CallCancelledError
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.stderr_log import log_line

_WAIT_S = 1.0  # of `tools/list`; what is in the cache takes a hundredth


class InstalledPackages(Protocol):
    """Packages of one run, as `packages/` has installed them."""

    @property
    def name(self) -> str:
        """Return the name of their folder, 64 hexadecimal digits; "" for none."""

    @property
    def distributions(self) -> Mapping[str, str]:
        """Return the versions by name."""


class PackageInstaller(Protocol):
    """Installer of packages: `packages/`."""

    def prepare(
        self, requirements: Sequence[str], on_progress: Callable[[str], None]
    ) -> AbstractContextManager[InstalledPackages]:
        """Install packages, and hold them for as long as the run lasts.

        Raises:
            McpwrapError: they cannot be installed.
        """


class ConfiguredPackages:
    """Installation of the configured packages in a thread, and the versions that it found."""

    def __init__(self, installer: PackageInstaller, environment: RunEnvironment) -> None:
        self._installer = installer
        self._environment = environment
        self._versions: Mapping[str, str] = {}
        self._is_stopped = False
        self._thread = threading.Thread(target=self._install, name="packages", daemon=True)
        self._thread.start()

    def environment(self) -> RunEnvironment:
        """Return the environment of runs, with the versions if they are known within a second."""
        self._thread.join(_WAIT_S)
        return replace(self._environment, version_by_package=self._versions)

    def stop(self, timeout_s: float) -> None:
        """Stop an installation that goes on, with its processes, and wait for its end."""
        self._is_stopped = True
        self._thread.join(timeout_s)

    def _install(self) -> None:
        try:
            with self._installer.prepare(self._environment.packages, self._expect_wanted) as found:
                self._versions = found.distributions
        except McpwrapError as error:  # each call reports it to the agent, too
            log_line(f"mcpwrap-python: the configured packages: {error.named_problem}")
        except CallCancelledError:
            pass

    def _expect_wanted(self, _progress: str) -> None:
        if self._is_stopped:
            raise CallCancelledError

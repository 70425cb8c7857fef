"""Stand-in for root: configured and applied servers, and a `sudo` that accepts or refuses."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.cli.agents import clients
from mcpwrap.cli.agents.discovery import FileOwner, file_owner
from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.cli.agents.wrap import command
from mcpwrap.cli.agents.wrap import proposal as wrap_proposal
from mcpwrap.cli.agents.wrap.decision import AppliedState
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.config.model import Local, Server
from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.machine import listener_files

URL = "http://127.78.0.9:52100"
# Stand-in for sudo and root's answer: stores its input, and exits with the given status.
SUDO = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/asked
cp "$4" {folder}/proposal
cat > {folder}/secrets
exit {status}
"""


def _inherited(server: Server) -> frozenset[str]:
    runs = server.runs
    names = (*runs.inherits, *runs.inherits_any) if isinstance(runs, Local) else ()
    return frozenset(names)


class Root:
    """Root's configuration, which takes over accepted proposals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: dict[str, Server] = {}
        self.applied: set[str] = set()
        self.unset: dict[str, tuple[str, ...]] = {}
        self.is_sorted = False  # servers are in the order of their files' names

    @classmethod
    def that_agrees(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> "Root":
        """Make one that agrees, and have the commands use it."""
        folder.mkdir()
        root = cls(folder)
        monkeypatch.setattr(command, "applied_state", root.machine)
        monkeypatch.setattr(wrap_proposal, "_SUDO", str(folder / "sudo"))
        monkeypatch.setattr(listener_files, "urls_of", root.urls)
        for module in (clients, unwrap_command):
            monkeypatch.setattr(module, "known", root.known)
        if os.geteuid() == 0:  # `wrap` refuses root; the files are still root's
            monkeypatch.setattr(command, "_person", _as_alice)
        root.agrees()
        return root

    def urls(self, _uid: int) -> dict[str, str]:
        """Stand in for `listener_files.urls_of`."""
        far = [name for name, one in self.servers.items() if one.speaks_http()]
        return {URL.replace("9", str(9 + n)): name for n, name in enumerate(far)}

    def machine(self, who: FileOwner) -> AppliedState:
        """Stand in for `applied_state` of `mcpwrap wrap`, after root has accepted a proposal."""
        known = self.known(who)
        return AppliedState(
            known=known, servers=self.servers, taken=frozenset(self.servers), unset=self.unset
        )

    def known(self, who: FileOwner) -> AppliedServers:
        """Stand in for `known` of `discovery`."""
        self._take()
        inherited = {name: _inherited(self.servers[name]) for name in self.applied}
        return AppliedServers(inherited, self.urls(who.uid))

    def _take(self) -> None:
        proposal = self.folder / "proposal"
        if proposal.exists() and (self.folder / "agrees").exists():
            self.servers |= parse_part([SourceFile("p", proposal.read_bytes())]).servers
            self.applied |= self.servers.keys()
        if self.is_sorted:
            self.servers = dict(sorted(self.servers.items(), key=lambda one: f"{one[0]}.toml"))

    def agrees(self, *, status: int = 0) -> None:
        sudo = self.folder / "sudo"
        sudo.write_text(SUDO.format(folder=self.folder, status=status))
        sudo.chmod(0o755)
        if status == 0:
            (self.folder / "agrees").touch()

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().split()

    def secrets(self) -> Mapping[str, Mapping[str, str]]:
        found: dict[str, dict[str, str]] = json.loads((self.folder / "secrets").read_text())
        return found


def _as_alice(environ: dict[str, str]) -> FileOwner:
    return replace(file_owner(os.geteuid(), Path.cwd(), environ), account="alice")

"""`mcpwrap clients --notify`: one notification for each server, and no secret in it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap.cli.agents import clients, notify
from mcpwrap.cli.agents.discovery import FileOwner
from mcpwrap.cli.agents.notify import DriftNotifySettings
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.errors import McpwrapError

WRAPPED = {"command": "/usr/bin/mcpwrap-connect", "args": ["git"]}
DRIFTED = {"command": "/usr/bin/mcpwrap-connect", "args": ["gone"]}
RAW = {"command": "npx", "args": ["--token", "s3cr3t"], "env": {"TOKEN": "s3cr3t"}}
REMOTE = {"type": "http", "url": "https://x.example/s3cr3t", "headers": {"A": "s3cr3t"}}


class Alice:
    """Account with agents' files, and a stand-in notify-send that records its arguments."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._shown = folder / "shown"
        self._project = folder / "project"
        self.kept = folder / "state/mcpwrap/told.json"
        self.program = folder / "notify-send"
        self.home.mkdir()
        self._project.mkdir()
        self.desktop(f"printf '%s\\0' \"$@\" end >> {self._shown}")

    def desktop(self, script: str) -> None:
        """Replace notify-send by this script."""
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)

    def have(self, path: str = ".claude.json", **servers: object) -> None:
        """Write these servers to a file."""
        self.have_all(path, servers)

    def have_all(self, path: str, servers: dict[str, object]) -> None:
        """Write servers whose names cannot be Python keywords to a file."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers}))

    def look(self) -> list[str]:
        """Run the command once; return the body of each notification."""
        self._shown.unlink(missing_ok=True)
        who = FileOwner(os.geteuid(), self._project, {"HOME": str(self.home)}, {})
        by = AppliedServers({"git": frozenset()})
        notify.run(who, by, DriftNotifySettings(self.kept, str(self.program)))
        return [one[3].removesuffix("\nmcpwrap clients lists them, and why") for one in self.shown]

    @property
    def shown(self) -> list[list[str]]:
        """Arguments of each notification of the last run."""
        text = self._shown.read_text() if self._shown.exists() else ""
        return [one.split("\0")[:-1] for one in text.split("end\0")[:-1]]


@pytest.fixture
def alice(tmp_path: Path) -> Alice:
    return Alice(tmp_path)


def test_an_unwrapped_server_is_reported_once(alice: Alice) -> None:
    assert alice.look() == []
    alice.have(a=WRAPPED, b=RAW, c={"odd": 1})
    assert alice.look() == ["b (claude-code): raw"]
    assert alice.shown[0][:3] == ["--app-name=mcpwrap", "--", "mcpwrap: a server is not wrapped"]
    assert alice.look() == []
    alice.have(a=DRIFTED, b=RAW)
    alice.have(".cursor/mcp.json", d=REMOTE)
    assert alice.look() == ["a (claude-code): drifted\nd (cursor): raw"]
    assert alice.look() == []


def test_it_is_reported_again_after_it_was_wrapped(alice: Alice) -> None:
    alice.have(a=RAW)
    assert alice.look() == ["a (claude-code): raw"]
    alice.have(a=WRAPPED)
    assert alice.look() == []
    alice.have(a=RAW)
    assert alice.look() == ["a (claude-code): raw"]


def test_no_secret_is_shown_or_stored(alice: Alice) -> None:
    alice.have(a=RAW, b=REMOTE)
    assert len(alice.look()) == 1
    assert "s3cr3t" not in str(alice.shown)
    assert "s3cr3t" not in alice.kept.read_text()
    assert "x.example" not in str(alice.shown)


def test_a_name_is_a_name(alice: Alice) -> None:
    alice.have_all(".claude.json", {"--urgency=low": RAW, "<b>\n\x1b[1m\ud800": RAW})
    hostile = r"&lt;b&gt; \\x1b[1m\\ud800"
    assert alice.look() == [f"--urgency=low (claude-code): raw\n{hostile} (claude-code): raw"]
    assert alice.look() == []


def test_an_unreadable_file_is_reported_and_its_state_kept(alice: Alice) -> None:
    alice.have(a=RAW)
    assert alice.look() == ["a (claude-code): raw"]
    file = alice.home / ".claude.json"
    file.write_text('{"mcpServers": {')
    [told] = alice.look()
    assert told.endswith(" (claude-code): not read")
    alice.have(a=RAW)
    assert alice.look() == []
    file.unlink()
    assert alice.look() == []
    alice.have(a=RAW)
    assert alice.look() == []


def test_a_server_that_is_added_meanwhile_is_reported_too(alice: Alice) -> None:
    late = alice.home / "late"
    late.write_text(json.dumps({"mcpServers": {"a": RAW, "b": RAW}}))
    script = alice.program.read_text().removeprefix("#!/bin/sh\n")
    alice.desktop(f"{script}\n[ ! -e {late} ] || mv {late} {alice.home}/.claude.json")
    alice.have(a=RAW)
    assert alice.look() == ["a (claude-code): raw", "b (claude-code): raw"]


def test_the_state_file_is_readable_by_its_owner_alone(alice: Alice) -> None:
    alice.have(a=RAW)
    old = os.umask(0)
    try:
        alice.look()
    finally:
        os.umask(old)
    assert alice.kept.stat().st_mode & 0o777 == 0o600
    assert alice.kept.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in alice.kept.parent.iterdir()] == ["told.json"]


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b'{"told": {"/f": 1}}', b'{"told": {"/f": ["\xed\xa0\x80"]}}']
)
def test_a_broken_state_file_is_ignored_and_replaced(alice: Alice, broken: bytes) -> None:
    alice.have(a=RAW)
    alice.look()
    alice.kept.write_bytes(broken)
    assert alice.look() == ["a (claude-code): raw"]
    assert alice.look() == []


def test_a_failed_notification_is_repeated_later(alice: Alice) -> None:
    works = alice.program.read_text()
    alice.have(a=RAW)
    alice.desktop("exit 1")
    with pytest.raises(McpwrapError, match="cannot show the notification: status 1"):
        alice.look()
    alice.program.write_text(works)
    assert alice.look() == ["a (claude-code): raw"]


def test_without_a_writable_state_file_nothing_is_shown(alice: Alice) -> None:
    alice.have(a=RAW)
    alice.kept.mkdir(parents=True)
    with pytest.raises(McpwrapError, match="no notification was shown"):
        alice.look()
    assert alice.shown == []
    shutil.rmtree(alice.kept.parent)
    alice.kept.parent.write_text("")
    with pytest.raises(McpwrapError, match="no notification was shown"):
        alice.look()


def test_without_notify_send_it_says_what_to_install(alice: Alice) -> None:
    alice.program.unlink()
    with pytest.raises(McpwrapError, match="libnotify-bin"):
        alice.look()


@pytest.mark.parametrize(
    ("state", "file"),
    [
        ("/x", "/x/mcpwrap/told.json"),
        ("", "/home/alice/.local/state/mcpwrap/told.json"),
        ("rel", "/home/alice/.local/state/mcpwrap/told.json"),  # XDG: a relative path is ignored
    ],
)
def test_the_path_of_the_state_file(state: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    assert str(notify.notify_settings({"XDG_STATE_HOME": state}).file) == file


def test_the_command_notifies_prints_nothing_and_succeeds(
    alice: Alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = DriftNotifySettings(alice.kept, str(alice.program))
    monkeypatch.setattr(notify, "notify_settings", lambda _: around)
    monkeypatch.setenv("HOME", str(alice.home))
    monkeypatch.chdir(alice.home)
    alice.have(a=RAW)
    done = CliRunner().invoke(clients.command, ["--notify"], standalone_mode=False, obj={})
    assert (done.return_value, done.output) == (0, "")
    assert len(alice.shown) == 1


def test_a_plugins_server_is_reported_once_and_again_after_it_was_off(alice: Alice) -> None:
    alice.have(".gemini/extensions/docs/gemini-extension.json", db=RAW)
    assert alice.look() == ["db (gemini): raw"]
    assert alice.look() == []
    settings = alice.home / ".gemini/settings.json"
    settings.write_text('{"mcp": {"excluded": ["db"]}}')
    assert alice.look() == []
    settings.write_text("{}")
    assert alice.look() == ["db (gemini): raw"]


def test_a_file_that_two_agents_read_is_reported_for_each(alice: Alice) -> None:
    """Both agents read the same plugin folder, and each enables the plugin for itself."""
    shop = alice.home / "shop"
    alice.have("shop/helper/.mcp.json", db=RAW)
    catalogue = {"plugins": [{"name": "helper", "source": "./helper"}]}
    (shop / ".claude-plugin").mkdir()
    (shop / ".claude-plugin/marketplace.json").write_text(json.dumps(catalogue))
    known = {"m": {"source": {"source": "directory", "path": str(shop)}}}
    plugins = alice.home / ".claude/plugins"
    plugins.mkdir(parents=True)
    (plugins / "known_marketplaces.json").write_text(json.dumps(known))
    records = {"plugins": {"helper@m": [{"scope": "user", "installPath": "/copy"}]}}
    (plugins / "installed_plugins.json").write_text(json.dumps(records))
    assert alice.look() == ["db (claude-code): raw"]
    (alice.home / ".copilot").mkdir()
    enabled = {"extraKnownMarketplaces": known, "enabledPlugins": {"helper@m": True}}
    (alice.home / ".copilot/settings.json").write_text(json.dumps(enabled))
    assert alice.look() == ["db (copilot): raw"]

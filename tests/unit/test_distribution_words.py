"""Texts name no package manager, package or path of one distribution: core/distribution.py does."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.cli.setup.init import machine_steps
from mcpwrap.cli.setup.init.guide import Guide
from mcpwrap.config.migration import entry
from mcpwrap.config.migration.draft import MigrationError
from mcpwrap.config.model import Group, Local, Server
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.doctor import ApproverAccounts, approver_checks, failed
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import desktop_notify, os_release
from mcpwrap.machine import planning, program_check
from mcpwrap.machine.doctor import machine_checks

TOP = Path(__file__).resolve().parents[2]
TABLE = TOP / "mcpwrap/core/distribution.py"
WORDS = re.compile(
    r"\b(apt|apt-get|aptitude|dpkg|dnf|yum|zypper|pacman|adduser|addgroup|deluser|gpasswd"
    r"|squid-openssl|libnotify-bin|libnotify-tools|python3-pip|nodejs-npm|npm-default"
    r"|security_file_certgen|ca-certificates\.crt|tls-ca-bundle\.pem|ca-bundle\.pem)\b"
)
DEBIANS = re.compile(r"\b(apt|apt-get|adduser|squid-openssl|libnotify-bin)\b")


def _texts() -> list[Path]:
    folders = [("mcpwrap", "*.py"), ("mcpwrap", "*.html"), ("units", "*"), ("squid", "*")]
    found = [path for folder, glob in folders for path in (TOP / folder).rglob(glob)]
    return [*(path for path in found if path.is_file()), TOP / "packaging/catalog"]


def test_only_the_table_has_words_of_one_distribution() -> None:
    found = {
        f"{path.relative_to(TOP)}:{number}: {line.strip()}"
        for path in _texts()
        if path != TABLE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if WORDS.search(line)
    }
    assert found == set()
    assert WORDS.search(TABLE.read_text())  # the pattern finds what it is for


def _told_by(call: Callable[[], object]) -> str:
    with pytest.raises((McpwrapError, MigrationError)) as caught:
        call()
    return str(caught.value)


SQUID_NEEDED = parse([
    SourceFile(
        "c",
        b'[mcp_servers.a]\ncommand = "/bin/true"\n'
        b'[mcp_servers.a.mcpwrap]\nagents = ["alice"]\negress = ["a.example"]\n',
    )
])  # fmt: skip


def _migration(group: str) -> str:
    server = Server(name="a", runs=Local(command="/x"), egress=(Group(group),))
    return _told_by(lambda: entry.expect_registries(server, (), os_release.distribution()))


def _home_program() -> str:
    server = Server(name="a", runs=Local(command="/home/x/npx"))
    return _told_by(lambda: program_check._expect_visible(server, "/home/x/npx"))


def _init(monkeypatch: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    check = failed("Squid", "does not exist", "x")
    monkeypatch.setattr(machine_checks, "squid_program", lambda: check)
    monkeypatch.setattr(Guide, "ran", lambda _, argv: said.append(" ".join(argv)))  # status: none
    monkeypatch.setattr(Guide, "say", lambda _, *parts: said.append("".join(map(str, parts))))
    guide = Guide(is_agreed=True, is_json=False)
    machine_steps.squid(guide)
    return "\n".join([*said, *(step.command + step.why for step in guide.results)])


def _everything(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the texts of this machine that name software to install, or a group to join."""
    monkeypatch.setattr(machine_checks, "SQUID", "/nonexistent/squid")
    words = os_release.distribution()
    no_files = Path("/nonexistent")
    monkeypatch.setattr(planning, "Path", lambda *_: no_files)
    found = [
        _told_by(lambda: desktop_notify.expect("/nonexistent/notify-send")),
        machine_checks.squid_program().fix,
        _told_by(lambda: planning._expect_squid(SQUID_NEEDED, words)),
        _migration("npm"),
        _migration("pypi"),
        _home_program(),
        *(
            c.fix
            for c in approver_checks(ApproverAccounts(agents=["a"], members=[], with_password=[]))
        ),
        _init(monkeypatch),
    ]
    return "\n".join(found)


@pytest.mark.parametrize(
    ("os", "says"),
    [
        ("debian", ["apt install squid-openssl", "apt-get install -y --no-remove squid-openssl",
                    "apt install libnotify-bin", "apt install npm", "apt install python3-pip"]),
        ("fedora", ["dnf install squid", "dnf install -y squid", "dnf install libnotify",
                    "dnf install npm", "dnf install python3-pip"]),
        ("opensuse-leap", ["zypper install squid", "zypper --non-interactive install squid",
                           "zypper install libnotify-tools", "zypper install npm-default"]),
        ("plan9", ["install Squid with OpenSSL by this distribution's package manager"]),
    ],
)  # fmt: skip
def test_messages_have_the_words_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, os: str, says: list[str]
) -> None:
    file = tmp_path / "os-release"
    file.write_text(f"ID={os}\n")
    monkeypatch.setattr(os_release, "FILES", (str(file),))
    told = _everything(monkeypatch)
    assert [text for text in says if text not in told] == []
    assert "usermod -aG mcpwrap-approvers" in told
    assert bool(DEBIANS.search(told)) == (os == "debian")

"""Worker for other machines: files and token are written together, or nothing is."""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpwrap.as_root import main
from mcpwrap.as_root.apply import apply, worker_listener
from mcpwrap.as_root.secrets import command
from mcpwrap.config.parse import parse
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files
from mcpwrap.linux.isolation import prctl
from mcpwrap.machine import observer, planning
from mcpwrap.plan import paths

PLACE = "10.0.0.5:9443"
TOKEN = "t" * 40
SERVER = '[mcp_servers.a]\ncommand = "/usr/bin/true"\n'


class Machine:
    """Machine in a folder: root's configuration, the token's hash, and the actions taken there."""

    def __init__(self, folder: Path) -> None:
        self.conf = folder / "etc"
        (self.conf / "conf.d").mkdir(parents=True)
        self.config = self.conf / "config.toml"
        self.own = self.conf / "conf.d/worker.toml"
        self.hash = folder / "tokens/worker"
        self.certificate, self.key = folder / "worker.pem", folder / "worker.key"
        for each in (self.certificate, self.key):
            each.write_text("")
            each.chmod(0o600)
        self.done: list[str] = []
        self.apply_fails = False

    def enable(self, token: str | None = TOKEN, place: str = PLACE) -> None:
        worker_listener.enable(place, str(self.certificate), str(self.key), token)

    def files(self) -> dict[str, str]:
        found = [path for path in self.conf.rglob("*") if path.is_file()]
        found += [self.hash] if self.hash.exists() else []
        return {path.name: path.read_text() for path in found}

    def apply(self, *_: object) -> None:
        self.done.append("apply")
        if self.apply_fails:
            raise McpwrapError("no", where="step", fix="see", code="E-TOOL-FAILED")

    def expect_refused(self, code: str, do: Callable[[], None]) -> None:
        """Expect an error, and that nothing was changed."""
        before, self.done = self.files(), []
        with pytest.raises(McpwrapError) as error:
            do()
        assert (error.value.code, self.files(), self.done) == (code, before, [])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)

    def planned(*, added: dict[str, str]) -> SimpleNamespace:
        parse(observer.config_files(added))
        return SimpleNamespace(wanted=None)

    def read(path: str, *, max_bytes: int = 0) -> bytes:
        return Path(path).read_bytes()

    monkeypatch.setattr(paths, "CONFIG_FILE", str(made.config))
    monkeypatch.setattr(paths, "CONFIG_DIR", str(made.conf / "conf.d"))
    monkeypatch.setattr(paths, "LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(paths, "worker_token", lambda pool: str(made.hash.with_name(pool)))
    monkeypatch.setattr(observer, "read_roots_own", read)
    monkeypatch.setattr(root_files, "read_roots_own", read)
    monkeypatch.setattr(root_files, "expect_roots_file", lambda path: Path(path).lstat())
    monkeypatch.setattr(observer, "expect_roots_folder", lambda _: None)
    monkeypatch.setattr(planning, "planned", planned)
    monkeypatch.setattr(apply, "check_workspaces", lambda _: [])
    monkeypatch.setattr(apply, "apply", made.apply)
    return made


def sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest() + "\n"


def shown_token(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the token that was printed; "" if there is none."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("token: ")]
    return lines[0].removeprefix("token: ") if lines else ""


def test_a_new_machine_gets_configuration_and_hash(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.enable()
    assert machine.hash.read_text() == sha256(TOKEN)
    assert TOKEN not in "".join(machine.files().values())
    assert shown_token(capsys) == ""  # it is known where it comes from
    config = parse(observer.config_files())
    assert config.worker is not None
    assert paths.place(config.worker.listen) == PLACE
    assert (config.worker.certificate, config.worker.key) == (
        str(machine.certificate),
        str(machine.key),
    )
    assert machine.done == ["apply"]


def test_a_token_that_is_made_is_shown_once_and_stays(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.enable(None)
    token = shown_token(capsys)
    assert len(token) >= 40
    assert machine.hash.read_text() == sha256(token)
    machine.enable(None)  # as after an interruption of `apply`
    assert shown_token(capsys) == ""
    assert machine.hash.read_text() == sha256(token)
    machine.enable()  # one that is given replaces it
    assert machine.hash.read_text() == sha256(TOKEN)
    assert machine.done == ["apply"] * 3


def test_a_hash_of_earlier_times_is_replaced(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.hash.parent.mkdir()
    machine.hash.write_text(sha256("old"))
    machine.enable(None)
    assert machine.hash.read_text() == sha256(shown_token(capsys))


def test_other_settings_are_not_overwritten(machine: Machine) -> None:
    machine.enable()
    machine.expect_refused("E-WORKER-CONFIGURED", lambda: machine.enable(place="10.0.0.5:9444"))
    machine.own.write_text(machine.own.read_text() + "runs = { seconds = 5 }\n")
    machine.expect_refused("E-WORKER-CONFIGURED", machine.enable)


def test_an_invalid_configuration_changes_nothing(machine: Machine) -> None:
    machine.config.write_text(
        "[worker]\nlisten = '10.0.0.6:9443'\ncertificate = '/c'\nkey = '/k'\n"
    )
    before = machine.files()
    with pytest.raises(McpwrapError, match="is also defined in another file"):
        machine.enable()
    machine.config.write_text("")
    with pytest.raises(McpwrapError, match="'nowhere' is not an address and port"):
        machine.enable(place="nowhere")
    assert machine.files() == {**before, "config.toml": ""}
    assert machine.done == []


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 513, f"{'x' * 40} y", "ü" * 40, "x" * 40 + "\n"]
)
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(
    machine: Machine, token: str
) -> None:
    machine.expect_refused("E-WORKER-TOKEN-VALUE", lambda: machine.enable(token))
    machine.enable()
    machine.expect_refused("E-WORKER-TOKEN-VALUE", lambda: worker_listener.renew(token))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m.key.unlink(),
        lambda m: m.key.chmod(0o604),
        lambda m: (m.key.unlink(), m.key.symlink_to(m.key)),
        lambda m: m.certificate.unlink(),
    ],
)
def test_files_that_other_accounts_have_are_refused(
    machine: Machine, spoil: Callable[[Machine], None]
) -> None:
    spoil(machine)
    machine.expect_refused("E-WORKER-TLS", machine.enable)


def test_a_certificate_that_another_account_can_change_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise UsageError("can be changed; nothing was changed", where=path, fix="", code="E-FILE")

    monkeypatch.setattr(root_files, "expect_roots_file", refuse)
    machine.expect_refused("E-WORKER-TLS", machine.enable)


def test_links_of_a_renewed_certificate_are_followed(machine: Machine) -> None:
    archive = machine.certificate.with_name("archive.pem")
    machine.certificate.rename(archive)
    machine.certificate.symlink_to(archive)
    machine.enable()
    assert str(machine.certificate) in machine.own.read_text()


def test_where_the_disk_is_full_nothing_is_changed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/x")

    monkeypatch.setattr(root_files, "replace_all", full)
    with pytest.raises(McpwrapError, match="nothing was changed"):
        machine.enable()
    assert (machine.files(), machine.done) == ({}, [])


def test_disable_removes_both_and_can_be_repeated(machine: Machine) -> None:
    machine.enable()
    machine.apply_fails = True
    with pytest.raises(McpwrapError):
        worker_listener.disable()
    assert machine.files().keys() == {"config.toml"}  # which `apply` completes
    machine.apply_fails = False
    worker_listener.disable()
    assert machine.done == ["apply"] * 3


@pytest.mark.parametrize("name", ["config.toml", "conf.d/worker.toml", "conf.d/other.toml"])
def test_what_was_written_by_hand_is_not_removed(machine: Machine, name: str) -> None:
    """Another file, or one that has servers too: it would remove them."""
    machine.enable()
    text = machine.own.read_text()
    machine.own.unlink()
    path = machine.conf / name
    path.write_text(text + SERVER)
    machine.expect_refused("E-WORKER-OTHER-FILE", worker_listener.disable)


def test_limits_that_were_added_do_not_prevent_the_removal(machine: Machine) -> None:
    machine.enable()
    machine.own.write_text(machine.own.read_text() + "runs = { seconds = 5 }\n")
    worker_listener.disable()
    assert machine.files().keys() == {"config.toml"}


def test_a_new_token_is_alone_on_standard_output(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.enable()
    capsys.readouterr()
    worker_listener.renew(None)
    token, end = capsys.readouterr().out.split("\n")
    assert end == ""
    assert machine.hash.read_text() == sha256(token)
    worker_listener.renew(TOKEN)
    assert capsys.readouterr().out == ""
    assert machine.hash.read_text() == sha256(TOKEN)


def test_without_a_listener_there_is_no_token(machine: Machine) -> None:
    machine.config.write_text(SERVER)
    machine.expect_refused("E-WORKER-NOT-ENABLED", lambda: worker_listener.renew(None))


@pytest.mark.parametrize(
    ("argv", "status", "called"),
    [
        (["enable", PLACE, "/c", "/k"], 0, ("enable", PLACE, "/c", "/k", None)),
        (["enable", "--stdin", PLACE, "/c", "/k"], 0, ("enable", PLACE, "/c", "/k", "given")),
        (["token"], 0, ("renew", None)),
        (["token", "--stdin"], 0, ("renew", "given")),
        (["disable"], 0, ("disable",)),
        (["enable", PLACE], 2, None),
        (["token", "x"], 2, None),
        ([], 2, None),
    ],
)
def test_the_verbs_of_roots_program(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    argv: list[str],
    status: int,
    called: tuple[object, ...] | None,
) -> None:
    calls: list[tuple[object, ...]] = []
    for verb in ("enable", "renew", "disable"):
        monkeypatch.setattr(worker_listener, verb, lambda *a, _verb=verb: calls.append((_verb, *a)))
    monkeypatch.setattr(command, "read_all", lambda: b"given\n")
    monkeypatch.setattr(prctl, "forbid_dumps", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "umask", lambda _: 0o022)
    monkeypatch.setattr(os, "chdir", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["mcpwrap-root", "worker", *argv])
    assert main.main() == status
    assert calls == ([called] if called else [])
    assert machine.done == []

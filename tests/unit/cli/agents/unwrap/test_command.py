"""`mcpwrap unwrap`: restores agents' files that `wrap` has rewritten."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.agents.unwrap import command
from mcpwrap.config.agent_files.entry_schema import STUB, ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import rewritten, wrapping
from mcpwrap.config.agent_files.known_agents import BY_ID, AgentFile
from mcpwrap.config.agent_files.parsed_file import open_file, servers
from mcpwrap.config.agent_files.wrap_status import AppliedServers, wrap_status
from mcpwrap.core.names import server_name_for
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.machine import listener_files, observer
from mcpwrap.machine.agent_files import wrap_records
from mcpwrap.machine.agent_files.files import replace
from mcpwrap.machine.agent_files.wrap_records import WrapRecord
from mcpwrap.plan import paths
from tests.shared import pace
from tests.unit.config.agent_files.files import FIXTURES, read_otherwise

WHOLE = "will be restored, byte for byte, as it was before it was wrapped"
MERGED = "was changed since it was wrapped: only the wrapped entries will be restored"
NOTHING = "nothing to do: mcpwrap has no record of such a file\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Machine on which root has applied `git`, from `conf.d`, and `web`."""
    home = tmp_path / "home"
    work = home / "shop"
    work.mkdir(parents=True)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/git.toml").touch()
    monkeypatch.setattr(paths, "CONFIG_DIR", str(tmp_path / "conf.d"))
    monkeypatch.setattr(listener_files, "FOLDER", tmp_path / "none")
    monkeypatch.setattr(observer, "server_names", ["git", "web"].copy)
    monkeypatch.chdir(work)
    return home


def run(home: Path, *arguments: str) -> Result:
    """Run the command without a terminal."""
    environ = {"HOME": str(home)}
    return CliRunner().invoke(command.command, arguments, standalone_mode=False, obj=environ)


def kept(home: Path) -> list[WrapRecord]:
    return wrap_records.records(home / ".local/state/mcpwrap")


def names_kept(home: Path) -> list[str]:
    return sorted(path.name for path in (home / ".local/state/mcpwrap").iterdir())


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_wrapped(path: Path, agent_id: str, target: Target | None = None) -> tuple[WrapRecord, bytes]:
    """Return the record and the new content of a file of which `wrap` wraps all servers."""
    agent, was = BY_ID[agent_id], path.read_bytes()
    file = open_file(str(path), AgentFile("user", str(path)).language, was)
    listed = servers(file, agent.files[0].at, agent.words)
    raw = [one for one in listed if wrap_status(one.launch, AppliedServers({})).state == "raw"]
    changes = [
        wrapping(agent.words, one, target or Stub(server_name_for(one.entry.name))) for one in raw
    ]
    new = rewritten(file, changes)
    record = WrapRecord(
        path=path,
        agent=agent_id,
        entries=tuple((*one.at, one.entry.name) for one in raw),
        before=was,
        after_sha256=sha256(new).hexdigest(),
    )
    return record, new


def wrap(home: Path, path: Path, agent_id: str, target: Target | None = None) -> WrapRecord:
    """Save the record and rewrite a file, in the order of `wrap`."""
    record, new = as_wrapped(path, agent_id, target)
    wrap_records.save(wrap_records.folder({"HOME": str(home)}), record)
    replace(path, record.before, new)
    return record


def of_agent(home: Path, fixture: Path) -> Path:
    """Write an agent's realistic file to its usual path."""
    place = BY_ID[fixture.stem].files[0].place({"HOME": str(home)})
    return put(Path(place), fixture.read_bytes())


each_file = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)


@each_file
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_what_was_wrapped_becomes_the_same_bytes(home: Path, fixture: Path, mode: int) -> None:
    path = of_agent(home, fixture)
    path.chmod(mode)
    wrap(home, path, fixture.stem)
    assert path.read_bytes() != fixture.read_bytes()
    os.utime(path, (1, 1))  # the time of the file is not looked at
    seen = run(home, fixture.stem, "--dry-run")
    assert path.read_bytes() != fixture.read_bytes()
    done = run(home, fixture.stem, "--yes")
    assert (seen.return_value, done.return_value) == (0, 0)
    assert seen.stdout.endswith(f"{path}: {WHOLE}\n")
    assert done.stdout.startswith(f"{seen.stdout}{path}: is restored\n")
    assert path.read_bytes() == fixture.read_bytes()
    assert path.stat().st_mode & 0o7777 == mode
    assert names_kept(home) == []
    again = run(home, fixture.stem, "--yes")
    assert (again.return_value, again.stdout) == (0, NOTHING)


@each_file
def test_a_file_that_was_changed_in_between_keeps_that(home: Path, fixture: Path) -> None:
    path = of_agent(home, fixture)
    wrap(home, path, fixture.stem)
    is_json = fixture.suffix.startswith(".json")
    old, added = (b"{", b'{"new": [1, 2], ') if is_json else (b"", b"# new\n")
    path.write_bytes(path.read_bytes().replace(old, added, 1))
    done = run(home, "--all", "--yes")
    assert done.return_value == 0
    assert f"{path}: {MERGED}, " in done.stdout
    assert path.read_bytes() == fixture.read_bytes().replace(old, added, 1)
    assert names_kept(home) == []


@each_file
def test_values_of_variables_and_headers_are_not_shown(home: Path, fixture: Path) -> None:
    path = of_agent(home, fixture)
    wrap(home, path, fixture.stem)
    shown = run(home, "--all", "--dry-run").stdout
    assert "<hidden>" in shown
    known = [line for line in shown.splitlines() if "s3cr3t" in line]
    assert all("/s3cr3t.db" in line or "--" in line for line in known)  # arguments are shown


@each_file
def test_an_entry_that_is_gone_stays_gone(home: Path, fixture: Path) -> None:
    path = of_agent(home, fixture)
    language = BY_ID[fixture.stem].files[0].language
    wrap(home, path, fixture.stem)
    path.write_text({"json": '{"other": 1}', "toml": "other = 1", "yaml": "other: 1"}[language])
    done = run(home, "--all", "--yes")
    assert done.return_value == 0
    assert read_otherwise(language, path.read_bytes()) == {"other": 1}
    assert "was removed from the file, and is not restored\n" in done.stdout
    [backup] = names_kept(home)  # the only copy of the old entry
    kept_at = home / ".local/state/mcpwrap" / backup
    assert f"{path}: its backup stays in {kept_at}\n" in done.stdout
    assert kept_at.read_bytes() == fixture.read_bytes()
    assert run(home, "--all", "--yes").stdout == NOTHING


SIMPLE = """\
{
  "mcpServers": {
    "git": {"command": "git-mcp", "env": {"A": "s3cr3t-key"}}
  }
}
"""


def test_a_changed_entry_stays_and_is_named(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    wrap(home, path, "cursor")
    path.write_text(path.read_text().replace(STUB, "/opt/mine"))
    mine = path.read_bytes()
    done = run(home, "cursor")  # nothing changes, so there is no question
    assert done.return_value == 0
    assert path.read_bytes() == mine
    assert done.stdout == (
        f"{path}: has no entry of mcpwrap any more; only its record will be removed\n"
        f"{path}: 'git' was changed since, and stays as it is\n"
        f"{path}: its backup stays in {home}/.local/state/mcpwrap/backup-0001-mcp.json\n"
    )
    assert names_kept(home) == ["backup-0001-mcp.json"]


def test_a_setting_added_beside_the_stub_is_removed_and_named(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    wrap(home, path, "cursor")
    path.write_text(path.read_text().replace('["git"]', '["git"], "env": {"B": "x"}'))
    done = run(home, "cursor", "--yes")
    assert f"{path}: 'git' loses settings that were added beside the stub: B\n" in done.stdout
    assert names_kept(home) == []


def test_after_a_crash_of_wrap_nothing_changes(home: Path) -> None:
    """The record exists, and the file was not rewritten."""
    path = put(home / ".cursor/mcp.json", SIMPLE)
    record, _ = as_wrapped(path, "cursor")
    wrap_records.save(wrap_records.folder({"HOME": str(home)}), record)
    wrap(home, path, "cursor")  # again, this time without a crash
    wrap_records.save(wrap_records.folder({"HOME": str(home)}), record)
    assert len(kept(home)) == 3
    assert run(home, "--all", "--yes").return_value == 0
    assert path.read_text() == SIMPLE
    assert names_kept(home) == []
    wrap_records.save(wrap_records.folder({"HOME": str(home)}), record)
    before = path.stat()
    done = run(home, "--all")
    assert (done.return_value, names_kept(home)) == (0, [])
    assert "has no entry of mcpwrap any more" in done.stdout
    assert path.stat() == before


def test_what_was_wrapped_in_turns_is_unwound_in_turns(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    wrap(home, path, "cursor")
    old, new = "{\n    ", '{\n    "b": {"url": "https://b.example/"},\n    '
    later = SIMPLE.replace(old, new)
    path.write_text(path.read_text().replace(old, new))
    wrap(home, path, "cursor", ListenerUrl("http://127.78.0.1:52100/"))
    assert [len(record.entries) for record in kept(home)] == [1, 1]
    done = run(home, "--file", ".././.cursor/mcp.json", "--yes")
    assert done.return_value == 0
    assert path.read_text() == later
    assert f"{path}: {MERGED}, 'b', 'git'\n" in done.stdout
    assert f"\n{path}: these entries are restored: 'b', 'git'\n" in done.stdout
    assert names_kept(home) == []


def test_only_the_files_that_were_named_are_unwound(home: Path) -> None:
    files = {
        agent: put(home / place, SIMPLE)
        for agent, place in (
            ("cursor", ".cursor/mcp.json"),
            ("kiro", ".kiro/settings/mcp.json"),
            ("claude-code", "shop/.mcp.json"),  # copilot reads it too
            ("qwen", ".qwen/settings.json"),
        )
    }
    for agent, path in files.items():
        wrap(home, path, agent)
    (home / "link").symlink_to(home / ".kiro")
    assert run(home, "zed", "--yes").stdout == NOTHING
    assert run(home, "--file", "mcp.json", "--yes").stdout == NOTHING
    for arguments, agent in (
        (["cursor"], "cursor"),
        (["--file", str(home / "link/settings/mcp.json")], "kiro"),
        (["copilot"], "claude-code"),
    ):
        others = {path: path.read_bytes() for path in files.values() if path != files[agent]}
        assert run(home, *arguments, "--yes").return_value == 0
        assert files[agent].read_text() == SIMPLE
        assert all(path.read_bytes() == content for path, content in others.items())
    assert [record.agent for record in kept(home)] == ["qwen"]


def test_where_records_are_the_environment_says(home: Path, tmp_path: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    record, new = as_wrapped(path, "cursor")
    wrap_records.save(tmp_path / "state/mcpwrap", record)
    replace(path, record.before, new)
    environ = {"HOME": str(home), "XDG_STATE_HOME": str(tmp_path / "state")}
    CliRunner().invoke(command.command, ["--all", "--yes"], standalone_mode=False, obj=environ)
    assert path.read_text() == SIMPLE


def test_servers_stay_and_it_says_how_they_go(home: Path, tmp_path: Path) -> None:
    entries = ", ".join(f'"{name}": {{"command": "x"}}' for name in ("git", "web", "x"))
    content = f'{{"mcpServers": {{{entries}}}}}'
    wrap(home, put(home / ".cursor/mcp.json", content), "cursor")
    assert "sudo" not in run(home, "cursor", "--dry-run").stdout
    assert run(home, "cursor", "--yes").stdout.endswith(
        "These servers stay, with their secrets: git, web. To remove them:\n"
        f"  sudo rm {tmp_path}/conf.d/git.toml\n"
        "  sudoedit /etc/mcpwrap/config.toml    # remove [mcp_servers.web]\n"
        "  sudo mcpwrap apply --purge\n"
    )


def test_a_command_line_without_a_file_is_refused(home: Path) -> None:
    error = run(home, "--yes").exception
    assert isinstance(error, UsageError)
    assert "name an agent" in error.fix
    assert "is not one of" in str(run(home, "nobody").exception)
    assert run(home, "--all").stdout == NOTHING


def test_without_a_terminal_nothing_is_changed(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    record = wrap(home, path, "cursor")
    assert isinstance(run(home, "--all").exception, UsageError)
    assert sha256(path.read_bytes()).hexdigest() == record.after_sha256
    assert kept(home) == [record]


@pytest.mark.parametrize(("typed", "status"), [("y", 0), ("n", 130), ("", 130)])
def test_a_person_is_asked_and_decides(home: Path, typed: str, status: int) -> None:
    files = [put(home / place, SIMPLE) for place in (".cursor/mcp.json", ".kiro/settings/mcp.json")]
    for path, agent in zip(files, ("cursor", "kiro"), strict=True):
        wrap(home, path, agent)
    argv = [sys.executable, "-m", "mcpwrap.cli.main", "unwrap", "--all"]
    ours, theirs = pty.openpty()
    root = str(Path(command.__file__).parents[4])
    environ = {**os.environ, "HOME": str(home), "PYTHONPATH": root}
    environ.pop("XDG_STATE_HOME", None)
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        seen = b""
        while b"Rewrite these 2 files? [y/N]: " not in seen:
            seen += os.read(ours, 1024)
        assert click.style('-    "git":', fg="red").encode()[:-4] in seen
        os.write(ours, f"{typed}\n".encode())
        assert process.wait(timeout=pace.WAIT_S) == status
    os.close(ours)
    assert {path.read_text() == SIMPLE for path in files} == {status == 0}
    assert len(kept(home)) == (0 if status == 0 else 2)


def test_without_agreement_nothing_is_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    record = wrap(home, path, "cursor")
    questions = []

    def disagrees(question: str, *, is_agreed: bool) -> bool:
        questions.append(question)
        return is_agreed

    monkeypatch.setattr(command, "agreed", disagrees)
    done = run(home, "--all")
    assert isinstance(done.exception, click.Abort)
    assert done.stdout.endswith(f"{path}: {WHOLE}\nnothing was changed\n")
    assert questions == ["Rewrite this file?"]
    assert sha256(path.read_bytes()).hexdigest() == record.after_sha256
    assert kept(home) == [record]


def _link(path: Path) -> None:
    path.rename(path.with_name("dotfile"))
    path.symlink_to("dotfile")


def _read_only(path: Path) -> None:
    path.chmod(0o444)


def _broken(path: Path) -> None:
    path.write_text('{"mcpServers": {,}}')


def _long(path: Path) -> None:
    path.write_bytes(b" " * (16 * 2**20 + 1))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _repeated(path: Path) -> None:
    path.write_text('{"mcpServers": {"git": {}, "git": {}}}')


@pytest.mark.parametrize(
    ("make", "where", "problem"),
    [
        (Path.unlink, "", "does not exist any more; nothing was changed"),
        (_link, "", "is a symbolic link to 'dotfile', which is not followed; nothing was changed"),
        (_read_only, "", "is read-only; nothing was changed"),
        (_broken, ":1:17", "not JSON: Expecting property name enclosed in double quotes"),
        (_repeated, ":1:28", "'git' appears twice in one object"),
        (_long, "", "over 16 MiB; nothing was changed"),
        (_folder, "", "is not a plain file; nothing was changed"),
    ],
)
def test_a_file_that_cannot_be_restored_is_reported_and_the_others_are_restored(
    home: Path, make: Callable[[Path], None], where: str, problem: str
) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    other = put(home / ".kiro/settings/mcp.json", SIMPLE)
    record = wrap(home, path, "cursor")
    wrap(home, other, "kiro")
    make(path)
    done = run(home, "--all", "--yes")
    assert done.return_value == 1
    assert done.stderr.startswith(f"mcpwrap: {path}{where}: {problem}")
    backup = home / ".local/state/mcpwrap/backup-0001-mcp.json"
    assert done.stderr.endswith(f"; the backup is {backup}\n")
    assert backup.read_text() == SIMPLE
    assert kept(home) == [record]
    assert other.read_text() == SIMPLE


def test_a_backup_that_is_copied_back_ends_it(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    wrap(home, path, "cursor")
    path.unlink()
    assert run(home, "--all", "--yes").return_value == 1
    path.write_bytes((home / ".local/state/mcpwrap/backup-0001-mcp.json").read_bytes())
    assert run(home, "--all").return_value == 0
    assert names_kept(home) == []


def test_a_damaged_record_is_named_and_nothing_is_changed(home: Path) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    wrap(home, path, "cursor")
    wrapped = path.read_bytes()
    put(home / ".local/state/mcpwrap/record-0002-x.json", "{")
    error = run(home, "--all", "--yes").exception
    assert isinstance(error, McpwrapError)
    assert error.where.endswith("/record-0002-x.json")
    assert path.read_bytes() == wrapped


def test_a_file_that_changes_before_the_answer_is_not_rewritten(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(home / ".cursor/mcp.json", SIMPLE)
    other = put(home / ".kiro/settings/mcp.json", SIMPLE)
    record = wrap(home, path, "cursor")
    wrap(home, other, "kiro")

    def thinks(_: str, *, is_agreed: bool) -> bool:
        path.write_text("{}")
        return is_agreed

    monkeypatch.setattr(command, "agreed", thinks)
    done = run(home, "--all", "--yes")
    assert done.return_value == 1
    assert "was changed in the meantime; nothing was changed" in done.stderr
    assert path.read_text() == "{}"
    assert kept(home) == [record]
    assert other.read_text() == SIMPLE


def test_10_mb_with_windows_line_ends_and_a_mark_come_back(home: Path) -> None:
    history = ",\r\n".join(f'{{"display": "{n} {"x" * 90}"}}' for n in range(90_000))
    text = f'\ufeff{{"history": [{history}],\r\n"mcpServers": {{"git": {{"command": "x"}}}}}}'
    path = put(home / ".claude.json", text)
    assert len(path.read_bytes()) > 9_000_000
    wrap(home, path, "claude-code")
    start = time.process_time()
    assert run(home, "claude-code", "--yes").return_value == 0
    assert path.read_bytes() == text.encode()
    wrap(home, path, "claude-code")
    path.write_bytes(path.read_bytes().replace(b"0 x", b"0 y", 1))
    done = run(home, "claude-code", "--yes")
    assert MERGED in done.stdout
    assert path.read_bytes() == text.encode().replace(b"0 x", b"0 y", 1)
    assert time.process_time() - start < 60  # 5 s on an idle machine
    assert len(done.stdout) < 10_000

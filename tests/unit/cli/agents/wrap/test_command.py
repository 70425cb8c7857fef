"""`mcpwrap wrap` by an ordinary account: its output, its proposal to root, and written files."""

import hashlib
import json
import os
import stat
from pathlib import Path

import click
import pytest
import tomli
from click.testing import CliRunner

from mcpwrap.cli.agents.discovery import FileOwner
from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.cli.agents.wrap import command
from mcpwrap.cli.agents.wrap import command as wrap_command
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.config.migration.draft import ResolvedCommand
from mcpwrap.config.model import Config
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.wire.secret_index import SecretIndex, SecretVersion
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts
from mcpwrap.machine import listener_files, observer, secret_index_file
from mcpwrap.machine.agent_files import programs
from mcpwrap.plan.registry import Allocation, Registry
from tests.unit.cli.agents.wrap.wrapping import (
    RAW,
    REMOTE,
    STUB,
    change_when_agreed,
    entries,
    put,
    run,
)
from tests.unit.cli.root import URL, Root


def states(home: Path) -> list[Path]:
    return sorted((home / ".local/state/mcpwrap").iterdir())


def test_from_raw_to_wrapped(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE, Odd={"command": "nothere"})
    before = file.read_bytes()
    done = run("cursor", "--yes")
    assert done.return_value == 1  # one is skipped
    assert entries(file) == {
        "local": {"command": STUB, "args": ["local"]},
        "far": {"type": "http", "url": f"{URL}/"},
        "Odd": {"command": "nothere"},
    }
    assert "left as it is: Odd" in done.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert root.secrets() == {"local": {"API_KEY": "s3cr3t-s3cr3t"}, "far": {"TOKEN": "t0p"}}
    proposal = (root.folder / "proposal").read_bytes()
    assert root.asked()[:3] == ["/usr/bin/mcpwrap", "accept", hashlib.sha256(proposal).hexdigest()]
    for secret in ("s3cr3t", "t0p"):
        assert secret not in done.output
        assert secret.encode() not in proposal
        assert secret not in file.read_text()
    kept = [path for path in states(home) if path.name.startswith("backup")]
    assert [path.read_bytes() for path in kept] == [before]
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o600]
    assert not list((home / ".local/state/mcpwrap").glob("proposal*"))  # root has accepted it


def test_twice_changes_nothing(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    assert run("cursor", "--yes").return_value == 0
    after, kept = file.read_bytes(), states(home)
    again = run("cursor", "--yes")
    assert (again.return_value, again.output) == (0, "nothing to do\n")
    assert (file.read_bytes(), states(home)) == (after, kept)


def test_looking_changes_nothing(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE)
    before = file.read_bytes()
    done = run("--all", "--dry-run")
    assert done.return_value == 0
    for shown in ("<API_KEY of local>", "<TOKEN of far>", STUB, "[mcp_servers.local]"):
        assert shown in done.output
    assert "stands for a URL of this machine" in done.output
    assert "s3cr3t" not in done.output
    assert file.read_bytes() == before
    assert not (home / ".local").exists()
    assert not (root.folder / "asked").exists()


def test_nothing_happens_without_a_yes(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor")
    assert isinstance(done.exception, UsageError)
    assert not (root.folder / "asked").exists()


def test_root_says_no(root: Root, home: Path) -> None:
    root.agrees(status=1)
    file = put(home / ".cursor/mcp.json", local=RAW)
    before = file.read_bytes()
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "root has not accepted the new servers; no agent's file was changed" in done.output
    assert file.read_bytes() == before


def test_an_interrupt_is_left_to_sudo(root: Root, home: Path) -> None:
    """Ctrl-C at root's question reaches both processes; sudo alone decides what it means."""
    file = put(home / ".cursor/mcp.json", local=RAW)
    sudo = root.folder / "sudo"
    sudo.write_text("#!/bin/sh\ncat >/dev/null\nkill -INT $PPID\nkill -INT $$\nsleep 9\n")
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "root has not accepted the new servers; no agent's file was changed" in done.output
    assert entries(file) == {"local": RAW}


def test_where_no_proposal_can_be_written(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    (home / ".local").touch()
    refusal = run("cursor", "--yes").exception
    assert isinstance(refusal, McpwrapError)
    assert "the proposal cannot be written" in str(refusal)
    assert not (root.folder / "asked").exists()


def test_a_proposal_is_never_written_into_an_existing_file(root: Root, home: Path) -> None:
    """An agent of the same account may have put another file's name in its place."""
    (root.folder / "sudo").unlink()
    put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--yes")
    (proposal,) = (home / ".local/state/mcpwrap").glob("proposal*")
    proposal.unlink()
    other = home / "notes"
    other.write_text("mine")
    proposal.hardlink_to(other)
    run("cursor", "--yes")
    assert other.read_text() == "mine"
    assert "[mcp_servers.local]" in proposal.read_text()


def test_without_sudo_root_accepts_and_the_same_command_goes_on(root: Root, home: Path) -> None:
    (root.folder / "sudo").unlink()
    file = put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--yes")
    assert done.return_value == 1
    (proposal,) = (home / ".local/state/mcpwrap").glob("proposal*")
    digest = hashlib.sha256(proposal.read_bytes()).hexdigest()
    assert f"mcpwrap accept {digest} {proposal}" in done.output
    assert stat.S_IMODE(proposal.stat().st_mode) == 0o600
    (root.folder / "proposal").write_bytes(proposal.read_bytes())
    root.unset = {"local": ("API_KEY",)}
    waits = run("cursor", "--yes")
    assert "sudo mcpwrap secret set local API_KEY" in waits.output
    assert entries(file) == {"local": RAW}
    root.unset = {}
    assert run("cursor", "--yes").return_value == 0
    assert entries(file) == {"local": {"command": STUB, "args": ["local"]}}


def test_equal_entries_are_one_server_and_others_of_the_same_name_are_not(
    root: Root, home: Path
) -> None:
    other = {**RAW, "env": {"API_KEY": "an0ther-s3cr3t", "L": "info"}}
    files = [
        put(home / ".cursor/mcp.json", one=RAW),
        put(home / ".kiro/settings/mcp.json", one=RAW),
        put(home / ".gemini/settings.json", one=other, **{"One!": {"command": "true"}}),
    ]
    assert run("--all", "--yes").return_value == 0
    found = [{name: e["args"] for name, e in entries(file).items()} for file in files]
    assert found == [{"one": ["one"]}, {"one": ["one"]}, {"one": ["one-2"], "One!": ["one-3"]}]
    assert root.secrets() == {
        "one": {"API_KEY": "s3cr3t-s3cr3t"}, "one-2": {"API_KEY": "an0ther-s3cr3t"},
    }  # fmt: skip


def test_each_entry_leads_to_the_server_that_has_its_secret(root: Root, home: Path) -> None:
    """In any order of root's files: a `-` sorts before a `.`."""
    entry = {"command": "true", "env": {"API_KEY": "f1rst-s3cr3t"}}
    other = {"command": "true", "env": {"API_KEY": "an0ther-s3cr3t"}}
    files = [
        put(home / ".cursor/mcp.json", gh=entry),
        put(home / ".kiro/settings/mcp.json", gh=other),
    ]
    root.is_sorted = True
    assert run("--all", "--yes").return_value == 0
    assert [entries(file)["gh"]["args"] for file in files] == [["gh"], ["gh-2"]]
    assert root.secrets() == {
        "gh": {"API_KEY": "f1rst-s3cr3t"}, "gh-2": {"API_KEY": "an0ther-s3cr3t"},
    }  # fmt: skip


def test_a_secret_without_a_value_is_reported_after_root_has_applied(
    root: Root, home: Path
) -> None:
    raw = {"command": "true", "env": {"API_KEY": "${NOT_THERE}"}}
    file = put(home / ".cursor/mcp.json", local=raw)
    root.unset = {"local": ("API_KEY",)}
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "a secret has no value yet" in done.output
    assert entries(file) == {"local": raw}


def test_nothing_leads_to_what_root_does_not_have(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE)
    (root.folder / "agrees").unlink()  # root agrees, and configures nothing
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "root's configuration has no equal server local [E-WRAP-SERVER-DIFFERS]" in done.output
    assert entries(file) == {"local": RAW, "far": REMOTE}


def test_where_root_made_no_url_it_is_the_stub(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(home / ".cursor/mcp.json", far=REMOTE)
    monkeypatch.setattr(listener_files, "urls_of", lambda _: {})
    assert run("cursor", "--yes").return_value == 0
    assert entries(file) == {"far": {"type": "stdio", "command": STUB, "args": ["far"]}}


def test_a_note_says_that_the_secret_of_root_is_used(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--yes")
    other = {**RAW, "env": {"API_KEY": "an0ther-s3cr3t", "L": "info"}}
    put(home / ".kiro/settings/mcp.json", local=other)
    done = run("kiro", "--dry-run")
    assert "uses the API_KEY that root set for it, and not the value in this file" in done.output


def test_what_is_configured_and_not_applied_is_not_led_to(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    assert run("cursor", "--yes").return_value == 0
    file = put(home / ".kiro/settings/mcp.json", local=RAW)
    (root.folder / "agrees").unlink()
    root.applied.clear()
    done = run("kiro", "--yes")
    assert "local is configured but not applied" in done.output
    assert entries(file) == {"local": RAW}


def test_an_entry_that_is_half_ours_becomes_ours(root: Root, home: Path) -> None:
    half = {"command": STUB, "args": ["local"], "env": {"OLD": "s3cr3t-old"}}
    gone = {"command": STUB, "args": ["gone"]}
    put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--yes")
    file = put(home / ".kiro/settings/mcp.json", half=half, gone=gone)
    done = run("kiro", "--yes")
    assert entries(file) == {"half": {"command": STUB, "args": ["local"]}, "gone": gone}
    assert "no server 'gone' was applied" in done.output
    assert "s3cr3t" not in done.output


def test_what_came_with_a_project_is_named_by_its_hash(root: Root, home: Path) -> None:
    file = put(home / "shop/.cursor/mcp.json", local=RAW)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    done = run("--all", "--yes")
    assert done.return_value == 1
    assert f"mcpwrap wrap cursor --file {file} --sha256 {digest}" in done.output
    assert entries(file) == {"local": RAW}
    file.write_text(file.read_text() + "\n")  # after it was read
    assert run("--all", "--yes", "--sha256", digest).return_value == 1
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert run("cursor", "--file", str(file), "--sha256", digest, "--yes").return_value == 0
    assert entries(file) == {"local": {"command": STUB, "args": ["local"]}}


def test_the_command_that_is_to_be_copied_is_one_command(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "shop/$(touch x)"
    file = put(folder / ".cursor/mcp.json", local=RAW)
    monkeypatch.chdir(folder)
    assert f"--file '{file}' --sha256" in run("cursor", "--yes").output


def test_a_file_at_an_unknown_path(root: Root, home: Path) -> None:
    file = put(home / "elsewhere.json", local=RAW)
    refusal = run("--file", str(file)).exception
    assert isinstance(refusal, UsageError)
    assert "name the agent whose format it has" in str(refusal)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert run("cursor", "--file", "../elsewhere.json", "--yes").return_value == 1
    done = run("cursor", "--file", "../elsewhere.json", "--yes", "--sha256", digest)
    assert done.return_value == 0
    missing = run("cursor", "--file", "no.json").exception
    assert isinstance(missing, UsageError)


def test_a_secret_that_is_elsewhere_too_is_reported(root: Root, home: Path) -> None:
    file = home / ".claude.json"
    history = {"history": ["use s3cr3t-s3cr3t please"], "mcpServers": {"local": RAW}}
    file.write_text(json.dumps(history, indent=1))
    done = run("claude-code", "--yes")
    assert done.return_value == 0
    assert f"API_KEY of local is still in {file}, outside its entry" in done.output


def test_a_file_that_changes_meanwhile_keeps_its_change(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)

    def agree_late(question: str, *, is_agreed: bool) -> bool:
        file.write_text(file.read_text() + " ")
        return bool(question) and is_agreed

    monkeypatch.setattr(command, "agreed", agree_late)
    other = put(home / ".kiro/settings/mcp.json", other=RAW)
    done = run("cursor", "kiro", "--yes")
    assert done.return_value == 1
    assert "was changed in the meantime; nothing was changed" in done.output
    assert entries(file) == {"local": RAW}
    assert entries(other) == {"other": {"command": STUB, "args": ["local"]}}
    kept = [path for path in states(home) if path.name.startswith("backup")]
    assert len(kept) == 1  # of the other file


def test_a_file_that_changes_at_the_last_moment_keeps_its_change(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".kiro/settings/mcp.json", local=RAW)
    assert run("kiro", "--yes").return_value == 0
    file = put(home / ".cursor/mcp.json", local=RAW)
    change_when_agreed(monkeypatch, file)
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert f"{file}: was changed in the meantime; nothing was changed" in done.stderr
    assert entries(file) == {"local": RAW}


def test_a_no_changes_nothing(root: Root, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    monkeypatch.setattr(command, "agreed", lambda _question, is_agreed: is_agreed)
    done = run("cursor")
    assert (done.return_value, done.stdout.splitlines()[-1]) == (1, "nothing was changed")
    assert entries(file) == {"local": RAW}
    assert not (root.folder / "asked").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "names no agent"),
        (("--egress", "not a host", "cursor"), "is not a host name"),
    ],
)
def test_wrong_usage(root: Root, home: Path, arguments: tuple[str, ...], said: str) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    refusal = run(*arguments).exception
    assert isinstance(refusal, UsageError)
    assert said in str(refusal)


def test_no_client_at_all(root: Root, home: Path) -> None:
    assert isinstance(run().exception, UsageError)
    assert "no files of known agents were found" in run("--all").output
    assert isinstance(run("no-such-client").exception, click.BadParameter)


def test_files_that_cannot_be_read_are_reported(root: Root, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text("{")
    (home / "real.json").write_text("{}")
    (home / ".kiro/settings").mkdir(parents=True)
    (home / ".kiro/settings/mcp.json").symlink_to(home / "real.json")
    done = run("--all", "--yes")
    assert done.return_value == 1
    assert "is a symbolic link to" in done.output
    assert done.output.count("left as it is") == 2


def test_hosts_for_one_server(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", a=RAW, b={"command": "true"})
    done = run("cursor", "--dry-run", "--egress", "b=api.example.com", "--egress", "x.example")
    assert 'egress = ["x.example"]' in done.output
    assert 'egress = ["x.example", "api.example.com"]' in done.output
    refusal = run("cursor", "--egress", "c=api.example.com").exception
    assert isinstance(refusal, UsageError)
    assert "these files have no server 'c'" in str(refusal)


def test_root_is_shown_no_more_than_a_person_reads(root: Root, home: Path) -> None:
    many = {f"s{n}": {"command": "sh", "args": ["-c", f"exit {n}"]} for n in range(700)}
    put(home / ".cursor/mcp.json", **many)
    refusal = run("cursor", "--yes").exception
    assert isinstance(refusal, UsageError)
    assert "more than a person reads at once" in str(refusal)
    assert not (root.folder / "asked").exists()


def test_root_is_not_asked_for_a_file_that_cannot_be_rewritten(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    (home / "other-name.json").hardlink_to(file)
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "left as it is: local" in done.output
    assert "nothing else to do" in done.output
    assert not (root.folder / "asked").exists()


def test_a_file_that_asks_for_a_secret_of_its_persons_is_shown_as_such(
    root: Root, home: Path
) -> None:
    entry = {"command": "true", "env": {"LOG_LEVEL": "${AWS_SECRET_ACCESS_KEY}"}}
    put(home / ".cursor/mcp.json", local=entry)
    done = run("cursor", "--yes", AWS_SECRET_ACCESS_KEY="an0ther-s3cr3t")
    assert "gets the value of YOUR variable AWS_SECRET_ACCESS_KEY" in done.output
    assert 'LOG_LEVEL = "${AWS_SECRET_ACCESS_KEY}"' in done.output
    assert root.secrets() == {"local": {"AWS_SECRET_ACCESS_KEY": "an0ther-s3cr3t"}}


def test_what_an_agent_passes_on_it_goes_on_to_pass(root: Root, home: Path) -> None:
    """Root reads the proposal: names outside the known kinds are in `inherits_any`."""
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    before = (
        '[mcp_servers.local]\ncommand = "true"\n'
        'env_vars = ["LANG", "GH_TOKEN", "KUBECONFIG"] # mine\n'
    )
    file.write_text(before)
    done = run("codex", "--yes", LANG="C", GH_TOKEN="an0ther-s3cr3t", KUBECONFIG="/srv/kube")
    assert done.return_value == 0
    wrapped = file.read_text()
    assert tomli.loads(wrapped)["mcp_servers"]["local"] == {
        "command": STUB,
        "args": ["local"],
        "env_vars": ["LANG", "KUBECONFIG"],
    }
    server = tomli.loads((root.folder / "proposal").read_text())["mcp_servers"]["local"]
    assert (server["inherits"], server["inherits_any"]) == (["LANG"], ["KUBECONFIG"])
    assert server["env"] == {"GH_TOKEN": "${GH_TOKEN}"}
    assert root.secrets() == {"local": {"GH_TOKEN": "an0ther-s3cr3t"}}
    assert "your agent chooses the value of KUBECONFIG at each start" in done.output
    again = run("codex", "--yes", LANG="C")
    assert again.output == "nothing to do\n"
    assert file.read_text() == wrapped
    more = wrapped.replace('"LANG", ', '"LANG", "MORE", ')
    file.write_text(more)
    assert run("codex", "--yes").return_value == 0  # an entry that is half rewritten
    assert file.read_text() == wrapped
    file.write_text(more)
    back = CliRunner().invoke(
        unwrap_command.command,
        ["codex", "--yes"],
        standalone_mode=False,
        obj={"PATH": "/usr/bin:/bin"},
    )
    assert "loses settings that were added beside the stub: MORE" in back.output
    assert file.read_text() == before


@pytest.mark.parametrize(
    "odd",
    [
        {"command": "/a\0b"},
        {"command": "/\ud800"},
        {"type": "stdio", "command": "true", "envFile": "/a\0b"},
        {"type": "stdio", "command": "true", "envFile": "\ud800"},
        {"command": "true", "args": ["/" + "a" * 300]},
        {"command": "true", "env": {"API_KEY": "\ud800abcdefgh"}},
        {"command": "true", "env": {"X": "\udc80"}},
        {"url": "https://x.example/", "headers": {"A": "\ud800aaaa"}},
    ],
)
def test_what_is_no_text_leaves_the_others_as_they_are(
    root: Root, home: Path, odd: dict[str, object]
) -> None:
    file = put(home / ".cursor/mcp.json", odd=odd, local=RAW)
    assert run("cursor", "--yes").exception is None
    assert entries(file)["local"] == {"command": STUB, "args": ["local"]}


def test_a_project_gets_no_variables_of_another(root: Root, home: Path) -> None:
    """Also if the entry says that it is started in the other project."""
    other = home / "other"
    other.mkdir()
    (other / ".env").write_text("API_KEY=an0ther-s3cr3t\n")
    entry = {"type": "stdio", "command": "true", "envFile": ".env"}
    file = home / "shop/.vscode/mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"servers": {"a": {**entry, "cwd": str(other)}, "b": entry}}))
    (home / "shop/.env").write_text("API_KEY=0wn-s3cr3t\n")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    done = run("vscode", "--yes", "--sha256", digest)
    assert "left as it is: a" in done.output
    assert "or is not in its project" in done.output
    assert root.secrets() == {"b": {"API_KEY": "0wn-s3cr3t"}}


def test_a_folder_behind_a_link_is_left_to_its_person(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root would refuse it, and with it the whole proposal."""
    monkeypatch.setattr(programs, "real", lambda path: path.replace("alice", "data"))
    code = ResolvedCommand("/home/alice/x/bin/run", ("/home/alice/x",))
    monkeypatch.setattr(programs, "program", lambda *_: code)
    file = put(home / ".cursor/mcp.json", a=RAW, far=REMOTE)
    done = run("cursor", "--yes")
    assert "is behind a symbolic link" in done.output
    assert "write the path that it leads to, '/home/data/x'" in done.output
    assert entries(file) == {"a": RAW, "far": {"type": "http", "url": f"{URL}/"}}


def test_the_folder_of_a_project_is_not_where_a_server_starts(root: Root, home: Path) -> None:
    entry = {"command": "true", "cwd": "/no/such/one", "args": ["${workspaceFolder}/no/x"]}
    file = put(home / "shop/.cursor/mcp.json", local=entry)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    done = run("cursor", "--dry-run", "--sha256", digest)
    assert f'"{home}/shop/no/x"' in done.output


def test_hosts_are_given_to_new_servers(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--dry-run", "--egress", "api.example.com")
    assert 'egress = ["api.example.com"]' in done.output


@pytest.mark.skipif(os.geteuid() != 0, reason="as somebody else it is what all others try")
def test_root_has_no_agents(tmp_path: Path) -> None:
    refusal = run("--all").exception
    assert isinstance(refusal, UsageError)
    assert "cannot wrap the agents of root" in str(refusal)


def test_what_root_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that an account may use, by name and by group, and secrets without a value."""
    text = """
    [mcp_servers.mine]
    command = "/usr/bin/true"
    env = { A = "${SET}", B = "${UNSET}" }
    [mcp_servers.mine.mcpwrap]
    agents = ["alice"]
    [mcp_servers.ours]
    command = "/usr/bin/true"
    [mcp_servers.ours.mcpwrap]
    agents = ["@team"]
    [mcp_servers.theirs]
    command = "/usr/bin/true"
    [mcp_servers.theirs.mcpwrap]
    agents = ["bob"]
    """
    config: Config = parse([SourceFile("c", text.encode())])
    set_once = SecretVersion(version=1, is_set=True, changed_at="2026-01-01T00:00:00Z")
    settings = SecretIndex(by_server={"mine": {"SET": set_once}})
    monkeypatch.setattr(observer, "has_configuration", lambda: True)
    monkeypatch.setattr(wrap_command, "parse", lambda _: config)
    monkeypatch.setattr(observer, "config_files", list)
    monkeypatch.setattr(secret_index_file, "read", lambda: settings)
    registry = Registry(by_name={"old": Allocation(uid=20_001, is_retired=True)})
    monkeypatch.setattr(wrap_command, "known", lambda _: AppliedServers({}))
    monkeypatch.setattr(observer, "registry", lambda: registry)
    monkeypatch.setattr(
        accounts, "uids_in", lambda group: frozenset({7} if group == "team" else ())
    )
    found = wrap_command.applied_state(FileOwner(7, Path("/home/alice"), {}, {}, "alice"))
    assert sorted(found.servers) == ["mine", "ours"]
    assert found.taken == {"mine", "ours", "theirs", "old"}  # its secrets still exist
    assert found.unset == {"mine": ("UNSET",)}


def test_it_ends_with_what_to_do_when_one_does_not_work(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    assert "sudo mcpwrap doctor" in run("cursor", "--yes").output


def test_what_leads_to_a_server_that_is_made_now_is_well(root: Root, home: Path) -> None:
    """It was raw in the first pass."""
    put(home / ".cursor/mcp.json", local=RAW)
    put(home / ".kiro/settings/mcp.json", same={"command": STUB, "args": ["local"]})
    assert run("--all", "--yes").return_value == 0


def test_where_no_file_was_rewritten_there_is_nothing_to_do_next(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local={"command": "true", "env": {"API_KEY": "${NOT_THERE}"}})
    root.unset = {"local": ("NOT_THERE",)}
    assert "restart" not in run("cursor", "--yes").output


def test_what_a_plugin_brings_is_left_and_the_rest_is_wrapped(root: Root, home: Path) -> None:
    own = put(home / ".gemini/settings.json", git={"command": "/usr/bin/git"})
    extension = put(home / ".gemini/extensions/docs/gemini-extension.json", db={"command": "npx"})
    before = extension.read_bytes()
    done = run("--all", "--yes")
    assert done.return_value == 1
    assert f"left as it is: {extension}: is a file of the plugin docs, and an update" in done.stderr
    assert "    db: turn it off in the agent (" in done.stderr
    assert extension.read_bytes() == before
    assert entries(own)["git"]["command"] == STUB

    again = run("--file", str(extension), "--yes")
    assert again.return_value == 1
    assert "nothing else to do" in again.stdout

    settings = json.loads(own.read_text()) | {"mcp": {"excluded": ["db"]}}
    own.write_text(json.dumps(settings))
    done = run("--all", "--yes")
    assert (done.return_value, done.stdout) == (0, "nothing to do\n")


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "url": "https://x.example/"},  # an agent may still start it
        {"command": STUB, "args": ["nothere"]},
    ],
)
def test_what_a_plugin_brings_is_wrapped_or_off_before_all_is_well(
    root: Root, home: Path, entry: dict[str, object]
) -> None:
    put(home / ".gemini/extensions/docs/gemini-extension.json", db=entry)
    done = run("--all", "--yes")
    assert done.return_value == 1
    assert "    db: turn it off in the agent (" in done.stderr


def test_a_name_that_a_plugin_chooses_begins_no_line(root: Root, home: Path) -> None:
    name = "db\n    sudo sh"
    put(home / ".gemini/extensions/docs/gemini-extension.json", **{name: {"command": "npx"}})
    stderr = run("--all", "--yes").stderr
    assert "    db\\n    sudo sh: turn it off" in stderr
    assert not any(line.strip().startswith("sudo") for line in stderr.splitlines())

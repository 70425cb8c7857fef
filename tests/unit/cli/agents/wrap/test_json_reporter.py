"""`mcpwrap wrap --json`: one object with all that was done, and without secrets."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mcpwrap.errors import UsageError
from tests.unit.cli.agents.wrap.wrapping import (
    RAW,
    REMOTE,
    STUB,
    change_when_agreed,
    entries,
    put,
    run,
)
from tests.unit.cli.root import Root

SECRETS = ("s3cr3t", "t0p")
NOTES = [
    "it has no network; `wrap --egress HOST` allows one host",
    "it is a line for a shell, and what that needs of your home was not examined",
]
NOTHING = {"done": True, "files": [], "new": [], "notes": [], "proposal": None}


def outcome(done: Result) -> dict[str, Any]:
    """Return the printed object, after a check that it has no secret."""
    assert not any(secret in done.output for secret in SECRETS)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.return_value == 0 or not found["done"]
    return found


def file_row(path: Path, *servers: dict[str, Any], **known: object) -> dict[str, Any]:
    row = {"agents": ["cursor"], "scope": "user", "path": str(path), "sha256": "", "problem": ""}
    more = {"is_written": False, "backup": "", "left_over": [], "servers": list(servers)}
    return {**row, **more, **known}


def server_row(name: str, **known: object) -> dict[str, Any]:
    row = {"name": name, "project": "", "state": "raw", "server": "", "is_new": False, "why": ""}
    return {**row, "kind": "stdio", "runs": "sh", **known}


def three(state: str, why: str) -> list[dict[str, Any]]:
    """Return the rows of a program, a URL, and an entry that is skipped."""
    return [
        server_row("local", server="local", is_new=True, state=state),
        server_row(
            "far", server="far", is_new=True, state=state, kind="remote", runs="https://x.example"
        ),
        server_row("Odd", why=why, runs="nothere"),
    ]


def test_it_says_what_would_be_done_and_does_nothing(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE, Odd={"command": "nothere"})
    before = file.read_bytes()
    done = run("cursor", "--json", "--dry-run")
    found = outcome(done)
    [why] = [row["why"] for row in found["files"][0]["servers"] if row["why"]]
    assert "nothere" in why
    assert found["files"] == [file_row(file, *three("raw", why))]
    texts = [new.pop("definition") for new in found["new"]]
    assert [text.splitlines()[0] for text in texts] == ["[mcp_servers.local]", "[mcp_servers.far]"]
    named: dict[str, object] = {"from_variables": {}, "missing": []}
    assert found["new"] == [
        {"name": "local", "secrets": ["API_KEY"], "notes": NOTES, **named},
        {"name": "far", "secrets": ["TOKEN"], "notes": [], **named},
    ]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    path = home / f".local/state/mcpwrap/proposal-{digest[:12]}.toml"
    assert found["proposal"] == {
        "sha256": digest,
        "path": str(path),
        "command": f"mcpwrap accept {digest} {path}",
        "is_written": False,
    }
    assert (found["done"], found["notes"], done.return_value) == (False, [], 1)
    assert file.read_bytes() == before
    assert not (home / ".local").exists()
    assert not (root.folder / "asked").exists()


def test_it_says_what_was_done(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE, Odd={"command": "nothere"})
    before = file.read_bytes()
    done = run("cursor", "--json", "--yes")
    found = outcome(done)
    [row] = found["files"]
    assert row == file_row(
        file,
        *three("wrapped", row["servers"][2]["why"]),
        is_written=True,
        backup=str(home / ".local/state/mcpwrap/backup-0001-mcp.json"),
    )
    assert Path(row["backup"]).read_bytes() == before
    assert [new["name"] for new in found["new"]] == ["local", "far"]
    assert (found["done"], found["proposal"], done.return_value) == (False, None, 1)
    put(
        file, local=entries(file)["local"], far=entries(file)["far"]
    )  # without the entry that cannot be wrapped
    again = run("cursor", "--json", "--yes")
    [row] = outcome(again)["files"]
    assert [(s["state"], s["server"], s["is_new"]) for s in row["servers"]] == [
        ("wrapped", "local", False),
        ("wrapped", "far", False),
    ]
    assert (outcome(again)["done"], row["is_written"], again.return_value) == (True, False, 0)


def test_where_all_would_be_wrapped_it_is_not_yet(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--json", "--dry-run")
    assert (outcome(done)["done"], done.return_value) == (False, 0)


def test_where_there_is_no_file(root: Root, home: Path) -> None:
    done = run("--all", "--json", "--yes")
    assert (outcome(done), done.return_value, done.stderr) == (NOTHING, 0, "")


def test_json_needs_an_answer_in_advance(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--json")
    assert isinstance(done.exception, UsageError)
    assert "as a program that reads JSON cannot be asked; nothing was changed" in str(
        done.exception
    )
    assert done.stdout == ""
    assert not (root.folder / "asked").exists()


def test_what_root_prints_is_not_in_it(
    root: Root, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sudo = root.folder / "sudo"
    sudo.write_text(sudo.read_text().replace("exit", "echo what root says\nexit"))
    put(home / ".cursor/mcp.json", local=RAW)
    put(home / ".kiro/settings/mcp.json", other={"command": "true"})
    run("cursor", "--json", "--yes")
    assert capfd.readouterr() == ("", "what root says\n")
    run("kiro", "--yes")
    assert capfd.readouterr() == ("what root says\n", "")


def test_what_root_has_not_taken_is_still_proposed(root: Root, home: Path) -> None:
    root.agrees(status=1)
    file = put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--json", "--yes")
    found = outcome(done)
    proposal = found["proposal"]
    content = Path(proposal["path"]).read_bytes()
    assert (proposal["sha256"], proposal["is_written"]) == (
        hashlib.sha256(content).hexdigest(), True,
    )  # fmt: skip
    assert root.asked() == ["/usr/bin/mcpwrap", *proposal["command"].split()[1:]]
    assert (found["done"], done.return_value, done.stderr) == (False, 1, "")
    assert found["files"] == [file_row(file, server_row("local", server="local", is_new=True))]


def test_without_sudo_a_machine_has_the_command_and_later_goes_on(root: Root, home: Path) -> None:
    (root.folder / "sudo").unlink()
    put(home / ".cursor/mcp.json", local=RAW)
    done = run("cursor", "--json", "--yes")
    proposal = outcome(done)["proposal"]
    assert proposal["command"] == f"mcpwrap accept {proposal['sha256']} {proposal['path']}"
    assert (proposal["is_written"], done.return_value) == (True, 1)
    (root.folder / "proposal").write_bytes(Path(proposal["path"]).read_bytes())
    later = outcome(run("cursor", "--json", "--yes"))
    assert (later["done"], later["new"], later["proposal"]) == (True, [], None)


def test_what_root_took_and_cannot_be_led_to_is_left(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local={"command": "true", "env": {"API_KEY": "${NOT_THERE}"}})
    root.unset = {"local": ("NOT_THERE",)}
    done = run("cursor", "--json", "--yes")
    found = outcome(done)
    why = (
        "a secret has no value yet: `sudo mcpwrap secret set local NOT_THERE` [E-WRAP-SECRET-UNSET]"
    )
    assert found["files"][0]["servers"] == [server_row("local", runs="true", why=why)]
    assert [new["missing"] for new in found["new"]] == [["NOT_THERE"]]
    assert (found["done"], found["proposal"], done.return_value) == (False, None, 1)


def test_what_leads_to_a_server_that_is_made_now_is_wrapped(root: Root, home: Path) -> None:
    """It is skipped in the first pass, and wrapped in the second."""
    put(home / ".cursor/mcp.json", local=RAW)
    put(home / ".kiro/settings/mcp.json", same={"command": STUB, "args": ["local"]})
    done = run("--all", "--json", "--yes")
    states = [s["state"] for row in outcome(done)["files"] for s in row["servers"]]
    assert (states, outcome(done)["done"], done.return_value) == (["wrapped", "wrapped"], True, 0)


def test_what_came_with_a_project_has_its_hash(root: Root, home: Path) -> None:
    file = put(home / "shop/.cursor/mcp.json", local=RAW)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    done = run("--all", "--json", "--yes")
    [row] = outcome(done)["files"]
    assert f"--sha256 {digest}" in row["problem"]
    assert row == file_row(file, scope="project", sha256=digest, problem=row["problem"])
    assert done.return_value == 1
    assert outcome(run("--all", "--json", "--yes", "--sha256", digest))["done"]


def test_files_that_stay_as_they_are(root: Root, home: Path) -> None:
    """One file is broken, and one cannot be rewritten."""
    broken = home / ".kiro/settings/mcp.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    tied = home / ".config/goose/config.yaml"
    tied.parent.mkdir(parents=True)
    tied.write_text("extensions:\n  a: {type: stdio, cmd: &x 'true'}\nother: *x\n")
    done = run("--all", "--json", "--yes")
    rows = {row["path"]: row for row in outcome(done)["files"]}
    assert "not JSON" in rows[str(broken)]["problem"]
    assert rows[str(broken)]["servers"] == []
    assert "cannot be rewritten without changing other text" in rows[str(tied)]["problem"]
    assert [(s["name"], s["state"]) for s in rows[str(tied)]["servers"]] == [("a", "raw")]
    assert (outcome(done)["done"], done.return_value) == (False, 1)


def test_a_file_that_changes_meanwhile_is_reported(
    root: Root, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".kiro/settings/mcp.json", local=RAW)
    assert run("kiro", "--yes").return_value == 0
    late = put(home / ".cursor/mcp.json", local=RAW)
    change_when_agreed(monkeypatch, late)
    done = run("cursor", "--json", "--yes")
    problem = "was changed in the meantime; nothing was changed [E-AGENT-FILE-CHANGED]"
    [row] = outcome(done)["files"]
    assert row == file_row(late, server_row("local", server="local"), problem=problem)
    assert (outcome(done)["done"], done.return_value, done.stderr) == (False, 1, "")


def test_secrets_are_named_wherever_they_are(root: Root, home: Path) -> None:
    asks = {"command": "true", "env": {"LOG_LEVEL": "${AWS_SECRET_ACCESS_KEY}"}}
    file = home / ".claude.json"
    servers = {"local": RAW, "asks": asks}
    file.write_text(json.dumps({"history": ["use s3cr3t-s3cr3t"], "mcpServers": servers}))
    done = run("claude-code", "--json", "--yes", AWS_SECRET_ACCESS_KEY="an0ther-s3cr3t")
    found = outcome(done)
    assert found["files"][0]["left_over"] == ["API_KEY of local"]
    assert [(new["secrets"], new["from_variables"]) for new in found["new"]] == [
        (["API_KEY"], {}),
        ([], {"AWS_SECRET_ACCESS_KEY": ["AWS_SECRET_ACCESS_KEY"]}),
    ]
    other = {**RAW, "env": {"API_KEY": "t0p-an0ther", "L": "info"}}
    put(home / ".kiro/settings/mcp.json", local=other)
    [note] = outcome(run("kiro", "--json", "--dry-run"))["notes"]
    assert "it uses the API_KEY that root set for it" in note


def test_a_file_of_several_plugins_has_a_reason_for_each(root: Root, home: Path) -> None:
    """The file of a marketplace may list the servers of all its plugins."""
    shop = home / "shop"
    listed = [{"name": name, "mcpServers": {"db": {"command": "npx"}}} for name in ("a", "b")]
    catalogue = shop / ".claude-plugin/marketplace.json"
    known = {"m": {"source": {"source": "github"}, "installLocation": str(shop)}}
    record = [{"scope": "user", "installPath": str(home / "nowhere")}]
    for path, content in (
        (catalogue, {"plugins": listed}),
        (home / ".claude/plugins/known_marketplaces.json", known),
        (
            home / ".claude/plugins/installed_plugins.json",
            {"plugins": {"a@m": record, "b@m": record}},
        ),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    rows = outcome(run("--all", "--json", "--dry-run"))["files"]
    assert [row["path"] for row in rows] == [str(catalogue)] * 2
    assert [row["problem"].split(",")[0] for row in rows] == [
        "is a file of the plugin a@m",
        "is a file of the plugin b@m",
    ]

"""`mcpwrap audit` as typed, on the audit of a small, honest gate."""

import json
import os
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.audit import command as audit_command
from mcpwrap.cli.audit import source, verify
from mcpwrap.cli.audit.command import command
from mcpwrap.core.audit.records import Anchor, Keys
from mcpwrap.core.egress.access_log import EgressEvent
from mcpwrap.errors import UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine.logs import audit_keys, egress_log
from tests.unit.core.audit_records import sealed
from tests.unit.core.audits import T0, Gate, keys, put

Audit = tuple[Path, Gate]


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Return a gate whose audit is the system's, read by root."""
    folder = tmp_path / "audit"
    gate = Gate({})
    one, other = gate.open("sqlite", uid=0), gate.open("fetch", uid=60_001)
    gate.record(one, times=3)
    gate.record(other, decision="blocked", rule="no-x", why="Not\nx.", target="get", us=120)
    gate.record(
        one,
        project="/home/a/src/p",
        sealed=sealed(b'{"name":"t"}'),
        method="prompts/get",
        target="p",
    )
    gate.heads(one, other)
    gate.anchor()
    put(folder, gate.files)
    monkeypatch.setattr(source, "SYSTEM", folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(audit_keys, "of_system", keys)
    monkeypatch.setattr(audit_keys, "anchors", lambda: gate.anchors)
    refused = EgressEvent(
        at=T0 + 6.5, server="git", destination="b.test:443", rule="host-not-allowed"
    )
    monkeypatch.setattr(egress_log, "with_times", lambda: [refused])
    return gate


def run(*arguments: str, state: str = "") -> Result:
    environ = {"XDG_STATE_HOME": state}
    return CliRunner().invoke(command, arguments, standalone_mode=False, obj=environ)


def parsed(output: str) -> list[dict[str, object]]:
    return [json.JSONDecoder().decode(line) for line in output.splitlines()]


@pytest.mark.usefixtures("gate")
class TestShow:
    def test_a_line_for_each_decision(self) -> None:
        blocked, refused, sealed_one = run("show").stdout.splitlines()[3:]
        at = "2026-11-18T11:06:"
        assert blocked == (
            f"{at}46.000+00:00  60001  fetch  1-2  blocked"
            r"  tools/call get id=0  by no-x  (Not\nx.)  120 us"
        )
        assert refused == (
            f"{at}46.500+00:00  -  git  -  refused"
            "  egress b.test:443  by host-not-allowed  (the host is not in `egress`)"
        )
        assert (
            sealed_one
            == f"{at}47.000+00:00  root  sqlite  1-1  allowed  prompts/get p id=3  in /home/a/src/p"
        )

    def test_colours_on_a_terminal_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "\x1b" not in run("show").stdout
        monkeypatch.setattr(tty, "is_coloured", lambda _: True)
        shown = run("show").stdout
        assert "\x1b[31mblocked\x1b[0m" in shown
        assert "\x1b[32mallowed\x1b[0m" in shown

    @pytest.mark.parametrize(
        ("options", "shown"),
        [
            ([], 6),
            (["--server", "s*"], 4),
            (["--project", "/home/a/src/*"], 1),
            (["--project", "*"], 1),
            (["--project", "/home/a"], 0),
            (["--tool", "read_*"], 3),
            (["--decision", "blocked"], 1),
            (["--decision", "refused"], 1),
            (["--agent", "root"], 4),
            (["--agent", "60001"], 1),
            (["--since", "2026-11-18T11:06:46"], 3),
            (["--until", "2026-11-18T11:06:46Z"], 4),
            (["-n", "2"], 2),
            (["-n", "2", "--server", "fetch"], 1),
        ],
    )
    def test_what_was_asked_for(self, options: list[str], shown: int) -> None:
        assert len(run("show", *options).stdout.splitlines()) == shown
        assert len(parsed(run("show", "--json", *options).stdout)) == shown

    def test_that_there_is_more_is_told(self) -> None:
        assert "the last 5; -n shows more" in run("show", "-n", "5").stderr
        assert run("show", "-n", "6").stderr == ""
        assert "no record matches" in run("show", "--server", "x").stderr

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--since", "yesterday"], "'yesterday' is not a time"),
            (["--agent", "nobody-of-this-name"], "no account"),
        ],
    )
    def test_what_cannot_be_understood_is_refused(self, options: list[str], said: str) -> None:
        found = run("show", *options)
        assert isinstance(found.exception, UsageError)
        assert said in str(found.exception)

    def test_others_than_root_do_not_see_the_way_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert "b.test" not in run("show").stdout


def test_without_an_audit_it_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SYSTEM", tmp_path / "none")
    for verb in ("show", "follow", "export"):
        assert "there is no audit yet" in str(run(verb).exception)


def test_follow_shows_what_comes(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter(range(3))

    def sleep(_: float) -> None:
        if next(turns) == 2:
            raise KeyboardInterrupt
        new = gate.open("new")
        gate.record(new)
        put(source.SYSTEM, gate.files)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(egress_log, "_LOGS", source.SYSTEM / "none")
    lines = parsed(run("follow", "--json", "--server", "n*").stdout)
    assert [line["session"] for line in lines] == ["1-3", "1-4"]


class TestExport:
    @pytest.mark.usefixtures("gate")
    def test_all_fields_with_the_name_of_the_agent(self) -> None:
        found = run("export")
        assert found.return_value == 0
        lines = parsed(found.stdout)
        assert len(lines) == 5
        assert lines[3] == {
            "agent": "60001", "n": 0, "at": T0 + 6, "server": "fetch", "uid": 60_001,
            "session": "1-2", "sender": "agent", "decision": "blocked", "method": "tools/call",
            "target": "get", "id": 0, "rule": "no-x", "why": "Not\nx.", "us": 120,
        }  # fmt: skip
        assert "params" not in lines[4]

    @pytest.mark.usefixtures("gate")
    def test_root_opens_what_is_sealed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert parsed(run("export", "--open").stdout)[4]["params"] == {"name": "t"}
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert "needs root" in str(run("export", "--open").exception)

    def test_what_does_not_open_is_told(self, gate: Gate) -> None:
        session = gate.open()
        gate.record(session, sealed="AAAA")
        put(source.SYSTEM, gate.files)
        found = run("export", "--open")
        assert found.return_value == 1
        assert "the sealed params of 1 records could not be opened" in found.stderr
        assert len(parsed(found.stdout)) == 6


class TestVerify:
    def test_what_is_untouched(self, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "perf_counter", lambda: 1.0)
        found = run("verify")
        assert found.return_value == 0
        assert found.stdout == ("1 run of the gate, 2 sessions, 5 records: untouched (0.0 s)\n")
        gate.anchors.clear()
        assert run("verify").stdout.startswith(
            "remark: 00000001/master.jsonl: the journal has no anchor"
        )

    @pytest.mark.usefixtures("gate")
    def test_what_is_not(self) -> None:
        path = source.SYSTEM / "00000001/1-1.jsonl"
        path.write_bytes(path.read_bytes().replace(b"read_query", b"READ_QUERY", 1))
        (source.SYSTEM / "x\x1b[2J").write_text("")
        found = run("verify")
        assert found.return_value == 1
        lines = found.stdout.splitlines()
        assert lines[:2] == [
            "FOUND: 00000001/1-1.jsonl:1: is not record 0 as it was written",
            r"FOUND: x\x1b[2J: is not a folder of the audit",
        ]
        assert ": 2 findings (" in lines[2]
        told = json.JSONDecoder().decode(run("verify", "--json").stdout)
        assert told["findings"][0] == {
            "file": "00000001/1-1.jsonl",
            "line": 1,
            "what": "is not record 0 as it was written",
        }
        assert (told["runs"], told["sessions"], told["records"]) == (1, 2, 4)

    @pytest.mark.usefixtures("gate")
    def test_it_needs_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert "needs root" in str(run("verify").exception)

    def test_a_gate_that_starts_meanwhile_is_waited_for(
        self, gate: Gate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Root has allocated an epoch number, and the gate has no folder yet."""

        def sleep(_: float) -> None:
            put(source.SYSTEM, Gate({}, epoch=2).files)

        monkeypatch.setattr(time, "sleep", sleep)
        monkeypatch.setattr(audit_keys, "of_system", lambda: keys(2))
        assert run("verify").return_value == 0
        # The folder exists; root's number was read before.
        told = iter([keys(1), keys(2), keys(2)])
        monkeypatch.setattr(audit_keys, "of_system", lambda: next(told))
        assert run("verify").return_value == 0

    @pytest.mark.usefixtures("gate")
    def test_a_run_that_never_gets_a_folder_is_missed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verify, "_TRY_EVERY_S", 0)
        monkeypatch.setattr(audit_keys, "of_system", lambda: keys(2))
        found = run("verify")
        assert found.return_value == 1
        assert "00000002: the folder of a run of the gate is missing" in found.stdout


class TestTheUsersOwn:
    @pytest.mark.parametrize("state", ["", "relative"])
    def test_is_in_the_home(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        put(tmp_path / ".local/state/mcpwrap/audit", Gate({}).files)
        assert "no record matches" in run("show", "--user", state=state).stderr

    def test_is_shown_checked_and_opened_by_its_keys(self, tmp_path: Path, gate: Gate) -> None:
        folder = tmp_path / "state/mcpwrap/audit"
        put(folder, gate.files)
        state = str(tmp_path / "state")
        assert len(run("show", "--user", state=state).stdout.splitlines()) == 5
        assert "or its keys are missing" in str(run("verify", "--user", state=state).exception)
        (folder / "keys.json").write_text("{}")
        assert "keys of the audit cannot" in str(run("verify", "--user", state=state).exception)
        (folder / "keys.json").write_bytes(msgspec.json.encode(keys()))
        found = run("verify", "--user", state=state)
        assert found.return_value == 0
        assert "2 sessions, 5 records: untouched" in found.stdout
        opened = parsed(run("export", "--user", "--open", state=state).stdout)
        assert opened[4]["params"] == {"name": "t"}


class TestKeysAndAnchors:
    """Keys and anchors in the formats of root's program and journalctl(1)."""

    def test_are_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = {"MCPWRAP_EPOCH": "2", "MCPWRAP_COUNT": "7", "MCPWRAP_MAC": "ab", "_PID": "41"}
        unsigned = {key: value for key, value in entry.items() if key != "_PID"}
        garbage = [{**entry, "MCPWRAP_COUNT": ["7", "8"]}, {**entry, "MCPWRAP_EPOCH": "x"}, {}]
        printed = "\n".join(json.dumps(one) for one in [*garbage, entry, unsigned])
        asked: list[tuple[str, ...]] = []

        def tool(*argv: str) -> str:
            asked.append(argv)
            return printed if argv[0] == audit_keys.JOURNALCTL else as_json

        as_json = msgspec.json.encode(keys(3)).decode()
        monkeypatch.setattr(audit_keys, "run", tool)
        assert audit_keys.anchors() == [Anchor(2, 7, "ab", pid=41), Anchor(2, 7, "ab", pid=0)]
        assert audit_keys.of_system() == keys(3)
        assert isinstance(audit_keys.of_system(), Keys)
        assert "_SYSTEMD_UNIT=mcpwrap-gate.service" in asked[0]
        assert any(one.startswith("--output-fields=") and "_PID" in one for one in asked[0])
        assert asked[1] == ("/usr/libexec/mcpwrap/mcpwrap-audit", "keys")

    def test_an_error_tells_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit_keys, "run", lambda *_: '{"root_key": "c2VjcmV0"')
        with pytest.raises(Exception, match="the keys of the audit cannot be parsed") as error:
            audit_keys.of_system()
        assert error.value.__suppress_context__
        assert "c2VjcmV0" not in str(error.value)

    def test_a_journal_that_cannot_be_read_is_an_error(
        self, gate: Gate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> list[Anchor]:
            raise ToolError(
                "no such file",
                where=audit_keys.JOURNALCTL,
                fix="see what it says",
                code="E-TOOL-FAILED",
            )

        monkeypatch.setattr(audit_keys, "anchors", fail)
        assert gate.anchors
        assert isinstance(run("verify").exception, ToolError)


def test_the_times_between_looks_are_short() -> None:
    assert audit_command._LOOK_EVERY_S <= 1

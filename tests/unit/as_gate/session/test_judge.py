"""Session's judge with a real recorder: what its audit file has of the calls of a server."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.as_gate.session import judge
from mcpwrap.as_gate.session.judge import SessionJudge
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.project import SessionProject
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.audit import records
from mcpwrap.core.audit.hash_chain import Chain, record_of
from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.gate.executed_code import RunReport, submitted_code
from mcpwrap.core.gate.gate import ToAgent
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import LimitsEntry, Policy, Rule
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder
from tests.unit.as_gate.session.pins_monitor import PinsMonitor, accepted

KEY = bytes(range(32))
CODE = b"print('canary')"
PARAMS = b'{"name":"run_python","arguments":{"code":"%b"}}' % CODE
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % PARAMS
CONTENT = b'{"stdout":"canary","exit_code":0,"ending":"exit","run":"00ff"}'
RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":%b}}' % CONTENT


@pytest.fixture(autouse=True)
def no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "Journal", lambda: None)  # it gets no note here


def records_of(path: Path) -> list[records.Record]:
    chain = Chain(KEY)
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(chain.accepts(line) for line in lines)
    return [records.decode_record(record_of(line)) for line in lines]


@contextmanager
def judging(
    path: Path,
    *,
    executes: bool = False,
    pins: PinsView | None = None,
    rules: Policy = Policy(),  # noqa: B008
) -> Iterator[tuple[SessionJudge, PinsMonitor]]:
    start = records.start_of(KEY, 1)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        recorder = Recorder(
            RecordedSession("1-1", "py", 1000),
            ChainedFile(fd, Chain(KEY)),
            ParamsEncoder("hash", start.digest_key, start.box),
            SharedCounters(),
            lambda: None,
        )
        bell = DoorbellFlag()
        monitor = ToMonitor(ours, bell, Backoff())
        rule = AccessRule(uids=(1000,), gids=(), inherits=(), executes=executes)
        admissions = AccessList(by_server={"py": rule})
        agent = AgentIdentity(Peer(1, 1000, frozenset()), "stub")
        policy = compile_policy(rules, "py")
        session = SessionJudge(policy, recorder, monitor, agent, admissions)
        if pins is not None:
            session.pin(pins)
        yield session, PinsMonitor(theirs, bell)
    os.close(fd)


@pytest.mark.parametrize("executes", [True, False])
def test_the_audit_has_code_and_run_of_a_server_that_executes_code(
    tmp_path: Path, *, executes: bool
) -> None:
    path = tmp_path / "1.jsonl"
    with judging(path, executes=executes) as (session, _):
        session.renew(session.gate)
        assert len(session.gate.from_agent(CALL)) == 1
        assert len(session.gate.from_server(RESPONSE)) == 1
    found = [(one.sender, one.code, one.run) for one in records_of(path)]
    if executes:
        code = submitted_code({"code": CODE.decode()})
        run = RunReport(id="00ff", ending="exit", exit_code=0)
        assert found == [("agent", code, None), ("server", None, run)]
    else:
        assert found == [("agent", None, None)]
    assert b"canary" not in path.read_bytes()


def test_a_tool_that_the_session_holds_back_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, str]] = []

    class GivenJournal:
        """Journal that stores what it is given."""

        def write(self, text: str, **fields: str) -> None:
            written.append((text, fields["MCPWRAP_TOOL"]))

    monkeypatch.setattr(judge, "Journal", GivenJournal)
    limits = LimitsEntry(failures=1, scope="session")
    with judging(tmp_path / "1.jsonl", rules=Policy(limits=(limits,))) as (session, _):
        session.gate.from_agent(CALL)
        session.gate.from_server(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}')
        assert "1 failures in a row" in str(session.gate.from_agent(CALL))
    why = "'run_python' is held back: 1 failures in a row"
    assert written == [(f"uid 1000, 'py': limited: {why}", "run_python")]


LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
LISTED = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b"}]}}'
HANDSHAKE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
SHAKEN = b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'


def test_what_is_accepted_while_a_session_runs_is_notified_to_its_agent(tmp_path: Path) -> None:
    only_a, both = accepted({"name": "a"}), accepted({"name": "a"}, {"name": "b"})
    with judging(tmp_path / "1.jsonl", pins=only_a) as (session, monitor):
        gate = session.gate
        gate.from_agent(HANDSHAKE)
        gate.from_server(SHAKEN)
        gate.from_agent(LIST)
        monitor.page()
        *_, passed = gate.from_server(LISTED)
        [offered] = monitor.offered()
        assert offered.entries == (("b", msgspec.Raw(b'{"name":"b"}')),)
        assert passed == ToAgent(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}\n')
        assert session.renew(gate) == []
        monitor.push(both)
        changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        assert session.renew(gate) == [ToAgent(changed)]
        assert session.renew(gate) == []


def test_without_pins_a_list_passes_as_it_is(tmp_path: Path) -> None:
    with judging(tmp_path / "1.jsonl") as (session, _):
        session.gate.from_agent(LIST)
        assert session.gate.from_server(LISTED) == [ToAgent(LISTED + b"\n")]


IN_PROD = Rule(name="prod", tools=("*",), action="block", projects=("/a/prod", "/a/prod/*"))
BLOCKED = "Refused by mcpwrap (rule prod)"


@pytest.mark.parametrize(
    ("project", "is_blocked"), [("/a/prod", True), ("/a/prod/sub", True), ("/a/dev", False)]
)
def test_the_project_is_a_fact_of_the_policy_also_of_a_new_one(
    tmp_path: Path, project: str, *, is_blocked: bool
) -> None:
    path = tmp_path / "1.jsonl"
    with judging(path, rules=Policy(rules=(IN_PROD,))) as (session, monitor):
        session.see(SessionProject(path=project))
        assert (BLOCKED in str(session.gate.from_agent(CALL))) == is_blocked
        monitor.push_policy(Policy(rules=(Rule(name="x", tools=("x",), action="log"), IN_PROD)))
        session.renew(session.gate)
        assert (BLOCKED in str(session.gate.from_agent(CALL.replace(b"1", b"2")))) == is_blocked
    assert {one.project for one in records_of(path)} == {project}


def test_without_a_project_its_rules_do_not_hold_and_the_agent_is_told(tmp_path: Path) -> None:
    with judging(tmp_path / "1.jsonl", rules=Policy(rules=(IN_PROD,))) as (session, _):
        session.see(SessionProject(why_none="py sees no project: x"))
        session.gate.from_agent(HANDSHAKE)
        assert "py sees no project: x" in str(session.gate.from_server(SHAKEN))
        assert BLOCKED not in str(session.gate.from_agent(CALL))
    assert all(one.project == "" for one in records_of(tmp_path / "1.jsonl"))

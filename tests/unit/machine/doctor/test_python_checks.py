"""Checks of code execution: each verdict follows from one probe, and a held call is no failure."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.config.model import Config, Direct, WorkerListener
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.doctor import Check
from mcpwrap.machine import policy_files, worker
from mcpwrap.machine.doctor import live_probes, python_checks
from mcpwrap.machine.doctor.live_probes import TrialResult, TrialStatus
from mcpwrap.machine.worker import ObservedWorker, PoolState, State

LOCAL = """
[mcp_servers.py]
python = "/usr/bin/python3"
"""
REMOTE = (
    LOCAL
    + """
[mcp_servers.py.mcpwrap]
worker = "https://10.0.0.5:9443"
"""
)
PRINTS, CONNECTS = "py: run print(1)", "py: reach the network from a run"
WORKER = "py: reach the worker as alice"


def configured(text: str) -> Config:
    return parse([SourceFile("c", text.encode())])


@pytest.fixture(autouse=True)
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a machine without a policy, and a worker that is ready."""
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(worker, "observe", in_state("ready"))
    monkeypatch.setattr(python_checks, "properties", limits({}, {}))
    return tmp_path / "policy.yaml"


def limits(slot: dict[str, str], group: dict[str, str]) -> Callable[..., dict[str, dict[str, str]]]:
    """Return what systemd shows of a slot and of the slice of all slots, but for these values."""
    usual = {"MemoryMax": "1000", "TasksMax": "9", "MemoryCurrent": "5", "ActiveState": "active"}

    def properties(units: Iterable[str], _: object) -> dict[str, dict[str, str]]:
        return {unit: usual | (group if unit == "mcpwrap-job.slice" else slot) for unit in units}

    return properties


def in_state(state: State, *closed: str) -> Callable[[], ObservedWorker]:
    """Return an observation of a worker with one pool of two slots."""
    pools = {} if state == "off" else {"py": PoolState(slots=2, closed=closed)}
    return lambda: ObservedWorker(state=state, status="said", fix="do", reopen="open", pools=pools)


def checks(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, line: str = "said", text: str = LOCAL
) -> dict[str, Check]:
    """Return the checks of a server whose probes all end so, by title."""
    tried = TrialResult(ended, line)
    monkeypatch.setattr(live_probes, "session", lambda *_: tried)
    monkeypatch.setattr(live_probes, "try_as", lambda *_: tried)
    found = python_checks.runs(configured(text).servers["py"], "alice")
    return {check.what: check for check in found}


@pytest.mark.parametrize(
    ("ended", "prints", "connects", "reaches"),
    [
        (TrialStatus.WORKED, "good", "failed", "failed"),
        (TrialStatus.REFUSED, "failed", "good", "good"),
        (TrialStatus.NO_ROUTE, "failed", "good", "unknown"),
        (TrialStatus.OTHERWISE, "failed", "unknown", "unknown"),  # the code was not executed
        (TrialStatus.UNKNOWN, "unknown", "unknown", "unknown"),
    ],
)
def test_a_verdict_follows_from_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, prints: str, connects: str, reaches: str
) -> None:
    found = checks(monkeypatch, ended)
    states = [found[what].state for what in (PRINTS, CONNECTS, WORKER)]
    assert states == [prints, connects, reaches]
    assert all(check.fix for check in found.values() if check.state != "good")


def test_the_attempts_are_made_as_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, ...]] = []

    def note(*argv: str) -> TrialResult:
        tried.append(argv)
        return TrialResult(TrialStatus.REFUSED, "said")

    monkeypatch.setattr(live_probes, "session", note)
    monkeypatch.setattr(live_probes, "try_as", note)
    list(python_checks.runs(configured(LOCAL).servers["py"], "alice"))
    assert tried == [
        ("alice", "py", "print"),
        ("alice", "py", "connect"),
        ("alice", "connect", "127.79.0.1", "52200"),
    ]


def test_a_worker_elsewhere_has_no_local_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(monkeypatch, TrialStatus.REFUSED, text=REMOTE).keys() == {PRINTS, CONNECTS}


@pytest.mark.parametrize(
    ("line", "state", "text"),
    [
        ("busy [E-WORKER-BUSY]", "unknown", "could not be checked: busy [E-WORKER-BUSY]"),
        ("no answer", "failed", "no answer [E-DOCTOR-RUN]"),
        ("gone [E-WORKER-LOST]", "failed", "gone [E-WORKER-LOST]"),
    ],
)
def test_a_run_that_does_not_print_has_a_reason(
    monkeypatch: pytest.MonkeyPatch, line: str, state: str, text: str
) -> None:
    check = checks(monkeypatch, TrialStatus.REFUSED, line)[PRINTS]
    assert (check.state, check.found) == (state, text)


RULE = """\
version: 1
rules:
  - name: one
    tool: run_python
    action: {action}
    when: [{{arg: code, matches: "{pattern}"}}]
"""


@pytest.mark.parametrize(
    ("action", "pattern", "held"),
    [
        ("allow", ".", set()),
        ("allow_with_approval", "print", {PRINTS, CONNECTS}),
        ("block", "print", {PRINTS, CONNECTS}),
        ("allow_with_approval", "socket", {CONNECTS}),  # each call has its own judgement
    ],
)
def test_a_call_that_the_policy_holds_is_not_made(
    monkeypatch: pytest.MonkeyPatch, policy: Path, action: str, pattern: str, held: set[str]
) -> None:
    policy.write_text(RULE.format(action=action, pattern=pattern))
    found = checks(monkeypatch, TrialStatus.REFUSED)
    assert {what for what in (PRINTS, CONNECTS) if "by the rule one" in found[what].found} == held
    assert {found[what].state for what in held} <= {"unknown"}
    assert found[WORKER].state == "good"


@pytest.mark.parametrize(
    ("slot", "group", "state", "text"),
    [
        ({}, {}, "good", "of memory and tasks"),
        ({"MemoryMax": "infinity"}, {}, "failed", "mcpwrap-job@py-0.service has no MemoryMax="),
        ({"TasksMax": "infinity"}, {}, "failed", "mcpwrap-job@py-0.service has no TasksMax="),
        # A slot that is not up shows nothing of this, nor do limits that the slice has not.
        ({"ActiveState": "inactive", "MemoryCurrent": "[not set]"}, {"MemoryMax": "infinity"},
         "good", "of memory"),
        ({}, {"MemoryCurrent": "[not set]"}, "warning", "counts no memory by control group"),
        ({}, {"MemoryCurrent": str(2**64 - 1)}, "warning", "counts no memory by control group"),
        ({}, {"ActiveState": "inactive"}, "warning", "no code was executed since the boot"),
    ],
)  # fmt: skip
def test_runs_have_limits_that_the_machine_enforces(
    monkeypatch: pytest.MonkeyPatch,
    slot: dict[str, str],
    group: dict[str, str],
    state: str,
    text: str,
) -> None:
    monkeypatch.setattr(python_checks, "properties", limits(slot, group))
    check = checks(monkeypatch, TrialStatus.REFUSED)["py: limits of runs"]
    assert check.state == state
    assert text in check.found
    assert bool(check.fix) == (state != "good")


@pytest.mark.parametrize("state", ["failed", "stopped", "off"])
def test_where_nothing_listens_no_refusal_is_proved(
    monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    monkeypatch.setattr(worker, "observe", in_state(state))
    assert checks(monkeypatch, TrialStatus.REFUSED)[WORKER].state == "unknown"


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("ready", "good"),
        ("draining", "warning"),
        ("starting", "unknown"),
        ("failed", "failed"),
        ("stopped", "failed"),
        ("off", "failed"),  # it is configured, and was not applied
    ],
)
def test_the_worker_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, state: State, verdict: str
) -> None:
    monkeypatch.setattr(worker, "observe", in_state(state))
    found = {check.what: check for check in python_checks.machine(configured(LOCAL))}
    assert found.keys() == {"worker", "run slots"}
    assert found["worker"].state == verdict
    assert found["run slots"].state == "good"
    monkeypatch.setattr(worker, "observe", in_state(state, "mcpwrap-job@py-1.socket"))
    slots = next(c for c in python_checks.machine(configured(LOCAL)) if c.what == "run slots")
    if state != "off":
        assert slots.found.startswith("1 of 2 do not listen, such as mcpwrap-job@py-1.socket")
        assert slots.fix == "open"


@pytest.mark.parametrize("text", ["", REMOTE])
def test_a_machine_without_run_slots_has_no_such_checks(text: str) -> None:
    assert list(python_checks.machine(configured(text))) == []


@pytest.mark.parametrize("is_roots", [True, False])
def test_only_root_may_change_the_interpreter_for_other_machines(
    tmp_path: Path, *, is_roots: bool
) -> None:
    program = tmp_path / "python3"  # below /tmp, which has mode 1777
    program.write_bytes(b"\x7fELF")
    interpreter = "/bin/sh" if is_roots else str(program)
    listener = WorkerListener(
        listen=Direct("10.0.0.5", 9443), interpreter=interpreter, certificate="", key=""
    )
    found = {c.what: c for c in python_checks.machine(Config({}, {}, worker=listener))}
    assert found["worker: python"].state == ("good" if is_roots else "failed")
    assert found["worker: limits of runs"].state == "good"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two certificates with keys, and a key with a password."""
    folder = tmp_path_factory.mktemp("pem")
    for name in ("a", "b"):
        subprocess.run(
            [
                "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=worker",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
            ],
            check=True, capture_output=True,
        )  # fmt: skip
    subprocess.run(
        [
            "/usr/bin/openssl", "ec", "-aes256", "-passout", "pass:x", "-in", folder / "a.key",
            "-out", folder / "locked.key",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "flaw"),
    [
        ("a.pem", "a.key", ""),
        ("a.pem", "b.key", "cannot be used"),  # of another certificate
        ("a.pem", "none", "cannot be used: [Errno 2]"),
        ("a.key", "a.key", "cannot be used"),
        ("a.pem", "locked.key", "the key has a password"),
    ],
)
def test_a_certificate_and_its_key(
    pem: Path, certificate: str, key: str, flaw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = python_checks.certificate_flaw(str(pem / certificate), str(pem / key))
    assert flaw in found
    assert bool(found) == bool(flaw)
    text = f"""
        [worker]
        listen = "10.0.0.5:9443"
        certificate = "{pem / certificate}"
        key = "{pem / key}"
    """
    tls = next(c for c in python_checks.machine(configured(text)) if c.what == "worker: TLS")
    assert tls.state == ("failed" if flaw else "good")
    # The files are good again, and the worker was not restarted.
    found_by_worker = replace(worker.observe(), listener_flaw="no key")
    monkeypatch.setattr(worker, "observe", lambda: found_by_worker)
    tls = next(c for c in python_checks.machine(configured(text)) if c.what == "worker: TLS")
    assert (tls.state, tls.fix) == ("failed", worker.TLS_FIX)

"""Relay of a session from start to end, without a sandbox: this needs no privileges."""

import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mcpwrap.core.protocol.framing import MAX_LINE_BYTES
from tests.shared import pace

RELAY = """
import os, signal, sys
from mcpwrap.as_agent.run import relay
from mcpwrap.as_agent.run.sandbox.layers import Confinement, Network
from mcpwrap.as_agent.run.sandbox.launch import StageError
from mcpwrap.core.gate.ports import NO_APPROVALS
from mcpwrap.core.policy.compiled import NO_CONTEXT
from mcpwrap.core.policy.rules import Policy
from mcpwrap.session.launch.spawn import Program
from tests.unit.as_agent.run.scripted_run import ScriptedUserAudit, run_policy
ignored, command, cwd, *args = sys.argv[1:]
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):  # as by nohup(1)
    signal.signal(number, signal.SIG_IGN if number.name == ignored else signal.SIG_DFL)
program = Program(command=command, args=args, cwd=cwd, env={"PATH": os.environ["PATH"]})
closing = Confinement(
    to_read=(), to_write=(), links={}, cwd="/", network=Network.NOTHING, layers=frozenset()
)
try:
    in_force = run_policy(Policy(), "probe")
    gate = in_force.gate(ScriptedUserAudit(), NO_APPROVALS, NO_CONTEXT)
    ended = relay.run(program, closing, relay.RunJudging(gate, in_force, None))
except StageError as error:
    print(error.stage.name, error.strerror, error.layer)
    sys.exit(99)
print("answered" if ended.has_answered else "silent", file=sys.stderr)
sys.exit(ended.status)
"""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
ANSWER = 'import sys; sys.stdin.readline(); print(\'{"jsonrpc":"2.0","id":1,"result":{}}\')'


@contextmanager
def relay(
    code: str,
    command: str = sys.executable,
    cwd: str = "/",
    ignored: str = "",
    stderr: int = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", RELAY, ignored, command, cwd, "-c", code]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        yield process


def run(
    code: str, said: bytes = b"", *, command: str = sys.executable, cwd: str = "/"
) -> tuple[int, bytes, bytes]:
    with relay(code, command, cwd) as process:
        out, err = process.communicate(said, timeout=pace.WAIT_S)
        return process.returncode, out, err


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("", 0),
        ("raise SystemExit(7)", 7),
        ("import os; os.kill(os.getpid(), 15)", 143),
        ("import os; os.kill(os.getpid(), 9)", 137),
        (
            "import sys; sys.stdin.read(); sys.exit(5)",
            5,
        ),  # the end of the agent's input ends the server's
        ("import os; os.kill(os.getppid(), 9); import time; time.sleep(1000)", 137),
    ],
)
def test_it_ends_as_the_server_did(code: str, status: int) -> None:
    assert run(code)[0] == status


def test_messages_pass_judged() -> None:
    assert run(ANSWER, PING) == (0, PONG, b"answered\n")
    status, out, err = run("print('garbage')")
    assert (status, out) == (0, b"")
    assert b"malformed" in err
    assert err.endswith(b"silent\n")


@pytest.mark.parametrize(
    ("code", "status", "why"),
    [
        ("import os, sys; sys.stdin.readline(); os.abort()", 134, b"killed by signal 6 (SIGABRT)"),
        ("import sys; sys.stdin.readline(); sys.exit(3)", 3, b"exited with status 3"),
    ],
)
def test_open_requests_of_a_server_that_ended_are_answered(
    code: str, status: int, why: bytes
) -> None:
    with relay(code) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(PING)
        process.stdin.flush()
        (answer,) = process.stdout
        assert b'"id":1,"error":{"code":-32603,' in answer
        assert why in answer
        assert process.wait(pace.WAIT_S) == status
        assert process.stderr.read().endswith(b"silent\n")  # the server has written nothing


def test_an_agent_that_has_gone_gets_no_errors() -> None:
    assert run("import sys; sys.stdin.read(); sys.exit(3)", PING)[:2] == (3, b"")


def test_its_standard_error_is_escaped() -> None:
    assert run(r"import sys; sys.stderr.write('\x1b[2J')")[2] == rb"\x1b[2Jsilent" + b"\n"


def test_on_a_terminal_no_text_of_the_server_begins_a_row() -> None:
    """It could ask a false question below a real one."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    said = f"mcpwrap: approve?\n{'x' * 50}\nwithout an end"
    code = f"import sys; sys.stderr.write({said!r}); print({'y' * 100!r})"
    with relay(code, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # no process has it open any more: tty_ioctl(4), EIO
            while some := os.read(ours, 4096):
                shown += some
        assert process.wait(pace.WAIT_S) == 0
    os.close(ours)
    lines = shown.decode().split("\r\n")
    of_server = [line for line in lines if line.startswith("| ")]
    wrapped = [f"| {'x' * 38}", f"| {'x' * 12}"]
    assert of_server == ["| mcpwrap: approve?", *wrapped, "| without an end"]
    others = [line for line in lines if line not in of_server]
    assert others[0].startswith("mcpwrap run: malformed")
    assert all(line.startswith("  ") for line in others[1:-2])
    assert others[-2:] == ["silent", ""]


def test_a_line_without_an_end_ends_it() -> None:
    code = f"import sys, time; sys.stdout.write('x' * {MAX_LINE_BYTES + 1}); time.sleep(1000)"
    status, _, err = run(code)
    assert status == 76
    assert b"a line of over" in err


@pytest.mark.parametrize(
    ("command", "cwd", "stage"),
    [("/proc/self/no/x", "/", b"PROGRAM"), (sys.executable, "/proc/self/no", b"FOLDER")],
)
def test_a_failed_start_names_its_stage(command: str, cwd: str, stage: bytes) -> None:
    said = stage + b" No such file or directory None\n"
    assert run("", command=command, cwd=cwd)[:2] == (99, said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_forwarded_to_the_server(number: signal.Signals) -> None:
    code = (
        f"import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{number}]);"
        f"{ANSWER}; sys.stdout.flush(); signal.sigwait([{number}]); sys.exit(40)"
    )
    with relay(code) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(PING)
        process.stdin.flush()
        assert process.stdout.readline() == PONG
        process.send_signal(number)
        assert process.wait(pace.WAIT_S) == 40


@pytest.mark.parametrize(
    ("number", "ignored"),
    [
        (signal.SIGTERM, "SIGTERM"),  # the agent ignores it
        (signal.SIGHUP, ""),  # it reloads the policy
        (signal.SIGHUP, "SIGHUP"),
    ],
)
def test_the_server_does_not_get_every_signal(number: signal.Signals, ignored: str) -> None:
    code = f"{ANSWER}; sys.stdout.flush(); sys.stdin.read(); sys.exit(5)"
    with relay(code, ignored=ignored) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(PING)
        process.stdin.flush()
        assert process.stdout.readline() == PONG
        process.send_signal(number)
        process.stdin.close()
        assert process.wait(pace.WAIT_S) == 5


def test_an_agent_that_ignores_sigchld_gets_the_exit_status() -> None:
    with relay("raise SystemExit(7)", ignored="SIGCHLD") as process:
        assert process.wait(pace.WAIT_S) == 7


def test_a_server_that_closes_its_output_is_awaited() -> None:
    with relay("import os, signal; os.close(1); signal.pause()") as process:
        assert process.stdout
        assert process.stdout.read() == b""
        process.terminate()
        assert process.wait(pace.WAIT_S) == 143


def test_the_server_of_an_agent_that_has_gone_is_killed_soon() -> None:
    """Although the server ignores its input's end; the reader of its stderr is still there."""
    with relay(f"{ANSWER}; sys.stdout.flush(); import time; time.sleep(1000)") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(PING)
        process.stdin.flush()
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        assert process.wait(pace.WAIT_S) == 137

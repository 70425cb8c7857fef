"""Relay of `mcpwrap run`: starts a server and forwards its lines through the gate until it ends."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from mcpwrap.as_agent.run.approvals.serving import ApproverServing
from mcpwrap.as_agent.run.local_gate import RunPolicy
from mcpwrap.as_agent.run.sandbox import spawn
from mcpwrap.as_agent.run.sandbox.launch import AWAITED, FORWARDED, RELOADING, SandboxLaunch
from mcpwrap.as_agent.run.sandbox.layers import Confinement
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.text.rows import MarkedLines, continued
from mcpwrap.core.text.sanitise import Sanitiser, visible
from mcpwrap.core.wire import session_socket
from mcpwrap.linux import tty
from mcpwrap.linux.process import child_exit, descendants
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.audit_log.journal_notes import JournalNotes
from mcpwrap.session.launch.spawn import Program
from mcpwrap.session.relay import copy
from mcpwrap.session.relay.gate_relay import GateRelay, RelayOutputs
from mcpwrap.session.relay.server_exit import ServerExit, exited, killed_by
from mcpwrap.session.relay.writer import MessageWriter

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_GRACE_S = 2.0  # for a server whose agent has gone: most end by themselves
_MARK = "| "  # before the server's lines on a terminal, where it could ask a false question
WHO = "mcpwrap run"
SIGNALS = 128  # as in a shell: 128 + N is signal N


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a session: exit status, and whether a message of the server reached the agent."""

    status: int
    has_answered: bool


class _ToAgent(MessageWriter):
    """Writer of the agent's stream, with a flag: a message of the server was written."""

    has_answered = False

    def write(self, data: bytes) -> None:
        self.has_answered = True
        super().write(data)


@dataclass(frozen=True, slots=True)
class RunJudging:
    """Gate of a run, its policy, and what serves its approvers; None without approvers."""

    gate: Gate
    policy: RunPolicy
    serving: ApproverServing | None


@dataclass(frozen=True, slots=True)
class _Streams:
    """The relay's ends of the server's 0, 1 and 2."""

    to_server: int
    from_server: int
    errors: int


def run(program: Program, closing: Confinement, judging: RunJudging) -> RunResult:
    """Run the server on the agent's streams, which are our own 0, 1 and 2, until it has ended.

    SIGHUP reloads the policy.

    Raises:
        StageError: it could not be started.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an agent may have left it ignored
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    blocked = frozenset(map(signal.Signals, mask))
    try:
        first_pid, streams = _start(program, closing, blocked)
        threading.excepthook = _give_up
        return _relayed(judging, first_pid, streams, blocked)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _relayed(
    judging: RunJudging,
    first_pid: int,
    streams: _Streams,
    blocked: frozenset[signal.Signals],
) -> RunResult:
    to_agent = _ToAgent(_STDOUT, lambda: None)  # `_end_after_agent` handles it
    # A server that no longer reads has ended: its first process reports that.
    judged = _judged(judging, to_agent, MessageWriter(streams.to_server, lambda: None))
    is_broken_off = threading.Event()

    def break_off() -> None:
        is_broken_off.set()
        _signal(first_pid, signal.SIGKILL)

    _thread(partial(_end_after_agent, first_pid))
    _thread(partial(_follow, judged.from_agent, _STDIN, break_off))
    ending = ServerExit()
    from_server = partial(judged.from_server, how_it_ended=ending.wait)
    outward = (
        _thread(partial(_follow, from_server, streams.from_server, break_off)),
        _thread(partial(_copy_errors, streams.errors)),
    )
    if judging.serving is not None:
        _thread(partial(judging.serving.run, judged, partial(_signal, first_pid, signal.SIGKILL)))
    numbers = [number for number in (*FORWARDED, RELOADING) if _is_ours(number, blocked)]

    def on_signal(number: int) -> None:
        if number == RELOADING:
            judging.policy.reload()
        else:
            _signal(first_pid, number)

    status = child_exit.await_end(first_pid, numbers, on_signal)
    descendants.end_all()  # those without a PID namespace, which ends its own
    ending.tell(_why(status))
    for number in numbers:  # now for this process, which may wait for an agent that does not read
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for thread in outward:  # output that the server wrote before its end is still in the pipes
        thread.join()
    return RunResult(
        session_socket.Exit.PROTOCOL if is_broken_off.is_set() else status, to_agent.has_answered
    )


def _why(status: int) -> str:
    return killed_by(status - SIGNALS) if status > SIGNALS else exited(status)


def _is_ours(number: signal.Signals, blocked: frozenset[signal.Signals]) -> bool:
    """Return whether to handle a signal: the agent neither blocks nor ignores it."""
    return number not in blocked and signal.getsignal(number) is not signal.SIG_IGN


def _start(
    program: Program, closing: Confinement, blocked: frozenset[signal.Signals]
) -> tuple[int, _Streams]:
    (its_input, to_server), (from_server, its_output), (errors, its_errors) = (
        os.pipe2(os.O_CLOEXEC) for _ in range(3)
    )
    theirs = (its_input, its_output, its_errors)
    ours = _Streams(to_server, from_server, errors)
    launch = SandboxLaunch(program=program, closing=closing, stdio=theirs, signals_blocked=blocked)
    try:
        return spawn.start(launch), ours
    except OSError:
        for fd in (to_server, from_server, errors):
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)


def _judged(judging: RunJudging, to_agent: MessageWriter, to_server: MessageWriter) -> GateRelay:
    note = JournalNotes(WHO, lambda note: _log(f"{WHO}: {note.kind}: {note.text}")).note
    outputs = RelayOutputs(to_agent, to_server, note, _log)
    return GateRelay(judging.gate, outputs, judging.policy.renew)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _give_up(raised: threading.ExceptHookArgs) -> None:
    """Print the traceback of a bug, and exit: both sides would wait for this thread for ever."""
    if raised.exc_value is not None:
        tty.show_bug(raised.exc_value)
    os._exit(session_socket.Exit.WRAPPER)


def _follow(judge_all: Callable[[int], None], from_fd: int, break_off: Callable[[], None]) -> None:
    try:
        judge_all(from_fd)
    except LineTooLongError as error:
        log_line(f"{WHO}: {error} [E-RUN-LINE-TOO-LONG]")
        break_off()


def _log(text: str) -> None:
    """Log a line. On a terminal, no row of it begins with a name that server or agent chose."""
    columns = tty.columns_of(_STDERR)
    if columns is None:
        log_line(text)
        return
    with suppress(OSError):  # it was hung up
        tty.warn_lines(continued(visible(text.replace("\n", " ")), columns, "  "))


def _copy_errors(from_fd: int) -> None:
    """Copy the server's standard error to the agent's: on a terminal as marked rows."""
    sanitiser, marked = Sanitiser(), MarkedLines(_MARK)

    def deliver(text: bytes) -> None:
        columns = tty.columns_of(_STDERR)
        if columns is not None:
            text = marked.feed(text.decode(), columns).encode()
        with suppress(OSError):  # it is closed; the server must not notice
            copy.write(_STDERR, text)

    copy.relay_each(from_fd, lambda untrusted: deliver(sanitiser.feed(untrusted)))
    deliver(sanitiser.rest())
    if marked.is_in_line:
        deliver(b"\n")


def _end_after_agent(first_pid: int) -> None:
    """Kill the session of an agent that has gone, if the server does not end by itself."""
    # Not poll(2): while it waits it holds the file, and the agent would not notice our close.
    with select.epoll() as epoll:
        try:
            epoll.register(_STDOUT, 0)  # EPOLLERR and EPOLLHUP are always reported
        except PermissionError:
            return  # a file: it has no other end that could close
        epoll.poll()
    time.sleep(_GRACE_S)
    _signal(first_pid, signal.SIGKILL)

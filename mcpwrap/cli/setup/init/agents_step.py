"""Step for agents' files: `mcpwrap wrap --all` under the person's account.

Root opens no file of a person and parses no output of `wrap`: it prints it, escaped and marked, so
that it cannot pass for a line of `init`. `wrap` has no terminal; what it would ask there, and sudo,
it requests over a socket (`root_handoff`).
"""

import os
import selectors
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import assert_never

from mcpwrap.cli.agents.clients import NO_FILES
from mcpwrap.cli.common import root_handoff
from mcpwrap.cli.common.root_handoff import AcceptRequest, ConfirmRequest, HandoffRequest
from mcpwrap.cli.setup.init.guide import MCPWRAP, Guide, StepState
from mcpwrap.cli.setup.init.person import (
    READ_BYTES,
    PersonAccount,
    expect_short,
    has_ended,
    login_environ,
    output_of,
    started,
    too_slow,
)
from mcpwrap.errors import EXIT_FAILED, EXIT_OK
from mcpwrap.linux import tty

AGENTS = "agents"
COMMAND = "mcpwrap wrap --all"
_LIST = "mcpwrap clients"
_REQUEST_S = 10.0  # for a request that `wrap` has begun to send
_LIST_S = 60.0  # for `clients`, which takes about one
_WRAP_S = 300.0  # for `wrap` itself: without the time in which a person is asked
_END_S = 5.0  # for `wrap` that has closed its output
_NO_TERMINAL = "root reads new servers at a terminal, and there is none"
_NOT_ACCEPTED = "root has not accepted the new servers; no agent's file was changed"


def agents(guide: Guide, who: PersonAccount) -> None:
    """List the servers in agents' files, and wrap those that the person and root confirm."""
    guide.title(f"Agents of {who.account}, and the servers in their files")
    environ = login_environ(who)
    if _listed(guide, who, environ):
        return
    guide.say()
    guide.show(COMMAND)
    run = _WrapRun(guide, who)
    status = run.wrapped(environ)
    state, why = run.outcome(status)
    guide.end(AGENTS, state, COMMAND, why)


def _listed(guide: Guide, who: PersonAccount, environ: Mapping[str, str]) -> bool:
    """Print the agents' files; return whether nothing is left to wrap, which is then recorded."""
    guide.show(_LIST)
    with started(who, [MCPWRAP, "clients"], environ) as child:
        text = output_of(child, _LIST, _LIST_S)
    lines = text.decode(errors="replace").splitlines()
    for line in lines:
        guide.quote(line)
    if child.returncode != EXIT_OK:
        return False
    if lines == [NO_FILES]:
        guide.end(AGENTS, "skipped", COMMAND, "run it when an agent is set up")
    else:
        guide.end(AGENTS, "already", COMMAND, "no server is left to wrap")
    return True


class _WrapRun:
    """One run of `mcpwrap wrap` under the person's account, and its requests."""

    def __init__(self, guide: Guide, who: PersonAccount) -> None:
        self._guide, self._who = guide, who
        self._line, self._printed_bytes = b"", 0  # the line is unfinished
        self._is_confirmed: bool | None = None  # None: it has not asked
        self._why_not_accepted = ""

    def wrapped(self, environ: Mapping[str, str]) -> int:
        """Run it to its end; return its status."""
        ours, its = socket.socketpair()
        with ours, ExitStack() as stack:
            ours.settimeout(_REQUEST_S)
            with its:
                variables = {**environ, root_handoff.VARIABLE: str(its.fileno())}
                argv = [MCPWRAP, "wrap", "--all"]
                one = started(self._who, argv, variables, pass_fds=[its.fileno()])
                child = stack.enter_context(one)
            self._serve(child, ours)
            has_ended(child, _END_S)
        return child.returncode

    def outcome(self, status: int) -> tuple[StepState, str]:
        """Return the state of the step and the reason, for the status of `wrap`."""
        if status not in {EXIT_OK, EXIT_FAILED}:
            return "failed", "`mcpwrap wrap` failed, as shown above"
        if self._is_confirmed is None:
            return "already", "nothing else can be wrapped: the reasons are above"
        if not self._is_confirmed:
            return "skipped", "nothing was changed"
        if self._why_not_accepted:
            is_absent = self._why_not_accepted == _NO_TERMINAL
            return "skipped" if is_absent else "failed", self._why_not_accepted
        left = "" if status == EXIT_OK else "; what is left as it is has its reason above"
        return "done", f"agents read their files when they start: restart those that run{left}"

    def _serve(self, child: subprocess.Popen[bytes], ours: socket.socket) -> None:
        """Print its output and reply to its requests, until it has closed its output.

        Raises:
            McpwrapError: it takes too long, or prints too much.
        """
        assert child.stdout is not None  # noqa: S101 - `started` makes it a pipe
        text_fd = child.stdout.fileno()
        os.set_blocking(text_fd, False)
        left_s = _WRAP_S
        with selectors.DefaultSelector() as selector:
            selector.register(text_fd, selectors.EVENT_READ)
            selector.register(ours, selectors.EVENT_READ)
            while True:
                began = time.monotonic()
                ready = {key.fileobj for key, _ in selector.select(left_s)}
                left_s -= time.monotonic() - began
                if not ready:
                    raise too_slow(COMMAND, _WRAP_S)
                # Before a request: it is about what was printed.
                if self._is_at_end(text_fd):
                    return
                if ours not in ready:
                    continue
                request = root_handoff.receive(ours)
                if request is None:
                    selector.unregister(ours)
                    ours.shutdown(socket.SHUT_RDWR)
                else:
                    root_handoff.reply(ours, is_yes=self._is_granted(request))

    def _is_at_end(self, text_fd: int) -> bool:
        """Print the lines that are there; return whether more can come."""
        with suppress(BlockingIOError):
            while some := os.read(text_fd, READ_BYTES):
                self._printed_bytes += len(some)
                expect_short(COMMAND, self._printed_bytes)
                *lines, self._line = (self._line + some).split(b"\n")
                for line in lines:
                    self._guide.quote(line.decode(errors="replace"))
            return True
        return False

    def _is_granted(self, request: HandoffRequest) -> bool:
        match request:
            case ConfirmRequest():
                self._is_confirmed = self._guide.agrees("Do this?")
                return self._is_confirmed
            case AcceptRequest():
                self._why_not_accepted = self._accept(request)
                return not self._why_not_accepted
            case _:
                assert_never(request)

    def _accept(self, request: AcceptRequest) -> str:
        """Have root's program show the proposal and ask; return why it was not accepted, or ""."""
        if not tty.has_terminal():
            return _NO_TERMINAL
        argv = [MCPWRAP, "accept", request.untrusted_sha256, request.untrusted_path]
        status = self._guide.ran(argv, stdin=request.secrets, by=self._who.account)
        return "" if status == EXIT_OK else _NOT_ACCEPTED

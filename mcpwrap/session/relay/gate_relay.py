"""Relay of one session, in both directions: the gate judges each line before it is forwarded."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from mcpwrap.core.gate.gate import Action, Gate, ToAgent, ToServer, ToUser
from mcpwrap.core.gate.ports import ApprovalOutcome
from mcpwrap.core.gate.session import JournalNote
from mcpwrap.core.protocol.framing import LineBuffer
from mcpwrap.session.relay import copy
from mcpwrap.session.relay.writer import MessageWriter

Judge = Callable[[bytes], list[Action]]
Write = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class RelayOutputs:
    """Outputs of a relay: both sides, the journal, and the agent's standard error."""

    to_agent: MessageWriter
    to_server: MessageWriter
    note: Callable[[JournalNote], None]
    tell: Callable[[str], None]  # a line, for the agent's user


class GateRelay:
    """Gate between two streams. Each direction has a thread, which the caller starts."""

    def __init__(
        self, gate: Gate, outputs: RelayOutputs, renew: Callable[[Gate], list[Action]]
    ) -> None:
        """`renew` is called before anything is judged, and may replace the gate's policy.

        Its actions come before those of the message.
        """
        self._gate = gate
        self._to_agent, self._to_server = outputs.to_agent, outputs.to_server
        self._note, self._tell = outputs.note, outputs.tell
        self._renew = renew
        self._judging = threading.Lock()
        self._agent_has_left = False
        self._at_the_end: Write = outputs.to_agent.put

    def leave_open_requests(self) -> None:
        """Leave the requests of a server that has ended to their sender, a hub.

        It knows their member, and its agent can go on with the others. They are recorded as any.
        """
        self._at_the_end = _discard

    def from_agent(self, fd: int) -> None:
        """Judge and relay the agent's lines, until its stream ends.

        Raises:
            LineTooLongError: a line is over the bound.
        """
        for lines in _blocks(fd):
            actions = self._judge(lines, self._gate.from_agent)
            self._do(actions, to_agent=self._to_agent.put, to_server=self._to_server.write)
        self._agent_has_left = True
        self._to_server.close()

    def from_server(self, fd: int, how_it_ended: Callable[[], str]) -> None:
        """Judge and relay the server's lines until they end; then answer the unanswered requests.

        Raises:
            LineTooLongError: a line is over the bound.
        """
        for lines in _blocks(fd):
            actions = self._judge(lines, self._gate.from_server)
            self._do(actions, to_agent=self._to_agent.write, to_server=self._to_server.put)
        if self._gate.is_waited_for():
            self._server_ended(how_it_ended())
        self._to_agent.close()

    def _server_ended(self, why: str) -> None:
        if self._agent_has_left:  # it reads no more responses
            return
        with self._judging:
            actions = self._get_ready() + self._gate.server_ended(why)
        self._do(actions, to_agent=self._at_the_end, to_server=self._to_server.put)

    def handle_outcome(self, outcome: ApprovalOutcome) -> None:
        """Handle the outcome of a held request."""
        with self._judging:
            actions = self._get_ready() + self._gate.handle_outcome(outcome)
        self._do(actions, to_agent=self._to_agent.put, to_server=self._to_server.put)

    def tick(self) -> None:
        """Run the actions that have become due."""
        with self._judging:
            actions = self._get_ready() + self._gate.tick()
        self._do(actions, to_agent=self._to_agent.put, to_server=self._to_server.put)

    def due_in_s(self) -> float | None:
        """Return the time until `tick` has work to do; None if no request is held."""
        with self._judging:
            self._gate.at(time.monotonic())
            return self._gate.due_in_s()

    def _judge(self, lines: list[bytes], judge: Judge) -> list[Action]:
        with self._judging:
            actions = self._get_ready()
            for line in lines:
                actions += judge(line)
            return actions

    def _get_ready(self) -> list[Action]:
        actions = self._renew(self._gate)
        self._gate.at(time.monotonic())
        return actions

    def _do(self, actions: list[Action], *, to_agent: Write, to_server: Write) -> None:
        """Carry out the actions, with one write for each side."""
        for_agent, for_server = [], []
        for action in actions:
            match action:
                case ToAgent(line=line):  # by keyword: one look-up less for each message
                    for_agent.append(line)
                case ToServer(line=line):
                    for_server.append(line)
                case JournalNote():
                    self._note(action)
                case ToUser(line=text):
                    self._tell(text)
                case _:
                    assert_never(action)
        if for_server:
            to_server(b"".join(for_server))
        if for_agent:
            to_agent(b"".join(for_agent))


def _discard(_lines: bytes) -> None:
    """Write nothing."""


def _blocks(fd: int) -> Iterator[list[bytes]]:
    """Yield all complete lines that are available, whenever there are some."""
    buffer = LineBuffer()
    while chunk := copy.read(fd):
        # In a function, so that no variable here keeps the block, of up to 64 MiB, alive.
        if lines := _split(buffer.feed(chunk)):
            yield lines
    if rest := buffer.rest():
        yield [rest]


def _split(block: bytes | bytearray) -> list[bytes]:
    """Return the lines of a block, each copied once at most."""
    if isinstance(block, bytes):
        return block.split(b"\n")[:-1]
    lines, start = [], 0
    with memoryview(block) as view:
        while end := block.find(b"\n", start) + 1:
            lines.append(bytes(view[start : end - 1]))
            start = end
    return lines

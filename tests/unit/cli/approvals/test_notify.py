"""Desktop notifications of pending calls: once each, rate-limited, by notify-send."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from mcpwrap.cli.approvals import notify
from mcpwrap.cli.approvals.notify import ApprovalNotifySettings
from mcpwrap.errors import McpwrapError
from tests.shared import pace
from tests.unit.as_webhook.gate import Gate, pending

WITHIN_S = pace.WAIT_S


class Desktop:
    """Stand-in notify-send that records its arguments, and the command that starts it."""

    def __init__(self, folder: Path, gate: Gate, *, every_s: float = 0.0) -> None:
        self._written, program = folder / "shown", folder / "notify-send"
        program.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" end >> {self._written}\n")
        program.chmod(0o755)
        self._gate, self._is_over = gate, False
        around = ApprovalNotifySettings(
            gate.path, str(program), every_s, 0.01, lambda: not self._is_over
        )
        self._thread = threading.Thread(target=notify.run, args=[around], daemon=True)
        self._thread.start()

    def shown(self) -> list[list[str]]:
        """Return the arguments of each notification."""
        text = self._written.read_text() if self._written.exists() else ""
        return [one.split("\0")[:-1] for one in text.split("end\0")[:-1]]

    def await_shown(self, count: int) -> list[list[str]]:
        give_up_at_s = time.monotonic() + WITHIN_S
        while len(self.shown()) < count:
            assert time.monotonic() < give_up_at_s
        return self.shown()

    def close(self) -> None:
        self._is_over = True
        self._gate.tell()  # wakes the command
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()


MakeDesktop = Callable[..., Desktop]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path / "approve.sock")
    yield gate
    gate.close()


@pytest.fixture
def make_desktop(tmp_path: Path, gate: Gate) -> Iterator[MakeDesktop]:
    made: list[Desktop] = []

    def make(**how: float) -> Desktop:
        made.append(Desktop(tmp_path, gate, **how))
        return made[-1]

    yield make
    for desktop in made:
        desktop.close()


def test_each_request_is_shown_once_with_a_link(gate: Gate, make_desktop: MakeDesktop) -> None:
    mine = msgspec.structs.replace(pending("a"), may="proof")
    gate.tell(mine)
    desktop = make_desktop()
    [first] = desktop.await_shown(1)
    assert first[:3] == ["--app-name=mcpwrap", "--", "mcpwrap: a request waits for approval"]
    assert first[3].startswith("sqlite: write_query\nrequested by an agent of root\n")
    assert first[3].endswith("/approval/a")
    gate.tell(mine, msgspec.structs.replace(mine, id="b"))
    assert desktop.await_shown(2)[1][3].endswith("/approval/b")


def test_what_this_account_may_not_answer_is_not_shown(
    gate: Gate, make_desktop: MakeDesktop
) -> None:
    gate.tell(pending("not-mine"), msgspec.structs.replace(pending("a"), may="yes"))
    [only] = make_desktop().await_shown(1)
    assert only[3].endswith("/approval/a")


def test_a_flood_is_one_notification(gate: Gate, make_desktop: MakeDesktop) -> None:
    mine = [msgspec.structs.replace(pending(f"r{n}"), may="yes") for n in range(6)]
    gate.tell(mine[0])
    desktop = make_desktop(every_s=0.5)
    desktop.await_shown(1)
    for count in range(2, 7):
        gate.tell(*mine[:count])
    assert [one[3].partition("\n")[0] for one in desktop.await_shown(2)[1:]] == [
        "6 requests wait for approval"
    ]


def test_what_was_answered_before_it_is_time_is_not_shown(
    gate: Gate, make_desktop: MakeDesktop
) -> None:
    mine = [msgspec.structs.replace(pending(id_), may="yes") for id_ in ("a", "b", "c")]
    gate.tell(mine[0])
    desktop = make_desktop(every_s=0.3)
    desktop.await_shown(1)
    gate.tell(mine[1])
    gate.tell(mine[2])
    assert desktop.await_shown(2)[1][3].endswith("/approval/c")


def test_it_goes_on_when_the_gate_was_restarted(gate: Gate, make_desktop: MakeDesktop) -> None:
    mine = msgspec.structs.replace(pending("a"), may="yes")
    gate.tell(mine)
    desktop = make_desktop()
    desktop.await_shown(1)
    gate.hang_up()
    gate.tell(msgspec.structs.replace(mine, id="b"))
    assert desktop.await_shown(2)[1][3].endswith("/approval/b")


def test_without_notify_send_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(McpwrapError, match="libnotify-bin"):
        notify.run(ApprovalNotifySettings(program=str(tmp_path / "none")))

"""Streams of a remote server: nothing that arrived is lost, and nothing is left behind."""

import json
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.http import remote
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = remote.connected
pytestmark = ON_ONE_RELEASE

MANY = 10_000
# Of simulated time: each of our clocks runs 600 times as fast, and slower on a busy host.
HOUR_S = 18.0 * pace.PACE
MB = 1024 * 1024


def listener_pid(machine: Machine) -> int:
    unit = f"mcpwrap-http@odd.{machine.uid_of('alice')}.service"
    return int(machine.show(unit, "MainPID")["MainPID"])


def open_files(machine: Machine, pid: int) -> int:
    return int(machine.look(f"ls /proc/{pid}/fd | wc -l"))


def most_memory_bytes(machine: Machine, pid: int) -> int:
    text = machine.look(f"cat /proc/{pid}/status")
    status = dict(line.split(":", 1) for line in text.splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def connections_out(machine: Machine) -> int:
    """Return how many connections the server's account has to its proxy."""
    found: int = machine.look_by("listeners", "connections", machine.uid_of("mcpw-odd"), 3128)
    return found


def await_none_left(machine: Machine) -> None:
    """Wait until the server has no session, and so no process, and no connection."""
    machine.as_root(f"systemctl stop 'mcpwrap-http@odd.{machine.uid_of('alice')}.service'")
    machine.await_end_of("odd")
    assert connections_out(machine) == 0


# ------------------------------------------------------------------------------- delivery
def test_ten_thousand_events_arrive_in_order(machine: Machine, internet: Internet) -> None:
    seen = remote.step(machine, "odd", "count", "events", {"n": MANY})
    assert (seen["came"], seen["in order"]) == (MANY, True)
    assert seen["last"]["result"]["content"][0]["text"] == "all"
    print(f"{MANY} events in {seen['took_s']:.2f} s")


@only_in_test_all("second-order variant: the same events over pipes and in a session")
def test_so_they_do_over_pipes_and_in_a_session(machine: Machine, internet: Internet) -> None:
    params = {"name": "events", "arguments": {"n": MANY}, "_meta": {"progressToken": 7}}
    with machine.session("odd") as session:
        session.initialize()
        asked = session.request("tools/call", params)
        numbers = [session.receive()["params"]["progress"] for _ in range(MANY)]
        assert numbers == list(range(MANY))
        assert session.receive()["id"] == asked
    _, answer = remote.steps(machine, "odd", ("begin", {}), ("use", "events", {"n": MANY}, {}))
    told = [message["params"]["data"]["n"] for message in answer["messages"][:-1]]
    assert told == list(range(MANY))


def test_an_event_does_not_wait_for_the_next(machine: Machine, internet: Internet) -> None:
    leave = ("leave", "idle", {"seconds": 3600})
    (alone,) = remote.steps(machine, "odd", leave)
    _, in_session, _ = remote.steps(machine, "odd", ("begin", {}), leave, ("end", {}))
    for seen in (alone, in_session):
        assert seen["message"]["params"] == {"progressToken": "left", "progress": 0}
    # Neither is noted in the next story.
    pace.until(lambda: internet.left() == ["/odd"] * 2)


def test_however_events_are_cut_they_arrive_whole(machine: Machine, internet: Internet) -> None:
    seen = remote.step(machine, "odd", "count", "pieces", {})
    assert (seen["came"], seen["in order"]) == (1, True)
    assert seen["last"]["result"]["content"][0]["text"] == "größer als ein Byte: 🧩"


EVENTS_TOO = only_in_test_all("row of the same kind: the same, as events")


@pytest.mark.parametrize("kind", ["json", pytest.param("events", marks=EVENTS_TOO)])
def test_what_is_compressed_is_unpacked(machine: Machine, internet: Internet, kind: str) -> None:
    """The gate has parsed it, so it arrives in the gate's reading."""
    answer = remote.step(machine, "odd", "call", "gzip", {"as": kind})
    assert remote.text_of(answer) == "unpacked"
    assert "content-encoding" not in answer["headers"]


@only_in_test_all("a flood: 4 GiB from the upstream")
def test_a_bomb_fills_no_memory(machine: Machine, internet: Internet) -> None:
    # More than the gate forwards in one message, and then more than there is.
    for mib in (65, 4096):
        answer = remote.step(machine, "odd", "call", "bomb", {"mib": mib})
        assert "longer than 64 MiB" in remote.text_of(answer)
    assert remote.text_of(remote.step(machine, "odd", "call", "echo", {"text": "on"})) == "on"
    pids = machine.pids("odd")
    assert pids
    for pid in [*pids, listener_pid(machine)]:
        assert most_memory_bytes(machine, pid) < 400 * MB


# ------------------------------------------------------------------------------- early ends
def test_an_upstream_that_dies_in_mid_event(machine: Machine, internet: Internet) -> None:
    """Complete messages have arrived; the request is answered; nothing of it stays."""
    seen = remote.step(machine, "odd", "count", "dies", {"n": 5})
    assert (seen["came"], seen["in order"]) == (5, True)
    error = seen["last"]["error"]
    assert error["code"] == -32603
    assert "ended before its answer was complete" in error["message"]
    assert "never whole" not in json.dumps(seen)
    with machine.session("odd") as session:
        session.initialize()
        params = {"name": "dies", "arguments": {"n": 5}, "_meta": {"progressToken": 7}}
        asked = session.request("tools/call", params)
        told = [session.receive() for _ in range(6)]
        assert [message["params"]["progress"] for message in told[:5]] == list(range(5))
        assert (told[5]["id"], told[5]["error"]["code"]) == (asked, -32603)
        echo = {"name": "echo", "arguments": {"text": "still here"}}
        still = session.answer_to(session.request("tools/call", echo))
        assert still["result"]["content"][0]["text"] == "still here"
    await_none_left(machine)


def test_an_agent_that_leaves_has_cancelled(machine: Machine, internet: Internet) -> None:
    """Since 2026-07-28."""
    remote.step(machine, "odd", "leave", "idle", {"seconds": 600})
    pace.until(lambda: internet.left() == ["/odd"])
    await_none_left(machine)


def test_before_that_it_has_not_and_comes_back(machine: Machine, internet: Internet) -> None:
    begun, seen = remote.steps(machine, "odd", ("begin", {}), ("leave", "idle", {"seconds": 3}))
    session = begun["headers"]["mcp-session-id"]
    assert seen["id"]
    came = remote.steps(machine, "odd", ("resume", session), ("listen", seen["id"]))[1]
    assert came["status"] == 200
    assert [message["result"]["content"][0]["text"] for message in came["messages"]] == ["at last"]
    assert internet.left() == []
    remote.steps(machine, "odd", ("resume", session), ("end", {}))


@only_in_test_all("a flood: 53 agents")
def test_agents_that_come_and_go_leave_nothing(machine: Machine, internet: Internet) -> None:
    leave = ("leave", "idle", {"seconds": 600})
    remote.steps(machine, "odd", *[leave] * 3)
    pid = listener_pid(machine)
    before = open_files(machine, pid)
    remote.steps(machine, "odd", *[leave] * 40)
    for _ in range(10):
        remote.steps(machine, "odd", ("begin", {}), ("use", "echo", {}, {}), ("end", {}))
    pace.until(lambda: len(internet.left()) == 43)
    pace.until(lambda: open_files(machine, pid) <= before + 4)
    assert listener_pid(machine) == pid
    await_none_left(machine)


# ------------------------------------------------------------------------------- long durations
@only_in_test_all("a long wait: an hour, 200 times as fast")
def test_a_stream_is_idle_for_an_hour(machine: Machine, internet: Internet) -> None:
    """A POST's in both eras, and the one of a GET. Keep-alives are sent, and no timeout ends it."""
    idle: Any = {"seconds": HOUR_S}
    with remote.faster(machine, 3600 / HOUR_S):
        alone, begun, in_session = remote.steps(
            machine, "odd", ("count", "idle", idle), ("begin", {}), ("use", "idle", idle, {})
        )
        assert alone["last"]["result"]["content"][0]["text"] == "at last"
        assert alone["signs"] > 40  # one every 15 s would be 240
        assert remote.text_of(in_session) == "at last"
        session = begun["headers"]["mcp-session-id"]
        hear = (("resume", session), ("hear", 1))
        with remote.beside(machine, "odd", *hear) as hearing:
            assert hearing.read_line() == "listening"
            remote.steps(machine, "odd", ("call", "idle", idle))  # for as long
            remote.steps(machine, "odd", ("resume", session), ("use", "announce", {"n": 1}, {}))
            _, heard = json.loads(hearing.read_line())
        assert [message["params"]["data"] for message in heard["messages"]] == [{"n": 1}]

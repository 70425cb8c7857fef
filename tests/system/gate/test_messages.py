"""Long, many and invalid messages from a server: the agent gets the valid ones, and none stalls."""

import base64
import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.session import Session
from tests.system.gate.judged import await_news, news
from tests.system.support.tiers import on_release, only_in_test_all

pytestmark = on_release("trixie")  # depends on our own code only, and takes its time

SERVERS = f"""
[mcp_servers.odd]
command = "/usr/bin/python3"
args = ["-BP", "{BED_AT}/tests/system/guest/odd_server.py"]
"""
POLICY = """
version: 1
default: block
default_policy: {disabled: [{rule: limits}]}
rules:
  - {name: odd, server: odd, tool: "*", action: allow}
"""
LONGEST_BYTES = 64 * 1024 * 1024
CALLS = 10_000
FLOOD = 100_000


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot a machine with a server that sends the lines of a test, and a rule that allows it."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("systemctl reload mcpwrap-gate")
        yield machine


STAGE = booted


@pytest.fixture
def odd(machine: Machine) -> Machine:
    """Lend the machine without sessions; the gate's earlier log lines count as read."""
    machine.await_idle_gate()
    news(machine)
    return machine


def call(session: Session, tool: str, **arguments: Any) -> int:
    """Call one of the server's tools, and return the id."""
    return session.request("tools/call", {"name": tool, "arguments": arguments})


def text_of(answer: dict[str, Any]) -> str:
    """Return the text of a result."""
    return str(answer["result"]["content"][0]["text"])


def in_base64(lines: list[bytes]) -> list[str]:
    """Return lines in the form that the server takes."""
    return [base64.b64encode(line).decode() for line in lines]


def until_good(session: Session) -> list[dict[str, Any]]:
    """Return all messages before the response to a valid call."""
    last, came = call(session, "good", words="end"), [session.receive()]
    while came[-1].get("id") != last:
        came.append(session.receive())
    assert text_of(came.pop()) == "end"
    return came


def peak_bytes(machine: Machine) -> int:
    """Return the peak memory of the process of the one session."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    out = machine.look(f"grep VmHWM /proc/$(pgrep -P {gate})/status")
    return int(out.split()[1]) * 1024


@pytest.mark.parametrize(
    ("start", "most"),
    [
        ("plain", 6),  # the line as received, as a value, as sent, and the copies in between
        pytest.param(  # for which Python uses four bytes a character
            "\N{GRINNING FACE}", 10, marks=only_in_test_all("the same with wider characters")
        ),
    ],
)
def test_a_result_of_64_mib_in_one_line_passes(odd: Machine, start: str, most: int) -> None:
    with odd.session("odd") as session:
        session.initialize()
        long = call(session, "long", start=start, line_bytes=LONGEST_BYTES)
        came = text_of(session.answer_to(long))
        sent = text_of(session.answer_to(call(session, "digest")))
        peak = peak_bytes(odd)
    assert came.startswith(start)
    assert hashlib.sha256(came.encode()).hexdigest() == sent
    print(f"{peak / LONGEST_BYTES:.1f} times the line")
    assert peak < most * LONGEST_BYTES


def test_10_000_calls_in_flight_with_progress_in_between(odd: Machine) -> None:
    def send_all() -> None:
        for number in range(CALLS):
            params = {"name": "hold", "arguments": {"until": CALLS}}
            session.request("tools/call", {**params, "_meta": {"progressToken": f"t{number}"}})

    with odd.session("odd") as session:
        sender = threading.Thread(target=send_all)
        begin_s = time.monotonic()
        sender.start()
        came = [session.receive() for _ in range(2 * CALLS)]
        sender.join()
        print(f"{CALLS} calls with progress in {time.monotonic() - begin_s:.1f} s")
    tokens = [message["params"]["progressToken"] for message in came[::2]]
    answers = [(message["id"], text_of(message)) for message in came[1::2]]
    order = sorted(range(1, CALLS + 1), key=lambda number: number * 7919 % 10007)  # the server's
    assert tokens == [f"t{number - 1}" for number in order]
    assert answers == [(number, f"this is {number}") for number in order]


def log_line(number: int) -> bytes:
    """Return a valid message."""
    params = f'{{"level":"info","data":{number}}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}'.encode()


GARBAGE = [
    b"",
    b"   ",
    b"Odd server 1.0, listening",
    b'{"jsonrpc":"2.0","method":"notifi',
    b"\x00\xff\xfe\x89PNG\r",
    b"null",
    b"42",
    b'"text"',
    b"[]",
    b"[" + log_line(99) + b"]",  # only one revision has arrays, and it is not this session's
    b"\xef\xbb\xbf" + log_line(99),
    log_line(99) + log_line(99),
    b"INFO " + log_line(99),
    log_line(99).replace(b"99", b"NaN"),
    log_line(99).replace(b"99", b'"\\ud800"'),
    log_line(99).replace(b"99", b"[" * 100 + b"]" * 100),
    log_line(99).replace(b"2.0", b"1.0"),
    log_line(99).replace(b'"method"', b'"Method"'),
    b'{"jsonrpc":"2.0","method":"notifications/message","method":"notifications/message"}',
    b'{"jsonrpc":"2.0","method":"no/such/notification"}',
]


def test_of_garbage_the_agent_gets_nothing_and_the_journal_a_few_lines(odd: Machine) -> None:
    begin_s = time.monotonic()
    lines = [line for number, bad in enumerate(GARBAGE) for line in (log_line(number), bad)]
    with odd.session("odd") as session:
        session.initialize()
        call(session, "say", lines=in_base64(lines))
        came = until_good(session)
    assert [message["params"]["data"] for message in came] == list(range(len(GARBAGE)))
    notes = news(odd)
    took_s = time.monotonic() - begin_s
    assert 2 <= len(notes) < 7 * (took_s + 1)  # five a second, and a summary of the others
    alice = odd.uid_of("alice")
    start = f"uid {alice}, 'odd': "
    assert f"{start}{NOT_JSON}" in notes
    assert not [note for note in notes if not note.startswith(start) or "listening" in note]


RESULT = b'{"jsonrpc":"2.0","id":<ID>,"result":{"content":[{"type":"text","text":"here"}]}}'
FAILURE = b'{"jsonrpc":"2.0","id":<ID>,"error":{"code":1,"message":"m"}}'
GOOD, BROKEN = "here", -32603
NOT_ASKED = "dropped: from the server: response id=2: no open request has this id"
ANOTHER_FORM = only_in_test_all("another form of a mistake that the fast tier has")
NOT_JSON = "malformed: from the server: not JSON in UTF-8 that all parsers read alike"


@pytest.mark.parametrize(
    ("lines", "came", "notes"),
    [
        ([RESULT], [GOOD], []),
        ([RESULT, RESULT], [GOOD], [NOT_ASKED]),
        (
            [RESULT.replace(b"<ID>", b"777"), RESULT],
            [GOOD],
            [NOT_ASKED.replace("2", "777")],
        ),
        (  # another id, and valid in JSON-RPC; an agent with a numeric id waits for a number
            [RESULT.replace(b"<ID>", b'"<ID>"'), RESULT],
            [GOOD],
            [NOT_ASKED],
        ),
        ([RESULT.replace(b"<ID>", b"<ID>.0"), RESULT], [GOOD], ["malformed: "]),
        pytest.param(
            [RESULT.replace(b"<ID>", b"null"), RESULT], [GOOD], ["malformed: "], marks=ANOTHER_FORM
        ),
        ([RESULT.replace(b"2.0", b"1.0")], [BROKEN], ["malformed: "]),
        ([RESULT.replace(b'"here"', b"NaN")], [BROKEN], [NOT_JSON]),
        pytest.param([RESULT.replace(b"here", b"\xff")], [BROKEN], [NOT_JSON], marks=ANOTHER_FORM),
        pytest.param([b"\xef\xbb\xbf" + RESULT], [BROKEN], [NOT_JSON], marks=ANOTHER_FORM),
        ([RESULT[:-1] + b',"error":{"code":1,"message":"m"}}'], [BROKEN], ["malformed: "]),
        ([RESULT[:-1] + b',"extra":1}', RESULT], [BROKEN], ["malformed: ", "dropped: "]),
        pytest.param(
            [b'{"jsonrpc":"2.0","id":<ID>,"error":"no"}'],
            [BROKEN],
            ["malformed: "],
            marks=ANOTHER_FORM,
        ),
        ([b"[" + RESULT + b"]"], [BROKEN], ["malformed: "]),
    ],
)
def test_an_answer_comes_once_and_never_not_at_all(
    odd: Machine, lines: list[bytes], came: list[str | int], notes: list[str]
) -> None:
    with odd.session("odd") as session:
        session.initialize()
        asked = call(session, "say", lines=in_base64(lines))
        answers = until_good(session)
    assert {answer["id"] for answer in answers} == {asked}
    assert [a["error"]["code"] if "error" in a else text_of(a) for a in answers] == came
    written = [note.split("'odd': ")[1] for note in news(odd)]
    assert len(written) == len(notes)
    assert all(note.startswith(start) for note, start in zip(written, notes, strict=True))


GOOD_CALL: dict[str, Any] = {"name": "good", "arguments": {"words": "reached"}}
READ_OTHERWISE: list[dict[str, Any]] = [
    {**GOOD_CALL, "name\0": "say"},
    {**GOOD_CALL, "arguments": {"words": "reached", "words\0x": "otherwise"}},
    {**GOOD_CALL, "arguments": {"words": "reached", "__proto__": {"words": "otherwise"}}},
    {**GOOD_CALL, "Name": "say"},
    {**GOOD_CALL, "meta": {}},
    {**GOOD_CALL, "name": "good\n"},
    {**GOOD_CALL, "name": "g\u043e\u043ed"},
]


def test_a_call_that_a_server_may_read_otherwise_does_not_reach_it(odd: Machine) -> None:
    with odd.session("odd") as session:
        session.initialize()
        for params in READ_OTHERWISE:
            refused = session.answer_to(session.request("tools/call", params))
            assert refused["error"]["code"] in {-32600, -32602}, params
        again = session.answer_to(session.request("initialize", {"protocolVersion": "2025-03-26"}))
        assert "already initialized" in again["error"]["message"]
        good = session.request("tools/call", {**GOOD_CALL, "_meta": {"name": "good"}})
        assert text_of(session.answer_to(good)) == "reached"
    notes = [note for note in news(odd) if "malformed: " in note]
    assert 1 <= len(notes) <= len(READ_OTHERWISE) + 1  # five a second


def left_out(notes: list[str]) -> int:
    """Return the number of lines that the journal reports as suppressed."""
    counts = [re.search(r"(\d+) lines omitted here", note) for note in notes]
    return sum(int(count[1]) for count in counts if count)


@only_in_test_all("a flood; the fast tier has each kind of garbage once")
def test_a_flood_of_garbage_is_a_few_lines_in_the_journal(odd: Machine) -> None:
    nothing_asked = b'{"jsonrpc":"2.0","id":"' + b"x" * 200 + b'","result":{}}'
    begin_s = time.monotonic()
    with odd.session("odd") as session:
        session.initialize()
        both = in_base64([b"garbage", nothing_asked])
        call(session, "say", lines=both, times=FLOOD // 2)
        assert until_good(session) == []
        notes = news(odd)
        while left_out(notes) < FLOOD - 100:  # the number is logged before the next line
            call(session, "say", lines=both)
            assert until_good(session) == []
            notes += news(odd)
        took_s = time.monotonic() - begin_s
        peak = peak_bytes(odd)
    print(f"{FLOOD} lines: {len(notes)} in the journal, {took_s:.1f} s, {peak >> 20} MiB")
    assert len(notes) < 7 * (took_s + 1)  # five a second, and a summary of the others
    assert peak < 100 * 1024 * 1024


def test_a_bug_of_the_gate_ends_the_session_at_once(odd: Machine) -> None:
    odd.announce("Traceback")
    line = "    context = session.requests_from_agent.take(answer.id)\n"
    with odd.patched("core/gate/from_server", line, line.replace(".take", ".no_such_thing")):
        session = odd.session("odd")
        call(session, "say", lines=in_base64([FAILURE]))
        with pytest.raises(EOFError, match="the gate has a bug: see its journal"):
            session.receive()
        assert session.close()[0] == 69


def test_a_session_that_ends_takes_no_other_along(odd: Machine) -> None:
    """The gate is notified twice, and here at once: by a signal and by a channel."""
    gate = odd.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    with odd.session("odd") as session:
        session.initialize()
        child = odd.look(f"pgrep -P {gate}").strip()
        ended = f"until grep -q '^State:.Z' /proc/{child}/status; do :; done"
        odd.as_root(f"kill -STOP {gate}; kill -KILL {child}; {ended}; kill -CONT {gate}")
        with pytest.raises(EOFError, match="the gate broke off the session"):
            session.receive()
    with odd.session("odd") as session:
        session.initialize()
        assert until_good(session) == []
    assert odd.show("mcpwrap-gate.service", "MainPID")["MainPID"] == gate


SEEN = "Be kind.[2J"
CLEAN = "results: [{name: clean, control_characters: remove}]\n"


def described(session: Session) -> tuple[str, dict[str, str]]:
    """Do the handshake; return the instructions, and each tool's description by its name."""
    client = {"name": "bed", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    answer = session.answer_to(session.request("initialize", hello))
    session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    listed = session.answer_to(session.request("tools/list"))["result"]["tools"]
    return answer["result"]["instructions"], {one["name"]: one["description"] for one in listed}


def test_descriptions_reach_the_agent_without_what_nobody_sees(odd: Machine) -> None:
    with odd.session("odd") as session:  # the twin: without a rule only deceptive names are gone
        instructions, tools = described(session)
    assert instructions == "Be kind.\U000e0064\U000e0069\U000e0065\x1b[2J"
    assert tools == {"good": "Answers.\u200b\u202e"}
    odd.write("/etc/mcpwrap/policy.yaml", POLICY + CLEAN)
    odd.as_root("systemctl reload mcpwrap-gate")
    with odd.session("odd") as session:
        assert described(session) == (SEEN, {"good": "Answers."})
        assert text_of(session.answer_to(call(session, "good", words="yes"))) == "yes"
    logged = await_news(
        odd,
        r"left out go\\u200bod \(an invisible character\), g\\u043eod \(letters of two scripts\)$",
        r"response to initialize .*rule clean changed the result",
    )
    assert logged
    odd.write("/etc/mcpwrap/policy.yaml", POLICY)
    odd.as_root("systemctl reload mcpwrap-gate")

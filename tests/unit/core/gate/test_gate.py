"""Whole sessions in plain text, in dialogues/: each line sent, and the gate's actions on it.

A dialogue begins at `===`. `agent>` and `server>` send a line; the lines that follow are all the
gate's actions on it, in order. `same` stands for the sent line, `MODERN` for the revision in its
envelope. `policy>` and `limits>` set up policy and limits; `handshake>` agrees on a revision;
`told>` is what was reported to the limits since the last `told>`, or `nothing`; `written>` is the
next audit record, and `written> nothing` means that there are no more. `audit>` breaks or repairs
the audit. `end>` ends the server, with the reason. With `executes> code` the server executes code,
and with `between> a hub` the agent is a hub.

For held requests, `asked>` is the next approval request, `asked> nothing` means that there are no
more, and `approvals>` is the reply to the next one, which is then not held. `person>` decides on a
held request by its number, `clock>` lets seconds pass, and `due>` is the number of seconds until
the gate has something to do. `STATE1` stands for the `requestState` of held request 1, and `TAG`
for that by which the session knows its own ones.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from mcpwrap.core.approval.entry import UnaskedCause
from mcpwrap.core.gate import in_flight, pending_approvals
from mcpwrap.core.gate.call_outcomes import DIGEST_BYTES
from mcpwrap.core.gate.gate import Action, Gate, ToAgent, ToServer, ToUser
from mcpwrap.core.gate.in_flight import MAX_CANCELLED, MAX_TARGET_CHARS
from mcpwrap.core.gate.ports import ApprovalOutcome, ApprovalUnavailable, Approved
from mcpwrap.core.policy.decision import (
    AskingRules,
    CallOutcome,
    Decision,
    Judgement,
    LimitExceeded,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import MAX_BATCH
from mcpwrap.core.secrets.aead import NONCE_BYTES, seal
from tests.unit.core.agreement import gate_in_session
from tests.unit.core.no_files import run_without_files
from tests.unit.core.scripted import (
    MODERN,
    ScriptedApprovals,
    ScriptedAudit,
    ScriptedLimits,
    ScriptedPolicy,
    recorded,
    spoken,
)

HERE = Path(__file__).with_name("dialogues")
_KEY = ScriptedApprovals().state_key
# Of a state that this session has sealed.
TAG = f"mcpwrap-{blake2b(_KEY, digest_size=8, person=b'state').hexdigest()}-"
EXPECTED = ("to server> ", "to agent> ", "note> ")
WORDS: dict[str, Literal["approved", "denied", "expired", "void", "unasked"]] = {
    "approves": "approved", "denies": "denied", "forgets": "expired", "voids": "void",
    "unasked": "unasked",
}  # fmt: skip
CAUSES: dict[str, UnaskedCause] = {"deny": "denied", "pause": "paused", "refuse": "nobody"}


def dialogues() -> Iterator[tuple[str, list[str]]]:
    for file in sorted(HERE.glob("*.txt")):
        for part in file.read_text().split("=== ")[1:]:
            text = re.sub(r"STATE(\d)", state, part.replace("MODERN", MODERN).replace("TAG", TAG))
            title, *lines = text.splitlines()
            said = [line for line in lines if line and not line.startswith("#")]
            yield f"{file.stem}: {title}", said


def state(found: re.Match[str]) -> str:
    """Return the sealed state of a held request: the same for the same number."""
    number = int(found[1])
    nonce = number.to_bytes(NONCE_BYTES)
    return TAG + seal(b"%d" % number, _KEY, nonce=nonce, bound=("request state",)).hex()


class Performance:
    """Player of a dialogue: sends its lines to a gate, and compares the actions."""

    def __init__(self) -> None:
        self.policy = ScriptedPolicy()
        self.limits = ScriptedLimits()
        self.audit = ScriptedAudit()
        self.approvals = ScriptedApprovals()
        self.now_s = 1000.0
        self.gate = self.new_gate(executes=False)

    def new_gate(self, *, executes: bool) -> Gate:
        gate = Gate(self.policy, self.limits, self.audit, self.approvals, executes=executes)
        gate.at(self.now_s)
        return gate

    def play(self, lines: list[str]) -> None:
        at = 0
        while at < len(lines):
            who, _, what = lines[at].partition("> ")
            at += 1
            end = at
            while end < len(lines) and lines[end].startswith(EXPECTED):
                end += 1
            self.say(who, what, lines[at:end])
            at = end

    def say(self, who: str, what: str, expected: list[str]) -> None:
        if who in {"told", "written", "asked", "due"}:
            assert self.look(who) == what
        elif who in {"agent", "server", "person", "clock", "end"}:
            acts = [act for act in self.act(who, what) if not isinstance(act, ToUser)]
            said = list(map(spoken, acts))
            assert said == [wanted(line, what) for line in expected], what
        else:
            self.prepare(who, what)

    def prepare(self, who: str, what: str) -> None:
        match who:
            case "policy":
                self.prepare_policy(msgspec.json.decode(what))
            case "limits":
                tool, retry_after_s, why = what.split(" ", 2)
                self.limits.held[tool] = LimitExceeded(why, float(retry_after_s))
            case "audit":
                self.audit.is_broken = what == "is broken"
            case "approvals":
                verb, _, rest = what.partition(" ")
                self.approvals.answers.append(
                    Approved("a0", "digest0", rest)
                    if verb == "approve"
                    else ApprovalUnavailable(rest, CAUSES[verb])
                )
            case "executes":
                self.gate = self.new_gate(executes=True)
            case "between":
                self.approvals.has_window = False
            case "handshake":
                self.shake_hands(*what.split(" "))
            case _:
                pytest.fail(f"nobody is called {who!r}")

    def look(self, who: str) -> str:
        """Return the records beside the messages, and reset them."""
        match who:
            case "told":
                told = [
                    f"{tool} {'failed' if outcome.failed else 'ended'}"
                    for tool, outcome in self.limits.told
                ]
                self.limits.told.clear()
                return ", ".join(told) or "nothing"
            case "written":
                written = self.audit.written
                return recorded(written.pop(0)) if written else "nothing"
            case "asked":
                asked = self.approvals.asked
                return asked.pop(0) if asked else "nothing"
            case _:
                due_in_s = self.gate.due_in_s()
                return "never" if due_in_s is None else f"{due_in_s:g}"

    def act(self, who: str, what: str) -> list[Action]:
        match who:
            case "agent":
                return self.gate.from_agent(in_bytes(what))
            case "server":
                return self.gate.from_server(in_bytes(what))
            case "end":
                return self.gate.server_ended(what)
            case "clock":
                self.now_s += float(what)
                self.gate.at(self.now_s)
                return self.gate.tick()
            case _:
                became, number, *reason = what.split(" ", 2)
                told = ApprovalOutcome(
                    hold=int(number), what=WORDS[became], by="bob", reason="".join(reason)
                )
                return self.gate.handle_outcome(told)

    def shake_hands(self, version: str, capabilities: str = "{}") -> None:
        params = f'{{"capabilities":{capabilities}}}'.encode()
        self.gate.from_agent(
            b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":%s}' % params
        )
        result = {"protocolVersion": version, "capabilities": {}}
        answer = {"jsonrpc": "2.0", "id": "hello", "result": result}
        assert len(self.gate.from_server(msgspec.json.encode(answer))) == 1
        self.audit.written.clear()

    def prepare_policy(self, prepared: dict[str, str]) -> None:
        decision = Decision(prepared.get("decision", "allow"))
        notes = tuple(filter(None, prepared.get("notes", "").split(",")))
        judgement = Judgement(
            decision,
            prepared.get("rule", ""),
            prepared.get("message", ""),
            notes,
            in_client="in client" in prepared,
        )
        match prepared:
            case {"judge": "default"}:
                self.policy.default = judgement
            case {"judge": subject}:
                self.policy.judgement_of[subject] = judgement
            case {"result of": subject}:
                self.policy.refused_results_of[subject] = judgement
            case {"hides": tool}:
                self.policy.hidden.add(tool)
            case {"names": method}:
                self.policy.named.add(method)
            case {"redacts": text}:
                self.policy.redacts = text
            case _:
                pytest.fail(f"what is {prepared}?")


def in_bytes(said: str) -> bytes:
    if said.startswith("b'"):
        value = ast.literal_eval(said)
        assert isinstance(value, bytes)
        return value
    return said.encode() + b"\n"


def wanted(line: str, said: str) -> str:
    """Return the expected line; the space that makes a dialogue readable is not sent."""
    where, _, what = line.partition("> ")
    if where == "note":
        return line
    text = said if what == "same" else what
    return f"{where}> {msgspec.json.encode(msgspec.json.decode(text)).decode()}"


@pytest.mark.parametrize("lines", [pytest.param(lines, id=title) for title, lines in dialogues()])
def test_a_dialogue(lines: list[str]) -> None:
    Performance().play(lines)


PERFORM = """
for title, lines in played:
    try: Performance().play(lines)
    except BaseException as error:
        os.write(2, repr((title, error)).encode())
        os._exit(1)
"""


def test_no_dialogue_opens_a_file_or_loads_a_module() -> None:
    imports = "from tests.unit.core.gate.test_gate import Performance, dialogues"
    run_without_files(f"{imports}\nplayed = list(dialogues())\n", PERFORM, [])


def test_what_is_forwarded_was_encoded_again() -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    line = (
        b' {"id" : 1,"jsonrpc":"2.0", "\\u006dethod":"tools\\/call",'
        b'"params":{"name":"\\u0061"}}\r\n'
    )
    (action,) = gate.from_agent(line)
    assert spoken(action) == (
        'to server> {"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}'
    )


def test_what_ends_a_line_for_some_readers_is_written_as_an_escape() -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    params = '{"name":"a","arguments":{"x":"%s"}}'
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    escaped = r"é\u2028\u2029…"
    (forwarded,) = gate.from_agent((call % "é\u2028\u2029…").encode())
    assert spoken(forwarded) == f"to server> {call % escaped}"
    answer = '{"jsonrpc":"2.0","id":1,"result":{"content":["%s"]}}'
    (forwarded,) = gate.from_server((answer % "é\u2028\u2029…").encode())
    assert spoken(forwarded) == f"to agent> {answer % escaped}"


def test_a_batch_is_bounded() -> None:
    gate, _ = gate_in_session("2025-03-26")
    ping = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}'
    (forwarded,) = gate.from_agent(b"[%s]" % b",".join([ping] * MAX_BATCH))
    assert isinstance(forwarded, ToServer)
    note, answer = gate.from_agent(b"[%s]" % b",".join([ping] * (MAX_BATCH + 1)))
    assert spoken(note) == "note> malformed: a batch must have 1 to 1024 messages"
    assert isinstance(answer, ToAgent)


def test_the_next_message_is_judged_by_a_new_policy() -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}'
    assert spoken(gate.from_agent(call % 1)[0]).startswith("to server>")
    gate.policy = ScriptedPolicy(hidden={"a"})
    assert gate.policy.hides("a")
    assert spoken(gate.from_agent(call % 2)[0]) == "note> blocked: tools/call a id=2: hidden"


@pytest.mark.parametrize("line", [b"", b"\n", b" \t\r\n"])
def test_a_line_of_nothing_is_nothing(line: bytes) -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    assert gate.from_agent(line) == gate.from_server(line) == []


def test_identical_arguments_have_one_digest_in_whatever_order() -> None:
    limits = ScriptedLimits(uncounted={"b"})
    gate = Gate(ScriptedPolicy(), limits, ScriptedAudit())
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"%s}}'
    for number, (tool, rest) in enumerate(
        [
            ("a", ',"arguments":{"x":1,"y":{"z":2,"w":3}}'),
            ("a", ',"arguments":{"y":{"w":3,"z":2},"x":1}'),
            ("a", ',"arguments":{"x":1,"y":{"z":2,"w":4}}'),
            ("a", ',"arguments":{}'),
            ("a", ""),  # no params are the same as empty ones
            ("c", ',"arguments":{"x":1,"y":{"z":2,"w":3}}'),
            ("b", ',"arguments":{"x":1}'),
        ]
    ):
        gate.from_agent((call % (number, tool, rest)).encode())
    first, again, other, empty, none, of_another_tool, uncounted = (
        digest for _, digest in limits.asked
    )
    assert len(first) == DIGEST_BYTES
    assert first == again != other
    assert empty == none != first
    assert of_another_tool != first
    assert uncounted == b""


CALL = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}'
ANSWERS = {
    "result": '"result":{"content":[],"structuredContent":{"n":1}}',
    "other order": '"result":{"structuredContent":{"n":1},"content":[]}',
    "with _meta": '"result":{"content":[],"structuredContent":{"n":1},"_meta":{"trace":%d}}',
    "other": '"result":{"content":[],"structuredContent":{"n":2}}',
    "failed": '"result":{"content":[],"isError":true}',
    "error": '"error":{"code":-32000,"message":"x"}',
    "other error": '"error":{"code":-32000,"message":"y"}',
    "none": '"result":7,"error":8',
}


def test_an_answer_has_one_digest_whatever_its_id_and_meta() -> None:
    limits = ScriptedLimits()
    gate = Gate(ScriptedPolicy(), limits, ScriptedAudit())
    digest_by_name = {}
    for number, (name, answer) in enumerate(ANSWERS.items()):
        for request_id in (2 * number, 2 * number + 1):
            gate.from_agent((CALL % request_id).encode())
            text = answer.replace("%d", str(request_id))
            gate.from_server(f'{{"jsonrpc":"2.0","id":{request_id},{text}}}'.encode())
        (_, first), (_, second) = limits.told[-2:]
        assert first == second
        assert len(first.answer_digest) == DIGEST_BYTES
        digest_by_name[name] = first.answer_digest
    assert digest_by_name["result"] == digest_by_name["with _meta"]
    assert len(set(digest_by_name.values())) == len(ANSWERS) - 1
    assert {outcome.call_digest for _, outcome in limits.told} == {limits.asked[0][1]}


def test_an_answer_that_is_not_compared_costs_no_digest() -> None:
    limits = ScriptedLimits(unanswered={"a"})
    gate = Gate(ScriptedPolicy(), limits, ScriptedAudit())
    gate.from_agent((CALL % 1).encode())
    gate.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    assert limits.told == [("a", CallOutcome(failed=False, call_digest=limits.asked[0][1]))]


def test_so_many_requests_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    gate.from_agent(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
    monkeypatch.setattr(in_flight.InFlight, "is_full", lambda _: True)
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    reason = "too many requests have no response yet"
    answer = f'{{"jsonrpc":"2.0","id":1,"error":{{"code":-31429,"message":"{reason}"}}}}'
    assert [spoken(action) for action in gate.from_agent(ping)] == [
        f"note> limited: ping id=1: {reason}",
        f"to agent> {answer}",
    ]
    assert [spoken(action) for action in gate.from_server(ping)] == [
        f"note> limited: from the server: ping id=1: {reason}",
        f"to server> {answer}",
    ]


def test_so_many_may_wait_for_a_person_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_approvals, "MAX_HELD", 1)
    policy = ScriptedPolicy({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit(), ScriptedApprovals())
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}'
    assert spoken(gate.from_agent(call % (1, b"a"))[0]).startswith("note> held")
    note, answer = gate.from_agent(call % (2, b"a"))
    assert "requests of this session already wait for approval" in spoken(note)
    assert isinstance(answer, ToAgent)
    (forwarded,) = gate.from_agent(call % (3, b"b"))
    assert isinstance(forwarded, ToServer)


class SilentPolicy(ScriptedPolicy):
    """Policy that names another rule than the decisive one."""

    def asking(self, method: str, params: Mapping[str, Json]) -> AskingRules:
        return AskingRules(rules=("another",))


@pytest.mark.parametrize(
    ("kind", "rules"), [(ScriptedPolicy, ("all",)), (SilentPolicy, ("all", "another"))]
)
def test_the_decisive_rule_is_among_those_that_ask(
    kind: type[ScriptedPolicy], rules: tuple[str, ...]
) -> None:
    policy = kind({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    approvals = ScriptedApprovals()
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit(), approvals)
    gate.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}')
    assert [asking.rules for asking in approvals.asking] == [rules]


def test_of_many_states_the_oldest_is_good_no_more() -> None:
    policy = ScriptedPolicy({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit(), ScriptedApprovals())
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","_meta":{%s}%s}}'
    for number in range(pending_approvals.MAX_SUSPENDED + 1):
        gate.from_agent((call % (number, MODERN, "")).encode())
    gate.at(100.0)
    assert len(gate.tick()) == 2 * (pending_approvals.MAX_SUSPENDED + 1)  # a note, and a result
    again = [re.sub(r"STATE(\d)", state, f',"requestState":"STATE{n}"') for n in (1, 2)]
    note, _ = gate.from_agent((call % (90, MODERN, again[0])).encode())
    reason = "requestState was already used, or dropped for newer ones"
    assert spoken(note) == f"note> malformed: tools/call id=90: {reason}"
    note, _ = gate.from_agent((call % (90, MODERN, again[1])).encode())
    assert spoken(note).startswith("note> held")


def test_the_answer_to_a_call_that_was_cancelled_is_never_judged_as_anothers() -> None:
    policy = ScriptedPolicy(refused_results_of={"tools/call secret": Judgement(Decision.BLOCK)})
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit())
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}'
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'
    said = []
    for number in range(MAX_CANCELLED + 1):
        gate.from_agent((call % (number, "echo" if number else "secret")).encode())
        said += gate.from_agent((cancel % number).encode())
    about = f"notifications/cancelled id={MAX_CANCELLED}"
    reason = "too many cancelled requests have no response yet"
    assert spoken(said[-1]) == f"note> limited: {about}: {reason}"
    note, _ = gate.from_agent((call % (0, "echo")).encode())
    assert spoken(note) == "note> malformed: tools/call id=0: the id is in use"
    note, _ = gate.from_server(b'{"jsonrpc":"2.0","id":0,"result":{"content":[]}}')
    about = "the response to tools/call secret id=0"
    assert spoken(note) == f"note> blocked: {about}: no rule allows it"


def test_a_name_that_is_remembered_is_short() -> None:
    gate = Gate(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}'
    (forwarded,) = gate.from_agent((call % (1, "x" * MAX_TARGET_CHARS)).encode())
    assert isinstance(forwarded, ToServer)
    _, refused = gate.from_agent((call % (2, "x" * (MAX_TARGET_CHARS + 1))).encode())
    assert isinstance(refused, ToAgent)

    task = "t" * (MAX_TARGET_CHARS + 1)
    answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"taskId":"{task}"}}}}}}'
    assert len(gate.from_server(answer.encode())) == 1
    assert not gate._session.tool_by_task

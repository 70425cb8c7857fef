"""Sessions of a hub at random: valid lines and odd ones, in any order.

Nothing that an agent or a member sends ends the hub; each line that it writes is a message; each
request of the agent is answered once, and no other id is.
"""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.hub.state.actions import (
    Action,
    CloseMember,
    LineToAgent,
    LineToMember,
    LogLine,
    OpenMember,
)
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.hub.session_player import SessionPlayer, expanded

MEMBERS = ("git", "web")
KNOWN = (
    '{"known":{"capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{}},"tools":[TOOL('
    'log)],"prompts":[{"name":"p"}],"resources":[RESOURCE(%s:1)],"templates":[TEMPLATE(%s:{x})]}}'
)
_LEVEL = '"io.modelcontextprotocol/logLevel":"debug"'
ENVELOPES = st.sampled_from(
    ["", "", "MODERN_ASKS", "MODERN", f"MODERN_ASKS,{_LEVEL}", '"progressToken":1']
)
CALLS = st.sampled_from(
    [
        ("tools/call", '"name":"git__log"'),
        ("tools/call", '"name":"web__log","arguments":{"a":[1.50]}'),
        ("tools/call", '"name":"new__log","task":{}'),
        ("tools/call", '"name":"mcpwrap_status"'),
        ("tools/call", '"name":7'),
        ("prompts/get", '"name":"web__p"'),
        ("resources/read", '"uri":"git:1"'),
        ("resources/read", '"uri":"learned:1"'),
        ("resources/subscribe", '"uri":"git:1"'),
        ("resources/unsubscribe", '"uri":"git:1"'),
        ("completion/complete", '"ref":{"type":"ref/resource","uri":"web:{x}"},"argument":{}'),
        ("tasks/get", '"taskId":"T"'),
        ("tasks/update", '"taskId":"T"'),
        ("logging/setLevel", '"level":"info"'),
        ("tools/list", ""),
        ("resources/templates/list", ""),
        ("ping", ""),
        ("initialize", '"protocolVersion":"2025-11-25","capabilities":ASKS'),
        ("server/discover", ""),
        ("made/up", ""),
    ]
)
RESULTS = st.sampled_from(
    [
        '"result":{"content":[]}',
        '"result":7',
        '"error":{"code":-32601,"message":"no"}',
        '"error":[]',
        '"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}}}',
        '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}}}',
        '"result":{"capabilities":[],"instructions":{}}',
        '"result":{"tools":[TOOL(log)],"resources":[],"resourceTemplates":[],"prompts":[]}',
        '"result":{"tools":[7],"nextCursor":"a"}',
        '"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}',
        '"result":{"resultType":"input_required","inputRequests":[],"requestState":"s"}',
        '"result":{"resultType":"task","taskId":"T"}',
        '"result":{"task":{"taskId":"T"}}',
        '"result":{"content":[{"uri":"learned:1"},{"resource":{"uri":7}},3]}',
        '"result":{"roots":[]}',
    ]
)
NOTICES = st.sampled_from(
    [
        '"method":"notifications/tools/list_changed"',
        '"method":"notifications/progress","params":{"progressToken":1,"progress":1}',
        '"method":"notifications/message","params":[]',
        '"method":"notifications/resources/updated","params":{"uri":"git:1"}',
        '"method":"notifications/cancelled","params":{"requestId":1}',
        '"method":"notifications/tasks/status","params":{"taskId":"T"}',
        '"method":"notifications/initialized"',
        '"id":1,"method":"roots/list"',
        '"id":"a","method":"sampling/createMessage","params":{"_meta":{"progressToken":1}}',
        '"id":2,"method":"elicitation/create","params":[]',
        '"id":3,"method":"tasks/result","params":{"taskId":"T"}',
        '"id":4,"method":"ping"',
        '"id":5,"method":"made/up"',
        '"id":6',
        '"id":[],"result":{}',
    ]
)
ODD = st.sampled_from(["7", "[]", "{}", "[{}]", '{"id":1e400}', "\x00", '{"method":"x","id":null}'])
NAMES = st.sampled_from(MEMBERS)
NUMBERS = st.integers(0, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), CALLS, ENVELOPES),
        st.tuples(st.just("call"), CALLS, ENVELOPES),
        st.tuples(st.just("listen")),
        st.tuples(st.just("repeat"), NUMBERS),
        st.tuples(st.just("cancel"), NUMBERS),
        st.tuples(st.just("reply"), NUMBERS, RESULTS),
        st.tuples(st.just("begin"), NAMES, st.sampled_from(["", "handshake", "modern"])),
        st.tuples(st.just("end"), NAMES),
        st.tuples(st.just("answer"), NAMES, NUMBERS, RESULTS),
        st.tuples(st.just("answer"), NAMES, NUMBERS, RESULTS),
        st.tuples(st.just("notice"), NAMES, NOTICES),
        st.tuples(st.just("odd"), st.sampled_from(("agent", *MEMBERS)), ODD),
        st.tuples(st.just("wait"), st.sampled_from(["1", "2", "5", "60"])),
        st.tuples(st.just("close")),
    ),
    max_size=40,
)


@dataclass
class World:
    """Agent and members, who know what they were sent."""

    player: SessionPlayer = field(default_factory=SessionPlayer)
    last_id: int = 0
    open_ids: set[Json] = field(default_factory=set)  # not cancelled
    cancelled_ids: set[Json] = field(default_factory=set)
    states: list[str] = field(default_factory=list)
    asked_ids: list[Json] = field(default_factory=list)  # requests to the agent
    ids_by_member: dict[str, list[Json]] = field(default_factory=dict)
    running: dict[str, bool] = field(default_factory=dict)  # opening is False

    def do(self, who: str, what: str) -> None:
        self.see(self.player.actions(who, expanded(what)))

    def see(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case LineToAgent(line):
                    assert line.endswith(b"\n")
                    self.sees_agent(msgspec.json.decode(line))
                case LineToMember(member, line):
                    assert self.running[member]
                    message = msgspec.json.decode(line)
                    if "method" in message and "id" in message:
                        self.ids_by_member.setdefault(member, []).append(message["id"])
                case OpenMember(member):
                    assert member not in self.running
                    self.running[member] = False
                case CloseMember(member):
                    self.running.pop(member, None)
                    self.ids_by_member.pop(member, None)
                case LogLine(text):
                    assert text.isprintable()

    def sees_agent(self, message: dict[str, Json]) -> None:
        if "method" in message:
            if "id" in message:
                self.asked_ids.append(message["id"])
            return
        answered = message["id"]
        assert answered in self.open_ids | self.cancelled_ids
        self.open_ids.discard(answered)
        self.cancelled_ids.discard(answered)
        result = message.get("result")
        if isinstance(result, dict) and isinstance(found := result.get("requestState"), str):
            self.states.append(found)

    def call(self, method_and_params: tuple[str, str], meta: str) -> None:
        method, params = method_and_params
        self.last_id += 1
        if method != "subscriptions/listen":
            self.open_ids.add(self.last_id)
        parts = [params] if params else []
        parts += [f'"_meta":{{{meta}}}'] if meta else []
        text = ",".join(parts)
        line = f'{{HEAD,"id":{self.last_id},"method":"{method}","params":{{{text}}}}}'
        self.do("agent", line)

    def listen(self) -> None:
        wanted = '"notifications":{"toolsListChanged":true,"resourceSubscriptions":["git:1"]}'
        self.call(("subscriptions/listen", wanted), "MODERN")

    def repeat(self, number: int) -> None:
        if self.states:
            state = msgspec.json.encode(self.states[number % len(self.states)]).decode()
            params = f'"name":"git__log","requestState":{state},"inputResponses":{{"1":{{}}}}'
            self.call(("tools/call", params), "MODERN_ASKS")

    def cancel(self, number: int) -> None:
        cancelled = self.last_id - number
        if cancelled in self.open_ids:
            self.open_ids.remove(cancelled)
            self.cancelled_ids.add(cancelled)
        params = f'{{"requestId":{cancelled}}}'
        self.do("agent", f'{{HEAD,"method":"notifications/cancelled","params":{params}}}')

    def reply(self, number: int, result: str) -> None:
        if self.asked_ids:
            asked = self.asked_ids[number % len(self.asked_ids)]
            self.do("agent", f'{{HEAD,"id":{asked},{result}}}')

    def begin(self, member: str, era: str) -> None:
        if self.running.get(member) is False:
            self.running[member] = True
            opened = self.player.hub.member_opened(member)
            self.see(self.player.begin(member, opened, era) if era else opened)

    def end(self, member: str) -> None:
        if member in self.running:
            self.do("ended", f"{member} killed")

    def answer(self, member: str, number: int, result: str) -> None:
        ids = self.ids_by_member.get(member, [])
        if ids and self.running.get(member):
            asked = msgspec.json.encode(ids[-1 - number % len(ids)]).decode()
            self.do(member, f'{{HEAD,"id":{asked},{result}}}')

    def notice(self, member: str, notice: str) -> None:
        self.odd(member, f"{{HEAD,{notice}}}")

    def odd(self, who: str, line: str) -> None:
        if who == "agent" or self.running.get(who):
            self.do(who, line)

    def wait(self, seconds: str) -> None:
        self.do("clock", seconds)

    def close(self) -> None:
        self.do("closed", "")


@given(steps=STEPS, has_handshake=st.booleans())
def test_each_request_is_answered_once(
    steps: list[tuple[str, ...]],
    has_handshake: bool,  # noqa: FBT001
) -> None:
    world = World()
    for name in MEMBERS:
        world.player.act("member", f"{name} {expanded(KNOWN % (name, name))}")
    world.player.act("member", "new {}")
    if has_handshake:
        params = '"protocolVersion":"2025-11-25","capabilities":ASKS'
        world.call(("initialize", params), "")
    for step, *arguments in steps:
        getattr(world, step)(*arguments)
    for name in (*MEMBERS, "new"):
        world.end(name)
    world.wait("10")
    assert not world.open_ids
    assert not world.player.hub.is_waited_for()

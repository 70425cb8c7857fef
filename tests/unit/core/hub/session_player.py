"""Player of a hub's session in plain text: each line sent, and the hub's actions on it.

`member> NAME {…}` adds a member, with `known` definitions if there are any; then `NAME> …` is a
line of that member. `agent>` is a line of the agent; the lines that follow are all actions, in
order. `same` stands for the sent line. `opened> NAME` and `ended> NAME why` are the gate's words
about a member, `closed>` is the agent's end, `clock>` lets seconds pass, `due>` is the number of
seconds until the hub has something to do, and `waits>` whether the agent waits for a response.

`ready> NAME handshake` or `modern` begins the session of a member that opens: it answers the
requests of the hub's own, lists with what the member has `known` or with `lists`, and the actions
that remain follow. `handshake> REVISION {capabilities}` is `initialize` of the agent.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mcpwrap.core.hub.message_hub import MessageHub
from mcpwrap.core.hub.state.actions import (
    Action,
    CloseMember,
    LineToAgent,
    LineToMember,
    LogLine,
    OpenMember,
)
from mcpwrap.core.hub.state.hub_state import OWN_IDS
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.raw_message import RawMessage
from mcpwrap.core.wire.hub.hub_catalogue import Catalogue, CatalogueMember, Definitions
from mcpwrap.core.wire.server_files import HubMemberSpec, HubSpec

HERE = Path(__file__).with_name("dialogues")
EXPECTED = ("to ", "open ", "close ", "log> ")
_KEY = '"io.modelcontextprotocol/'
_REVISION = f'{_KEY}protocolVersion":"2026-07-28"'
_ASKS = '{"sampling":{},"elicitation":{},"roots":{}}'
_INFO = f'{_KEY}clientInfo":{{"name":"mcpwrap-hub","version":"0"}}'
_CACHE = '"resultType":"complete","ttlMs":0,"cacheScope":"private"'
STATUS = (
    '{"name":"mcpwrap_status","title":"Status of the servers behind this one","description":"Lists '
    'the servers behind this one, and says which is missing and why.","inputSchema":{"type":'
    '"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,'
    '"openWorldHint":false}}'
)
# Abbreviations in dialogues, from the longest one on.
MACROS = (
    (r"ENVELOPE_ASKS", rf'{_REVISION},{_KEY}clientCapabilities":{_ASKS},{_INFO}'),
    (r"ENVELOPE", rf'{_REVISION},{_KEY}clientCapabilities":{{}},{_INFO}'),
    (r"MODERN_ASKS", rf'{_REVISION},{_KEY}clientCapabilities":{_ASKS}'),
    (r"MODERN", rf'{_REVISION},{_KEY}clientCapabilities":{{}}'),
    (r"SUBSCRIPTION", f'{_KEY}subscriptionId"'),
    (r"STATUS", STATUS),
    (r"ASKS", _ASKS),
    (r"TOOL\((\S+?)\)", r'{"name":"\1","inputSchema":{"type":"object"}}'),
    (r"RESOURCE\((\S+?)\)", r'{"name":"r","uri":"\1"}'),
    (r"TEMPLATE\((\S+?)\)", r'{"name":"t","uriTemplate":"\1"}'),
    (r"CALL\((\S+?),(\S+?)\)", r'{HEAD,"id":\1,"method":"tools/call","params":{"name":"\2"}}'),
    (r"LIST\((\S+?),(\S+?)\)", r'{HEAD,"id":\1,"method":"\2/list"}'),
    (r"READ\((\S+?),(\S+?)\)", r'{HEAD,"id":\1,"method":"resources/read","params":{"uri":"\2"}}'),
    (r"DONE\((\S+?)\)", r'{HEAD,"id":\1,"result":{"content":[]}}'),
    (r"CACHED", f'{_CACHE},"_meta":{{{_KEY}serverInfo":{{"name":"tools","version":"1"}}}}'),
    (r"HEAD", r'"jsonrpc":"2.0"'),
)  # fmt: skip


def expanded(text: str) -> str:
    """Return the text without abbreviations."""
    for macro, meaning in MACROS:
        text = re.sub(macro, meaning, text)
    return text


def dialogues(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Return title and lines of each dialogue of a file."""
    for part in file.read_text().split("=== ")[1:]:
        title, *lines = part.splitlines()
        yield title, [expanded(line) for line in lines if line and not line.startswith("#")]


class Setup(msgspec.Struct, forbid_unknown_fields=True):
    """Member of a dialogue."""

    namespace: str | None = None
    refusal: str = ""
    instructions: str = ""
    known: Definitions | None = None
    lists: Definitions | None = None
    held_tools: tuple[str, ...] = ()
    held_prompts: tuple[str, ...] = ()


class SessionPlayer:
    """Player of one dialogue."""

    def __init__(self) -> None:
        self.setup_by_member: dict[str, Setup] = {}
        self.now_s = 1000.0
        self._hub: MessageHub | None = None

    @property
    def hub(self) -> MessageHub:
        if self._hub is None:
            setups = self.setup_by_member
            spec = HubSpec(
                members=tuple(
                    HubMemberSpec(
                        name=name,
                        namespace=name if one.namespace is None else one.namespace,
                        instructions=one.instructions,
                    )
                    for name, one in setups.items()
                )
            )
            members = tuple(
                CatalogueMember(
                    name=name,
                    refusal=one.refusal,
                    definitions=one.known,
                    held_tools=one.held_tools,
                    held_prompts=one.held_prompts,
                )
                for name, one in setups.items()
            )
            self._hub = MessageHub("tools", "1", spec, Catalogue(members=members))
            self._hub.at(self.now_s)
        return self._hub

    def play(self, lines: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
        """Play a dialogue; yield each line with the actions on it and those that are expected."""
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            end = at
            while end < len(lines) and lines[end].startswith(EXPECTED):
                end += 1
            who, _, what = line.partition("> ")
            who = who.removesuffix(">")
            yield (
                line,
                self.act(who, what),
                [one.replace("> same", f"> {what}") for one in lines[at:end]],
            )
            at = end

    def act(self, who: str, what: str) -> list[str]:
        """Carry out one line; return what follows."""
        match who:
            case "member":
                name, _, setup = what.partition(" ")
                self.setup_by_member[name] = msgspec.json.decode(setup or "{}", type=Setup)
                return []
            case "handshake":
                self.shake_hands(*what.split(" "))
                return []
            case "due":
                due_in_s = self.hub.due_in_s()
                assert what == ("never" if due_in_s is None else f"{due_in_s:g}")
                return []
            case "waits":
                assert what == ("yes" if self.hub.is_waited_for() else "no")
                return []
            case "ready":
                name, era = what.split(" ")
                return spoken(self.begin(name, self.hub.member_opened(name), era))
            case _:
                return spoken(self.actions(who, what))

    def actions(self, who: str, what: str) -> list[Action]:
        if who == "clock":
            self.now_s += float(what)
            self.hub.at(self.now_s)
        name, _, why = what.partition(" ")
        calls = {
            "agent": lambda: self.hub.from_agent(what.encode() + b"\n"),
            "clock": self.hub.tick,
            "opened": lambda: self.hub.member_opened(what),
            "ended": lambda: self.hub.member_failed(name, why),
            "closed": self.hub.agent_closed,
            "begun": self.hub.begun,
        }
        return calls.get(who, lambda: self.hub.from_member(who, what.encode()))()

    def shake_hands(self, revision: str, capabilities: str = "{}") -> None:
        params = f'{{"protocolVersion":"{revision}","capabilities":{capabilities}}}'
        line = f'{{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{params}}}'
        (answer, *_) = self.hub.from_agent(line.encode())
        assert isinstance(answer, LineToAgent)
        assert b'"result"' in answer.line

    def begin(self, name: str, actions: list[Action], era: str) -> list[Action]:
        """Answer what the hub asks itself; return the other actions."""
        rest: list[Action] = []
        for action in actions:
            if not (isinstance(action, LineToMember) and action.member == name):
                rest.append(action)
                continue
            (message,) = raw_message.decode(action.line)
            if message.method == "notifications/initialized":
                continue
            if isinstance(message.id, str) and message.id.startswith(OWN_IDS):
                answer = self.answer(name, message, era)
                more = self.hub.from_member(name, answer) if answer else []
                rest += self.begin(name, more, era)
            else:
                rest.append(action)
        return rest

    def answer(self, name: str, message: RawMessage, era: str) -> bytes:
        assert message.id is not None
        setup = self.setup_by_member[name]
        listed = setup.lists or setup.known or Definitions()
        capabilities = listed.capabilities
        match message.method:
            case "server/discover" if era == "modern":
                found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
            case "initialize" if era == "handshake":
                found = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
            case "subscriptions/listen":
                return b""
            case method if method.endswith("/list"):
                key = method.removesuffix("/list")
                field, key = ("templates", "resourceTemplates") if "templ" in key else (key, key)
                found = {key: getattr(listed, field)}
            case method:
                return raw_message.failure(message.id, -32601, f"no {method}")
        return raw_message.result(message.id, found)


def spoken(actions: list[Action]) -> list[str]:
    """Return actions as lines of a dialogue."""
    lines = []
    for action in actions:
        match action:
            case LineToAgent(line):
                lines.append(f"to agent> {line.decode().removesuffix(chr(10))}")
            case LineToMember(member, line):
                lines.append(f"to {member}> {line.decode().removesuffix(chr(10))}")
            case OpenMember(member):
                lines.append(f"open {member}")
            case CloseMember(member):
                lines.append(f"close {member}")
            case LogLine(text):
                lines.append(f"log> {text}")
    return lines

"""Recorded traffic of real clients, agents and servers: the gate changes and refuses nothing.

tests/shared/ordinary_messages has recorded conversations, a file for each client and server
(`make messages`). A gate receives the lines of each in their order. It forwards all but those that
`is_late` and `is_early` describe.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.gate.gate import Action, Gate, ToAgent, ToServer
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits

FOLDER = Path(__file__).parents[3] / "shared/ordinary_messages"
CLIENTS = {
    "python-1", "python-2", "typescript-1", "typescript-2",
    "claude-code", "gemini", "opencode", "inspector",
}  # fmt: skip
AT_LEAST = 500  # different messages of agents
METHODS = {
    "initialize", "notifications/initialized", "server/discover", "ping", "logging/setLevel",
    "tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete",
    "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
    "resources/unsubscribe", "subscriptions/listen", "sampling/createMessage",
    "elicitation/create", "roots/list", "notifications/roots/list_changed",
    "notifications/cancelled", "notifications/progress", "notifications/message",
    "tasks/get", "tasks/list", "tasks/cancel", "tasks/result",
}  # fmt: skip
# The whole policy is evaluated for each message, and it allows all.
RULES = """
version: 1
default: block
rules:
  - {name: never, tool: "*", action: block, when: [{arg: no_such, equals: 1, default: 2}]}
  - name: no-schema-changes
    tool: read_query
    action: block
    when: [{arg: query, matches: "(?i)^(attach|pragma)"}]
  - {name: hidden, tool: no_such_*, action: hide}
  - {name: tools, tool: "*", action: allow}
  - {name: methods, method: "*", action: allow}
results:
  - {name: short, tool: "*", max_bytes: 1M, redact: ['AKIA[0-9A-Z]{16}'], redact_keys: [password]}
  - {name: short-others, method: "*", max_bytes: 1M}
"""


Message = dict[str, Json]
Line = tuple[str, Message, bytes]  # who sent it, what it is, and as it came


@dataclass(frozen=True)
class Conversation:
    """One session of a client and a server."""

    client: str
    server: str
    lines: tuple[Line, ...]


def conversations() -> Iterator[Conversation]:
    for file in sorted(FOLDER.glob("*.txt")):
        client, server = file.stem.rsplit("-", 1)
        for part in file.read_bytes().split(b"===\n")[1:]:
            tagged = [line.partition(b"> ") for line in part.splitlines()]
            lines = tuple((tag.decode(), read(line), line) for tag, _, line in tagged)
            yield Conversation(client, server, lines)


def read(line: bytes) -> Message:
    message: Message = json.JSONDecoder().decode(line.decode())
    return message


ALL = tuple(conversations())
POLICIES = {"no rule": Policy(), "rules": parse_policy([SourceFile("p.yaml", RULES.encode())])}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_each_message_passes_unchanged(policy: Policy) -> None:
    assert [problem for each in ALL for problem in problems(each, policy)] == []


def problems(conversation: Conversation, policy: Policy) -> Iterator[str]:
    """Yield each line that was not forwarded unchanged, and its outcome."""
    compiled = compile_policy(policy, conversation.server)
    gate = Gate(compiled, ScriptedLimits(), ScriptedAudit())
    gate.at(1000.0)
    for number, (sender, message, line) in enumerate(conversation.lines):
        is_agent = sender == "agent"
        actions = (gate.from_agent if is_agent else gate.from_server)(line)
        before = conversation.lines[:number]
        if is_late(message, before) or is_early(message, before):
            passes = not any(isinstance(action, ToServer | ToAgent) for action in actions)
        else:
            passes = is_passed(message, actions, ToServer if is_agent else ToAgent)
        if not passes:
            yield f"{conversation.client} {conversation.server} {sender}> {line!r}: {actions}"


def is_passed(message: Message, actions: list[Action], onward: type[Action]) -> bool:
    """Return whether a message is forwarded unchanged: no note, no error, no other value."""
    match actions:
        case [ToServer(line) | ToAgent(line) as action]:
            # As Python writes it, since 3.0 equals 3 and True equals 1.
            return isinstance(action, onward) and repr(read(line)) == repr(message)
        case _:
            return False


def is_late(message: Message, before: tuple[Line, ...]) -> bool:
    """Return whether an agent cancels an answered request, as opencode does when it exits."""
    if message.get("method") != "notifications/cancelled":
        return False
    cancelled = of(message)["requestId"]
    return any(
        sender == "server" and "method" not in said and said["id"] == cancelled
        for sender, said, _ in before
    )


def is_early(message: Message, before: tuple[Line, ...]) -> bool:
    """Return whether a server reports a task whose id it has not sent to the agent yet."""
    if message.get("method") != "notifications/tasks/status":
        return False
    task = of(message)["taskId"]
    assert isinstance(task, str)
    return not any(task.encode() in line for _, said, line in before if "result" in said)


def test_there_are_many_messages_of_each_client() -> None:
    assert {each.client for each in ALL} == CLIENTS
    different = {
        json.dumps([each.client, said.get("method"), of(said)], sort_keys=True)
        for each in ALL
        for sender, said, _ in each.lines
        if sender == "agent"
    }
    assert len(different) >= AT_LEAST
    methods = {said["method"] for each in ALL for _, said, _ in each.lines if "method" in said}
    assert methods >= METHODS


def of(message: Message) -> Message:
    """Return the params or the result of a message, without the number that counts requests."""
    params = message.get("params") or message.get("result") or {}
    assert isinstance(params, dict)
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params
    return {**params, "_meta": {key: meta[key] for key in meta if key != "progressToken"}}

"""Lines of an agent for the gate: hostile ones by category, ordinary ones, and a policy for both.

A file has one message a line, after the verdict and a space. Bytes that are not printable ASCII,
and `%`, are percent-encoded (RFC 3986 section 2.1).
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.gate.gate import Gate, ToServer
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits

HOSTILE = sorted((Path(__file__).parent / "hostile_messages").glob("*.txt"))
ORDINARY = Path(__file__).parent / "ordinary_messages.txt"
REFUSED, PASSES = VERDICTS = ("refused", "passes")
RULES = b"""
version: 1
default: allow
rules:
  - {name: no-danger, tool: danger, action: block}
  - {name: no-secrets, tool: "secret_*", action: hide}
  - {name: no-rm, tool: run, when: [{arg: cmd, matches: rm, default: ""}], action: block}
  - {name: no-force, tool: run, when: [{arg: force, equals: true, default: false}], action: block}
  - {name: few, tool: run, when: [{arg: count, range: {min: 101}, default: 1}], action: block}
  - {name: low, tool: run, when: [{arg: options.level, equals: 9, default: 0}], action: block}
  - {name: srv, tool: run, when: [{arg: path, not: {inside: /srv}, default: /srv}], action: block}
  - {name: all, tool: read_all, when: [{arg: "paths[*]", not: {inside: /srv}}], action: block}
  - {name: known, tool: strict, when: [{arg: cmd, one_of: [ls, pwd]}], action: allow}
  - {name: unknown, tool: strict, action: block}
  - {name: prompt, method: prompts/get, when: [{arg: name, equals: danger}], action: block}
  - {name: etc, method: resources/read, when: [{arg: uri, matches: "^file:///etc"}], action: block}
  - name: completion
    method: completion/complete
    when: [{arg: ref.name, equals: danger, default: ""}]
    action: block
"""
# Params that the rules match, besides `name` and `uri`.
ARGUMENTS_JUDGED = {
    "run": ("cmd", "count", "force", "options.level", "path"),
    "read_all": ("paths[*]",),
    "strict": ("cmd",),
}
_HANDSHAKE = (
    b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}',
    b'{"jsonrpc":"2.0","id":"hello","result":{"protocolVersion":"2025-11-25"}}',
    b'{"jsonrpc":"2.0","id":"open","method":"tools/call","params":{"name":"ok"}}',
    b'{"jsonrpc":"2.0","id":"ask","method":"roots/list"}',
)


@dataclass(frozen=True, slots=True)
class Line:
    """A message, and the gate's expected verdict on it."""

    place: str  # for example `names.txt:12`
    verdict: str
    message: bytes


def lines_of(path: Path) -> list[Line]:
    """Return the messages of a file."""
    lines = []
    for number, text in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
        verdict, _, message = text.partition(" ")
        if verdict != "#":
            assert verdict in VERDICTS, f"{path.name}:{number}"
            lines.append(Line(f"{path.name}:{number}", verdict, unquote_to_bytes(message)))
    return lines


class Judge:
    """Policy as the gate applies it, with a session for each line."""

    def __init__(self) -> None:
        files = [SourceFile("policy.yaml", RULES)]
        self._policy: CompiledPolicy = compile_policy(parse_policy(files), "server")

    def forwarded(self, message: bytes) -> bytes | None:
        """Return the line that a server gets for a message; None if it gets nothing.

        The session has a request of each side that waits for its answer: `open` and `ask`.
        """
        gate = Gate(self._policy, ScriptedLimits(), ScriptedAudit())
        hello, answer, call, question = _HANDSHAKE
        gate.from_agent(hello)
        gate.from_server(answer)
        gate.from_agent(call)
        gate.from_server(question)
        sent = [action.line for action in gate.from_agent(message) if isinstance(action, ToServer)]
        assert len(sent) <= 1
        return sent[0] if sent else None

    def allows(self, method: str, params: dict[str, Json]) -> bool:
        """Return whether a request passes that a reader has found."""
        return self._policy.judge(method, params).decision is Decision.ALLOW

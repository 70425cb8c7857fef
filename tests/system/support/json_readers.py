"""JSON parsers of several languages in a machine, and the reading of a message by each."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from mcpwrap.core.policy.argument_path import PathMarker, found_at, steps_of
from mcpwrap.core.protocol.json_value import Json
from tests.shared.judged_lines import ARGUMENTS_JUDGED
from tests.system.bed.machine import BED_AT, CLIENT, Machine

_GUEST = f"{BED_AT}/tests/system/guest/readers"
_PROGRAMS = {
    f"node {_GUEST}/in_node.mjs": ("own", "assign", "merge"),
    f"{CLIENT} {_GUEST}/in_python.py": ("json", "dict", "typed", "sdk"),
    f"ruby {_GUEST}/in_ruby.rb": ("parse", "load"),
    f"php {_GUEST}/in_php.php": ("assoc", "object"),
    "/opt/readers/go": ("struct", "map"),
    "/opt/readers/serde": ("struct", "value"),
    "/opt/readers/serde-private": ("struct", "value"),
    "/opt/readers/json-c": ("strlen", "length"),
    "/opt/readers/jansson": ("strict", "strlen", "length"),
}
COMMANDS = {
    f"{program.split('/')[-1]} {way}": f"{program} {way}"
    for program, ways in _PROGRAMS.items()
    for way in ways
}
# Names of a tool, a prompt or a resource, below the params.
_NAMES = {
    "tools/call": ("name",),
    "prompts/get": ("name",),
    "resources/read": ("uri",),
    "resources/subscribe": ("uri",),
    "completion/complete": ("ref.name", "ref.uri"),
}
Meaning = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Parts of a message that a reader acts on."""

    message: dict[str, Json]

    @property
    def method(self) -> str:
        """The method, or "" for a response."""
        return _text(self.message.get("method"))

    @property
    def params(self) -> dict[str, Json]:
        """The params, or an empty object."""
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meaning(self) -> Meaning:
        """Values that a policy can match, in a form that compares; null is equal to absent."""
        arguments = ARGUMENTS_JUDGED.get(_text(self.params.get("name")), ())
        paths = [*_NAMES.get(self.method, ()), *(f"arguments.{path}" for path in arguments)]
        values: list[Json | PathMarker] = [self.message.get("method"), self.message.get("id")]
        for path in paths:
            values += found_at(self.params, steps_of(path))
        return tuple(map(_comparable, values))


def read_by(machine: Machine, reader: str, messages: Sequence[bytes]) -> list[Found | None]:
    """Return each reader's result for each message; None where it refuses one."""
    lines = "".join(f"{message.hex()}\n" for message in messages)
    out = machine.as_user("alice", COMMANDS[reader], stdin=lines).out.splitlines()
    assert len(out) == len(messages), reader
    return [None if line == "refused" else _found(line) for line in out]


def _found(line: str) -> Found:
    message = _decoded(msgspec.json.decode(line))
    assert isinstance(message, dict)
    return Found(message)


def _decoded(described: Json) -> Json:
    """Return the value that `guest/readers` printed."""
    match described:
        case str():
            return bytes.fromhex(described).decode("utf-8", "backslashreplace")
        case ["n", str(text)]:
            return int(text) if text.lstrip("-").isdigit() else float(text)
        case ["a", *elements]:
            return [_decoded(element) for element in elements]
        case ["o", *members]:
            return dict(map(_member, members))
        case _:
            return described


def _member(pair: Json) -> tuple[str, Json]:
    assert isinstance(pair, list)
    key, value = map(_decoded, pair)
    return _text(key), value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _comparable(value: Json | PathMarker) -> object:
    """Return the type with the value, because True equals 1 in Python; of a container the type."""
    match value:
        case None | PathMarker():
            return None
        case bool() | str():
            return type(value).__name__, value
        case int() | float():
            return "number", value
        case _:
            return type(value).__name__

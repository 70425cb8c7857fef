"""Agreement property of the gate: the policy judged what the server will read.

Shared by the property tests and by tests/fuzz/gate.py.
"""

import json
import struct
import subprocess
from typing import cast

import msgspec

from mcpwrap.core.gate.gate import Gate, ToServer
from mcpwrap.core.protocol.json_value import Json
from tests.shared import pace
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits, ScriptedPolicy

CALL = "tools/call"


def gate_in_session(version: str = "2025-03-26") -> tuple[Gate, ScriptedPolicy]:
    """Return a gate where batches are allowed, with a few requests to be answered."""
    policy = ScriptedPolicy()
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit())
    gate.from_agent(b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}')
    result = b'{"protocolVersion":"%s"}' % version.encode()
    gate.from_server(b'{"jsonrpc":"2.0","id":"hello","result":%s}' % result)
    for number, method in enumerate([b"tools/list", b"resources/list", b"ping"]):
        gate.from_agent(b'{"jsonrpc":"2.0","id":"open%d","method":"%s"}' % (number, method))
    gate.from_agent(b'{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"a"}}')
    policy.judged.clear()
    return gate, policy


def forwarded_and_judged(line: bytes) -> tuple[list[bytes], list[Json]]:
    """Return the lines that a server would receive for a line from the agent, and judged calls."""
    gate, policy = gate_in_session()
    lines = [action.line for action in gate.from_agent(line) if isinstance(action, ToServer)]
    assert all(forwarded.index(b"\n") == len(forwarded) - 1 for forwarded in lines)
    judged = [dict(params) for method, params in policy.judged if method == CALL]
    return lines, cast("list[Json]", judged)


def calls_as_python_reads(lines: list[bytes]) -> list[Json]:
    """Return the params of each call that the standard library finds, if it sees each key once."""
    reader = json.JSONDecoder(object_pairs_hook=_each_once)
    calls: list[Json] = []
    for line in lines:
        value = reader.decode(line.decode())
        messages = value if isinstance(value, list) else [value]
        calls += [m.get("params") for m in messages if m.get("method") == CALL]
    return calls


def _each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def as_doubles(value: Json) -> object:
    """Return a value as `Node` returns those that it reads: all numbers are doubles."""
    match value:
        case bool() | None:
            return value
        case str():
            return ["text", value]
        case int() | float():
            return ["number", struct.pack(">d", value).hex()]
        case list():
            return ["list", [as_doubles(inner) for inner in value]]
        case dict():
            return ["object", {key: as_doubles(inner) for key, inner in value.items()}]


# Reads a line, and writes a line with the params of each call in it.
_NODE_READER = r"""
const {createInterface} = require("node:readline");
const hex = (number) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
};
const told = (value) => {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return ["text", value];
  if (typeof value === "number") return ["number", hex(value)];
  if (Array.isArray(value)) return ["list", value.map(told)];
  const copy = Object.create(null);  // so that `__proto__` is a key like another
  for (const key of Object.keys(value)) copy[key] = told(value[key]);
  return ["object", copy];
};
createInterface({input: process.stdin, crlfDelay: Infinity}).on("line", (hexLine) => {
  const text = new TextDecoder("utf-8", {fatal: true}).decode(Buffer.from(hexLine, "hex"));
  const value = JSON.parse(text);
  const messages = Array.isArray(value) ? value : [value];
  const calls = messages.filter((m) => m.method === "tools/call").map((m) => told(m.params));
  process.stdout.write(JSON.stringify(calls) + "\n");
});
"""


class Node:
    """One Node.js process for all lines: its start takes as long as a thousand of them."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [program, "-e", _NODE_READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def calls(self, line: bytes) -> list[object]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line.hex().encode() + b"\n")
        self.process.stdin.flush()
        found = msgspec.json.decode(self.process.stdout.readline())
        assert isinstance(found, list)
        return found

    def close(self) -> None:
        self.process.communicate(timeout=pace.WAIT_S)

"""Server behind a test's gate: its tools do what a test needs."""

import threading
from typing import Any

from mcpwrap.core.wire import session_socket
from tests.shared import pace
from tests.unit.as_http.standing_gate import Held, Message

TOOLS = [
    {
        "name": "find",
        "inputSchema": {"properties": {"at": {"type": "string", "x-mcp-header": "At"}}},
    }
]


def notes(held: Held) -> session_socket.ServerEnded | None:
    """Answer until the agent's side ends."""
    for message in held.lines():
        for one in message if isinstance(message, list) else [message]:
            if "method" in one and (ended := _handle(held, one)):
                return ended
    return session_socket.ServerEnded(0)


def _handle(held: Held, message: Message) -> session_socket.ServerEnded | None:
    params = message.get("params", {})
    method = message["method"]
    match method:
        case "initialize" if params["protocolVersion"] == "never":
            held.say(error(message, -32602, "no"))
        case "initialize":
            held.answer(message, protocolVersion=params["protocolVersion"], capabilities={})
        case "tools/list":
            held.answer(message, tools=TOOLS)
        case "tools/call":
            return _call(held, message, params["name"], params.get("arguments", {}))
        case "die":
            return session_socket.ServerEnded(7, "of old age")
        case _ if method.startswith("notifications/"):
            return None
        case _:
            held.say(error(message, -32601, "Method not found"))
    return None


def _call(
    held: Held, message: Message, name: str, arguments: Any
) -> session_socket.ServerEnded | None:
    """Send the messages of `say`, wait for `hold`, then send the response."""
    held.say(*arguments.get("say", []))
    if name in HOLDS:
        HOLDS[name].wait(pace.WAIT_S)
    held.say(*arguments.get("then", []))
    if "error" in arguments:
        held.say({"jsonrpc": "2.0", "id": message["id"], "error": arguments["error"]})
    elif name != "silent":
        held.answer(message, content=[], told=arguments.get("told"))
    return None


HOLDS: dict[str, threading.Event] = {}


def error(request: Message, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}}


def note(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}

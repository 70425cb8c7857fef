"""In-band tags in messages between the program of a remote server and an agent's HTTP listener.

The gate between them passes `_meta` and the data of errors as they are, but for rules on results.
"""

from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id

HEADERS = "mcpwrap/headers"  # in `_meta`: the agent's Mcp-Param-*; whoever sets it knows the others
FOR = "mcpwrap/for"  # in `_meta`: the request on whose stream this came
CLOSED = "mcpwrap/closed"  # in `_meta`, beside the request: its stream has ended before the answer
HTTP = "mcpwrap/http"  # in the data of an error: what the server answered

MAX_CHALLENGE_CHARS = 2048


def take_headers(message: dict[str, Json]) -> tuple[dict[str, Json], Json]:
    """Return a message without the tag of its headers, and the tag; None if it has none."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(meta, dict) or HEADERS not in meta:
        return message, None
    headers = meta[HEADERS]
    rest = {key: value for key, value in meta.items() if key != HEADERS}
    bare: dict[str, Json] = {key: value for key, value in params.items() if key != "_meta"}
    if rest:
        bare["_meta"] = rest
    without = {key: value for key, value in message.items() if key != "params"}
    return ({**without, "params": bare} if bare else without), headers


def with_stream(message: dict[str, Json], request_id: Id) -> dict[str, Json]:
    """Return a request or notification of the server's, tagged with whose stream it came on."""
    params = message.get("params", {})
    if not isinstance(params, dict):
        return message  # no message either; the gate says so
    meta = params.get("_meta")
    tagged: dict[str, Json] = {**(meta if isinstance(meta, dict) else {}), FOR: request_id}
    return {**message, "params": {**params, "_meta": tagged}}


def closed(request_id: Id) -> dict[str, Json]:
    """Return the message that a stream has ended, of which only the tags are meant."""
    params: Json = {"level": "debug", "data": "", "_meta": {FOR: request_id, CLOSED: True}}
    return {"jsonrpc": "2.0", "method": methods.LOG, "params": params}


def refusal(status: int, challenge: str) -> dict[str, Json]:
    """Return the data of an error for what is no JSON-RPC; `challenge` is WWW-Authenticate."""
    told: dict[str, Json] = {"status": status}
    if challenge.isprintable() and 0 < len(challenge) <= MAX_CHALLENGE_CHARS:
        told["www_authenticate"] = challenge
    return {HTTP: told}

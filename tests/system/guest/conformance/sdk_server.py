"""The suite's server on the official library, over Streamable HTTP: a remote server.

Runs where that library is. Its arguments: a port of 127.0.0.1, its host name from outside, the
token that each request must carry, empty for none, and changes of its tools, by name, as JSON.
"""

import hmac
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.system.guest.conformance import said
from tests.system.guest.conformance.said import (
    ASKS,
    CONTENT,
    IN_BOTH,
    INFO,
    MORE_TOOLS,
    SPEC,
    WANTS,
    Json,
    elicit,
    sample,
    text,
)
from tests.system.guest.conformance.server import TOOLS, RefusedError, read, required

RETRY_MS = 100  # as the suite expects of a server that has itself polled
LOCAL = ("127.0.0.1", "localhost", "[::1]")
BUS = InMemorySubscriptionBus()
STEP_S = 0.05  # as in the suite's text
Handle = Callable[[Any, Any], Awaitable[Json]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class Events(EventStore):  # type: ignore[misc] # which is not where mypy runs
    """Event store in memory, for clients that resume a stream."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        """Keep an event, under its number."""
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        """Send the later events of the same stream."""
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._events):
            return None
        stream, _ = self._events[int(last_event_id) - 1]
        for number, (where, message) in list(enumerate(self._events, 1))[int(last_event_id) :]:
            if where == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def params_of(ctx: Any) -> Json:
    return dict(ctx.params or {})


async def ask(ctx: Any, request: Json) -> Json:
    """Send a request to the agent on the stream of its own request, and return the result."""
    kinds = {
        "elicitation/create": (types.ElicitRequest, types.ElicitResult),
        "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    }
    kind, result = kinds[request["method"]]
    asked = kind.model_validate(request)
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = await ctx.session.send_request(asked, result, metadata=metadata)
    told: Json = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return told


# ---------------------------------------------------------------------- tools with side effects
async def log(ctx: Any, _params: Json) -> Json:
    for doing in ("started", "processing data", "completed"):
        await say(ctx, f"Tool {doing}")
        await anyio.sleep(STEP_S)
    return {"content": [text("Logged.")]}


async def say(ctx: Any, words: str) -> None:
    """Write to the log; the library knows whether the agent wants it."""
    await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)


async def progress(ctx: Any, _params: Json) -> Json:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(STEP_S)
    return {"content": [text("Done.")]}


async def sampling(ctx: Any, params: Json) -> Json:
    answer = await ask(ctx, sample(params["arguments"]["prompt"]))
    return {"content": [text(f"LLM response: {answer['content']['text']}")]}


async def elicitation(ctx: Any, params: Json) -> Json:
    wanted = dict.fromkeys(("username", "email"), said.STRING)
    return await asking(ctx, elicit(params["arguments"]["message"], **wanted))


async def asking(ctx: Any, request: Json) -> Json:
    return {"content": [text(f"answered {json.dumps(await ask(ctx, request))}")]}


async def fail(_ctx: Any, _params: Json) -> Json:
    words = "This tool intentionally returns an error for testing"
    return {"isError": True, "content": [text(words)]}


async def missing(_ctx: Any, params: Json) -> Json:
    if "sampling" not in params.get("_meta", {}).get(SPEC + "clientCapabilities", {}):
        needed: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(-32021, "sampling is needed", needed)
    return {"content": [text("It samples.")]}


async def reconnect(ctx: Any, _params: Json) -> Json:
    """End the stream before the answer: a client that wants it reconnects."""
    await say(ctx, "Before")
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await anyio.sleep(2 * RETRY_MS / 1000)
    await say(ctx, "After")
    return {"content": [text("Reconnected.")]}


async def change_tools(_ctx: Any, _params: Json) -> Json:
    await BUS.publish(ToolsListChanged())
    return {"content": [text("Changed.")]}


async def change_prompts(_ctx: Any, _params: Json) -> Json:
    await BUS.publish(PromptsListChanged())
    return {"content": [text("Changed.")]}


async def quietly(_ctx: Any, _params: Json) -> Json:
    return {"content": [text("Called.")]}


DOES: dict[str, Callable[[Any, Json], Awaitable[Json]]] = {
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_tool_with_progress": progress,
    "test_sampling": sampling,
    "test_elicitation": elicitation,
    "test_error_handling": fail,
    "test_missing_capability": missing,
    "test_reconnection": reconnect,
    "test_trigger_tool_change": change_tools,
    "test_trigger_prompt_change": change_prompts,
    **dict.fromkeys(MORE_TOOLS, quietly),
}


# ------------------------------------------------------------------------------- requests
async def call(ctx: Any, _: Any) -> Json:
    params = params_of(ctx)
    name = params["name"]
    if name in CONTENT:
        return {"content": CONTENT[name]}
    if name in WANTS:
        return wanted(name, params) or {
            "content": [text(f"state-ok {json.dumps(params['inputResponses'])}")]
        }
    if name in ASKS:
        return await asking(ctx, ASKS[name])
    if name not in DOES:
        raise MCPError(-32602, f"Unknown tool: {name}")
    return await DOES[name](ctx, params)


def wanted(name: str, params: Json) -> Json | None:
    try:
        capabilities = params.get("_meta", {}).get(SPEC + "clientCapabilities", {})
        return required(name, params, capabilities)
    except RefusedError as refused:
        raise MCPError(**refused.error) from None


async def prompt(ctx: Any, _: Any) -> Json:
    params = params_of(ctx)
    name = params["name"]
    if name in WANTS and (asks := wanted(name, params)):
        return asks
    content = said.prompt(name, params.get("arguments", {}))
    if not content:
        raise MCPError(-32602, f"Unknown prompt: {name}")
    return {"messages": [{"role": "user", "content": each} for each in content]}


async def resource(ctx: Any, _: Any) -> Json:
    try:
        return {"contents": [read(params_of(ctx)["uri"])]}
    except RefusedError as refused:
        raise MCPError(**refused.error) from None


def always(answer: Json) -> Handle:
    """Return the results that are the same each time."""

    async def handle(_ctx: Any, _: Any) -> Json:
        return answer

    return handle


def in_era(handler: Handle, *, is_kept: bool = False) -> Handle:
    """Return the same with the fields that the later era requires."""

    async def handle(ctx: Any, params: Any) -> Json:
        result = await handler(ctx, params)
        if ctx.protocol_version != said.MODERN:
            return result
        held = {"ttlMs": 0, "cacheScope": "private"} if is_kept else {}
        return {"resultType": "complete", **held, **result}

    return handle


async def nothing(_ctx: Any, _: Any) -> Json:
    return {}


async def complete(_ctx: Any, _: Any) -> Json:
    return IN_BOTH["completion/complete"]


def make_server(changes: Json) -> Server:
    """Return the server, of both eras."""
    tools = [*TOOLS["tools/list"]["tools"], said.tool("test_reconnection")]
    tools += [{"name": name, **tool} for name, tool in MORE_TOOLS.items()]
    tools = [{**tool, **changes.get(tool["name"], {})} for tool in tools]
    templates = always(IN_BOTH["resources/templates/list"])
    return Server(
        INFO["name"],
        version=INFO["version"],
        on_list_tools=in_era(always({"tools": tools}), is_kept=True),
        on_call_tool=in_era(call),
        on_list_resources=in_era(always(IN_BOTH["resources/list"]), is_kept=True),
        on_list_resource_templates=in_era(templates, is_kept=True),
        on_read_resource=in_era(resource, is_kept=True),
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(BUS),
        on_list_prompts=in_era(always(IN_BOTH["prompts/list"]), is_kept=True),
        on_get_prompt=in_era(prompt),
        on_completion=in_era(complete),
        on_set_logging_level=nothing,
    )


def guarded(app: Asgi, token: str) -> Asgi:
    """Return an application that refuses requests without the token."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        given = headers.get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            asks = [(b"www-authenticate", b'Bearer realm="conformance"')]
            await send({"type": "http.response.start", "status": 401, "headers": asks})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return answer


def main(arguments: Sequence[str]) -> None:
    port, name, token, changes = arguments
    hosts = [*(f"{host}:*" for host in LOCAL), name]
    origins = [*(f"http://{host}:*" for host in LOCAL), f"https://{name}"]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    app = make_server(json.loads(changes)).streamable_http_app(
        event_store=Events(), retry_interval=RETRY_MS, transport_security=security
    )
    app = guarded(app, token) if token else app
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1:])

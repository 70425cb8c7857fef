"""Stand-in language model without an internet: it makes each of its given tool calls once.

It implements the APIs of Anthropic, Gemini and OpenAI, as far as agents use them. The first request
that has the server's tools is answered with all the calls at once, any other with a text.
"""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]


def anthropic(calls: list[Call]) -> Iterator[Json]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "none"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    blocks = [
        ({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
         {"type": "input_json_delta", "partial_json": json.dumps(given)})
        for number, (name, given) in enumerate(calls)
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."})]  # fmt: skip
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


def gemini(calls: list[Call]) -> Iterator[Json]:
    parts = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    content: Json = {"role": "model", "parts": parts or [{"text": "Done."}]}
    yield {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}


def openai(calls: list[Call]) -> Iterator[Json]:
    tools = [
        {"index": number, "id": f"call_{number}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(given)}}
        for number, (name, given) in enumerate(calls)
    ]  # fmt: skip
    delta = {"tool_calls": tools} if tools else {"content": "Done."}
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "none"}
    yield {**head, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]}
    end = "tool_calls" if tools else "stop"
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]}


# By a part of the path: the API's format, and the prefix of a tool's name.
APIS: dict[str, tuple[Callable[[list[Call]], Iterator[Json]], str]] = {
    "/v1/messages": (anthropic, "mcp__{}__"),
    "GenerateContent": (gemini, "mcp_{}_"),
    "/chat/completions": (openai, "{}_"),
}
CALLED = ('"tool_result"', '"functionResponse"', '"role":"tool"')


class Handler(BaseHTTPRequestHandler):
    """One request of an agent."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        found = [api for part, api in APIS.items() if part in self.path]
        if not found:
            self.send_error(404)
            return
        model = self.server
        assert isinstance(model, Model)
        says, form = found[0]
        prefix = form.format(model.mcp)
        is_first = prefix in asked and not any(sign in asked for sign in CALLED)
        calls = [(prefix + tool, given) for tool, given in model.calls] if is_first else []
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in says(calls):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())


class Model(ThreadingHTTPServer):
    """Language model of one agent: it calls the tools of one MCP server."""

    def __init__(self, mcp: str, calls: list[Call]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.mcp = mcp
        self.calls = calls

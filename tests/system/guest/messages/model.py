"""Stand-in language model without an internet: it makes each of its given tool calls once.

It implements the APIs of Anthropic, Gemini and OpenAI, as far as agents use them. The first request
that has the server's tools is answered with all calls of the first round at once, the one that has
their results with those of the next round, and any other with a text.
"""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]


def anthropic(calls: list[Call], first: int) -> Iterator[Json]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "none"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    blocks = [
        ({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
         {"type": "input_json_delta", "partial_json": json.dumps(given)})
        for number, (name, given) in enumerate(calls, first)
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."})]  # fmt: skip
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


def gemini(calls: list[Call], _first: int) -> Iterator[Json]:
    parts = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    content: Json = {"role": "model", "parts": parts or [{"text": "Done."}]}
    yield {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}


def openai(calls: list[Call], first: int) -> Iterator[Json]:
    tools = [
        {"index": number, "id": f"call_{first + number}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(given)}}
        for number, (name, given) in enumerate(calls)
    ]  # fmt: skip
    delta = {"tool_calls": tools} if tools else {"content": "Done."}
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "none"}
    yield {**head, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]}
    end = "tool_calls" if tools else "stop"
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]}


# By a part of the path: the API's format, of calls with ids from a number; the prefix of a tool.
APIS: dict[str, tuple[Callable[[list[Call], int], Iterator[Json]], str]] = {
    "/v1/messages": (anthropic, "mcp__{}__"),
    "GenerateContent": (gemini, "mcp_{}_"),
    "/chat/completions": (openai, "{}_"),
}
CALLED = ('"tool_result"', '"functionResponse"', '"role":"tool"')


def results_in(asked: str) -> int:
    """Return how many results of calls a request has."""
    return max(asked.count(sign) for sign in CALLED)


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
        model.asked.append(asked)
        says, form = found[0]
        prefix = form.format(model.mcp)
        results = results_in(asked)
        wanted = model.calls_after(results) if prefix in asked else []
        calls = [(prefix + tool, given) for tool, given in wanted]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in says(calls, results):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())


class Model(ThreadingHTTPServer):
    """Language model of one agent: it calls the tools of one MCP server."""

    def __init__(self, mcp: str, *rounds: list[Call]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.mcp = mcp
        self.rounds = rounds
        self.asked: list[str] = []  # the agent's requests

    def calls_after(self, results: int) -> list[Call]:
        """Return the round of calls that follows so many results; none after the last."""
        for calls in self.rounds:
            if results == 0:
                return calls
            results -= len(calls)
        return []

"""Stand-in for a model: HTTP endpoint at loopback of three vendors' APIs. Runs inside the machine.

`python3 -m tests.system.guest.model_api PORT RECORD CALLS`: CALLS is a JSON list of pairs of a
tool and its arguments. In each conversation the model calls these tools one after the other, and
ends with a text that repeats their results. A request without the tool, as for a title of the
conversation, is answered with a short text. RECORD gets each request as a line of JSON.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Event = tuple[str, Json]
ToolName = tuple[str | None, str]  # namespace, and name
# Calls by which a model waits for servers that an agent still starts, by tools that it then has.
SEARCH = "search"
SEARCH_ARGUMENTS: dict[str, Json] = {
    "ToolSearch": {
        "query": "",
        "max_results": 5,
    },  # which also has Claude Code show the tools to the model
    "list_mcp_resources": {},  # of Codex
}
SEARCHES, PAUSE_S = 400, 0.05  # before a model gives up; before each: no event tells it
SIDE_ANSWER = "A stand-in answers."
FINAL = "The tool said: "
MODEL = "stand-in"


@dataclass(frozen=True)
class Call:
    """Call of a tool by its name in the agent's request."""

    id: str
    name: str
    arguments: Json
    namespace: str | None = None


@dataclass
class Turn:
    """Request of an agent, as far as it concerns the model; and the answer."""

    api: str
    tools: list[ToolName]
    results: list[str]
    searches: int = 0
    answer: Json = field(default_factory=dict)


# ---------------------------------------------------------------------------- decision
def decide(turn: Turn, calls: list[tuple[str, Json]]) -> Call | str:
    """Return the next call of the conversation, or its last text."""
    done = len(turn.results)
    if done >= len(calls):
        return FINAL + " | ".join(turn.results)
    tool, arguments = calls[done]
    for namespace, name in turn.tools:
        if name == tool or name.endswith(f"_{tool}"):  # as in mcp__SERVER__TOOL, and SERVER_TOOL
            return Call(f"call_{done}", name, arguments, namespace)
    for _, name in turn.tools:
        if name in SEARCH_ARGUMENTS and turn.searches < SEARCHES:
            given = SEARCH_ARGUMENTS[name]
            given = given | {"query": tool} if "query" in given else given
            return Call(f"{SEARCH}_{turn.searches}", name, given)
    return SIDE_ANSWER


def text_of(content: Any) -> str:
    """Return the text of a message's content, in any of the three forms."""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content or [])


# ---------------------------------------------------------------------------- Anthropic Messages
def read_messages(body: Json) -> Turn:
    """Read a request of Anthropic's Messages API."""
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    told = [part for part in parts if part["type"] == "tool_result"]
    found = [part for part in told if part["tool_use_id"].startswith(SEARCH)]
    results = [text_of(part.get("content")) for part in told if part not in found]
    tools: list[ToolName] = [(None, tool["name"]) for tool in body.get("tools") or []]
    return Turn("messages", tools, results, searches=len(found))


def _anthropic_block(answer: Call | str) -> tuple[Json, Json, Json]:
    """Return a content block when it begins, its one delta, and when it is whole."""
    if isinstance(answer, str):
        whole: Json = {"type": "text", "text": answer}
        return whole | {"text": ""}, {"type": "text_delta", "text": answer}, whole
    whole = {"type": "tool_use", "id": answer.id, "name": answer.name}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    return whole | {"input": {}}, delta, whole | {"input": answer.arguments}


def messages_answer(answer: Call | str) -> Json:
    """Return the whole answer of the Messages API."""
    *_, whole = _anthropic_block(answer)
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [whole],
        "stop_reason": "end_turn" if isinstance(answer, str) else "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def messages_events(answer: Call | str) -> Iterator[Event]:
    """Yield the events of an answer of the Messages API."""
    whole = messages_answer(answer)
    begin, delta, _ = _anthropic_block(answer)
    yield "message_start", {"message": whole | {"content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": begin}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    ends = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ends, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


# ---------------------------------------------------------------------------- OpenAI Responses
def read_responses(body: Json) -> Turn:
    """Read a request of OpenAI's Responses API."""
    tools: list[ToolName] = []
    for tool in body.get("tools") or []:
        if tool["type"] == "namespace":
            tools += [(tool["name"], inner["name"]) for inner in tool["tools"]]
        elif "name" in tool:
            tools.append((None, tool["name"]))
    told = [item for item in body["input"] if item["type"] == "function_call_output"]
    found = [item for item in told if item["call_id"].startswith(SEARCH)]
    results = [text_of(item["output"]) for item in told if item not in found]
    return Turn("responses", tools, results, searches=len(found))


def _item(answer: Call | str) -> Json:
    if isinstance(answer, str):
        content = [{"type": "output_text", "text": answer, "annotations": []}]
        return {"type": "message", "id": "m", "role": "assistant", "content": content}
    call = {"type": "function_call", "id": f"fc_{answer.id}", "call_id": answer.id}
    if answer.namespace:
        call["namespace"] = answer.namespace
    return {**call, "name": answer.name, "arguments": json.dumps(answer.arguments)}


def responses_answer(answer: Call | str) -> Json:
    """Return the whole answer of the Responses API."""
    none = {"cached_tokens": 0, "reasoning_tokens": 0}
    usage: Json = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": none, "output_tokens_details": none}
    return {
        "id": "resp_1", "object": "response", "model": MODEL, "status": "completed",
        "output": [_item(answer)], "usage": usage,
    }  # fmt: skip


def responses_events(answer: Call | str) -> Iterator[Event]:
    """Yield the events of an answer of the Responses API."""
    whole, item = responses_answer(answer), _item(answer)
    begun = whole | {"output": [], "usage": None, "status": "in_progress"}
    yield "response.created", {"response": begun}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    if isinstance(answer, str):
        where = {"item_id": "m", "output_index": 0, "content_index": 0}
        yield "response.output_text.delta", {**where, "delta": answer}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": whole}


# ---------------------------------------------------------------------------- OpenAI chat
def read_chat(body: Json) -> Turn:
    """Read a request of OpenAI's chat completions API."""
    tools: list[ToolName] = [(None, tool["function"]["name"]) for tool in body.get("tools") or []]
    results = [text_of(one["content"]) for one in body["messages"] if one["role"] == "tool"]
    return Turn("chat", tools, results)


def _message(answer: Call | str) -> Json:
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    function = {"name": answer.name, "arguments": json.dumps(answer.arguments)}
    call = {"index": 0, "id": answer.id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _chat(kind: str, choice: Json) -> Json:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"id": "chat_1", "object": kind, "created": 1, "model": MODEL, "usage": usage}
    return {**whole, "choices": [{"index": 0, **choice}]}


def chat_answer(answer: Call | str) -> Json:
    """Return the whole answer of the chat completions API."""
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    return _chat("chat.completion", {"message": _message(answer), "finish_reason": reason})


def chat_events(answer: Call | str) -> Iterator[Event]:
    """Yield the chunks of an answer of the chat completions API, which have no names."""
    kind, reason = "chat.completion.chunk", "stop" if isinstance(answer, str) else "tool_calls"
    yield "", _chat(kind, {"delta": _message(answer), "finish_reason": None})
    yield "", _chat(kind, {"delta": {}, "finish_reason": reason})


# ---------------------------------------------------------------------------- HTTP
@dataclass(frozen=True)
class Api:
    """One vendor's API: how a request is read, and both forms of an answer."""

    read: Callable[[Json], Turn]
    whole: Callable[[Call | str], Json]
    events: Callable[[Call | str], Iterator[Event]]


APIS = {
    "/v1/messages": Api(read_messages, messages_answer, messages_events),
    "/v1/responses": Api(read_responses, responses_answer, responses_events),
    "/v1/chat/completions": Api(read_chat, chat_answer, chat_events),
}


class Handler(BaseHTTPRequestHandler):
    """One connection of an agent."""

    protocol_version = "HTTP/1.1"
    calls: list[tuple[str, Json]]
    record: Path

    def do_POST(self) -> None:
        """Answer a request to a model."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        api = APIS.get(path)
        if api is None:
            self._send("application/json", json.dumps({"input_tokens": 1}))  # count_tokens
            return
        turn = api.read(body)
        answer = decide(turn, self.calls)
        if isinstance(answer, Call) and answer.id.startswith(SEARCH):
            time.sleep(PAUSE_S)
        turn.answer = {"text": answer} if isinstance(answer, str) else asdict(answer)
        with self.record.open("a") as lines:
            lines.write(json.dumps(asdict(turn)) + "\n")
        if body.get("stream"):
            self._send("text/event-stream", "".join(_sse(api.events(answer))))
        else:
            self._send("application/json", json.dumps(api.whole(answer)))

    def do_GET(self) -> None:
        """Answer any other request: a list of models, or a sign of life."""
        self._send("application/json", json.dumps({"object": "list", "data": [], "models": []}))

    def do_HEAD(self) -> None:
        """Answer a sign of life."""
        self.do_GET()

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing: each request is in the record."""


def _sse(events: Iterator[Event]) -> Iterator[str]:
    for number, (name, data) in enumerate(events):
        if name:
            fields = {"type": name, "sequence_number": number, **data}
            yield f"event: {name}\ndata: {json.dumps(fields)}\n\n"
        else:
            yield f"data: {json.dumps(data)}\n\n"
    if not name:
        yield "data: [DONE]\n\n"


def serve(port: int, record: str, calls: list[tuple[str, Json]]) -> None:
    """Serve until the process is killed; systemd is told when it listens: sd_notify(3)."""
    Handler.record, Handler.calls = Path(record), calls
    Handler.record.touch()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if "NOTIFY_SOCKET" in os.environ:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))

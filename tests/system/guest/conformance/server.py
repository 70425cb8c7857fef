"""Server with every feature that the official suite requires. Runs in a machine, or on any Python.

Both eras, on Python's library only: it is started for each of the suite's sessions, and a library
that takes a second to load would take most of the time. The suite itself checks its answers.
"""

import hashlib
import hmac
import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.system.guest.conformance import said
from tests.system.guest.conformance.said import (
    ANSWERED,
    ASKS,
    CACHED,
    CAPABILITY,
    CONTENT,
    IN_HANDSHAKE,
    IN_MODERN,
    INFO,
    MODERN,
    RESOURCES,
    SPEC,
    STATELESS,
    STRING,
    TEMPLATE,
    WANTS,
    Json,
    elicit,
    sample,
    text,
)  # fmt: skip

KEY = b"of this server alone"


class RefusedError(Exception):
    """Error that is sent as the response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def state_of(name: str, done: int) -> str:
    signature = hmac.new(KEY, f"{name} {done}".encode(), hashlib.sha256).hexdigest()
    return f"{done}.{signature}"


def required(name: str, params: Json, capabilities: Json) -> Json | None:
    """Return the input requests that are still open; None once all are answered."""
    rounds, done = WANTS[name], 0
    answers = params.get("inputResponses")
    answers = answers if isinstance(answers, dict) else {}
    is_stateless = name.rpartition("result_")[2] in STATELESS
    if (given := params.get("requestState")) is not None:
        states = [state_of(name, number) for number in range(len(rounds))]
        if given not in states:
            raise RefusedError(-32602, "requestState is not what it was")
        done = states.index(given)
    wanted = rounds[done]
    if name.endswith("capabilities"):
        wanted = {k: v for k, v in wanted.items() if CAPABILITY[v["method"]] in capabilities}
    has_state = given is not None or is_stateless or name == "test_streaming_elicitation"
    if has_state and all(_answers(answers.get(key), ask) for key, ask in wanted.items()):
        done += 1
        if done == len(rounds):
            return None
        wanted = rounds[done]
    state = {} if is_stateless else {"requestState": state_of(name, done)}
    return {"resultType": "input_required", "inputRequests": wanted, **state}


def _answers(answer: Any, ask: Json) -> bool:
    return isinstance(answer, dict) and ANSWERED[ask["method"]] in answer


class Server:
    """Server of one connection."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._asked: dict[str, queue.SimpleQueue[Json]] = {}
        self._listening: dict[int | str, Json] = {}
        self._has_handshake = False

    def send(self, **members: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **members})
        with self._writing:
            print(line, flush=True)

    def notify(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, params: Json) -> Json:
        """Send a request to the agent, and return its result."""
        name = f"ask-{len(self._asked)}"
        self._asked[name] = queue.SimpleQueue()
        self.send(id=name, method=method, params=params)
        answer = self._asked[name].get()
        if "error" in answer:
            raise RefusedError(-32603, f"it was answered {answer['error']}")
        result: Json = answer["result"]
        return result

    def hear(self, message: Json) -> None:
        """Handle one message; a slow request runs beside the others."""
        if "method" not in message:
            self._asked[message["id"]].put(message)
        elif "id" in message:
            threading.Thread(target=self.answer, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            self._listening.pop(message["params"]["requestId"], None)

    def answer(self, request: Json) -> None:
        params = request.get("params", {})
        try:
            meta = self._envelope(request["method"], params)
            result = self._result(request, params, meta)
        except RefusedError as refused:
            self.send(id=request["id"], error=refused.error)
            return
        if result is not None:
            self.send(id=request["id"], result=self._in_era(request["method"], result))

    def _envelope(self, method: str, params: Json) -> Json:
        """Return `_meta`, once it is clear that this is the era for it."""
        meta: Json = params.get("_meta", {})
        if method == "initialize" and SPEC + "protocolVersion" not in meta:
            self._has_handshake = True
        if self._has_handshake:
            return meta
        for key in ("protocolVersion", "clientCapabilities"):
            if SPEC + key not in meta:
                raise RefusedError(-32602, f"_meta has no {key}")
        version = meta[SPEC + "protocolVersion"]
        if version != MODERN:
            supported = {"supported": [MODERN], "requested": version}
            raise RefusedError(-32022, "no such revision", supported)
        return meta

    def _in_era(self, method: str, result: Json) -> Json:
        if self._has_handshake:
            return result
        result = {"resultType": "complete", "_meta": {SPEC + "serverInfo": INFO}, **result}
        is_read = method == "resources/read" and result["resultType"] == "complete"
        return (
            {**result, "ttlMs": 0, "cacheScope": "private"}
            if method in CACHED or is_read
            else result
        )

    def _result(self, request: Json, params: Json, meta: Json) -> Json | None:
        method = request["method"]
        simple: dict[str, Json] = TOOLS | (IN_HANDSHAKE if self._has_handshake else IN_MODERN)
        if method in simple:
            return simple[method]
        match method:
            case "subscriptions/listen" if not self._has_handshake:
                self._listen(request["id"], params["notifications"])
                return None  # until it ends
            case "tools/call":
                return self._call(params["name"], params, meta)
            case "prompts/get":
                return self._prompt(params["name"], params, meta)
            case "resources/read":
                return {"contents": [read(params["uri"])]}
            case _:
                raise RefusedError(-32601, "Method not found")

    def _listen(self, request_id: int | str, wanted: Json) -> None:
        self._listening[request_id] = wanted
        meta = {SPEC + "subscriptionId": request_id}
        self.notify("notifications/subscriptions/acknowledged", notifications=wanted, _meta=meta)

    def _call(self, name: str, params: Json, meta: Json) -> Json:
        if name in CONTENT:
            return {"content": CONTENT[name]}
        if name in WANTS:
            asks = required(name, params, meta.get(SPEC + "clientCapabilities", {}))
            return asks or {"content": [text(f"state-ok {json.dumps(params['inputResponses'])}")]}
        if name in ASKS:
            return self._asking(ASKS[name])
        if name not in DOES:
            raise RefusedError(-32602, f"Unknown tool: {name}")
        return DOES[name](self, params.get("arguments", {}), meta)

    def _asking(self, ask: Json) -> Json:
        return {"content": [text(f"answered {json.dumps(self.ask(**ask))}")]}

    def _prompt(self, name: str, params: Json, meta: Json) -> Json:
        if name in WANTS and (asks := required(name, params, meta)):
            return asks
        content = said.prompt(name, params.get("arguments", {}))
        if not content:
            raise RefusedError(-32602, f"Unknown prompt: {name}")
        return {"messages": [{"role": "user", "content": each} for each in content]}

    # ------------------------------------------------------------------ tools with side effects
    def log(self, _arguments: Json, meta: Json) -> Json:
        """Write to the log, three times, if the agent wants it."""
        for doing in ("started", "processing data", "completed"):
            if self._has_handshake or SPEC + "logLevel" in meta:
                self.notify("notifications/message", level="info", data=f"Tool {doing}")
            time.sleep(0.05)  # as in the suite's text
        return {"content": [text("Logged.")]}

    def progress(self, _arguments: Json, meta: Json) -> Json:
        """Report progress."""
        for done in (0, 50, 100):
            if (token := meta.get("progressToken")) is not None:
                self.notify("notifications/progress", progressToken=token, progress=done, total=100)
            time.sleep(0.05)  # as in the suite's text
        return {"content": [text("Done.")]}

    def sampling(self, arguments: Json, _meta: Json) -> Json:
        """Request a message of the agent's model."""
        answer = self.ask(**sample(arguments["prompt"]))
        return {"content": [text(f"LLM response: {answer['content']['text']}")]}

    def elicitation(self, arguments: Json, _meta: Json) -> Json:
        """Request a message of the agent's user."""
        return self._asking(elicit(arguments["message"], username=STRING, email=STRING))

    def error(self, _arguments: Json, _meta: Json) -> Json:
        """Fail."""
        words = "This tool intentionally returns an error for testing"
        return {"isError": True, "content": [text(words)]}

    def missing(self, _arguments: Json, meta: Json) -> Json:
        """Do nothing without an agent that samples."""
        if "sampling" not in meta.get(SPEC + "clientCapabilities", {}):
            needed: Json = {"requiredCapabilities": {"sampling": {}}}
            raise RefusedError(-32021, "sampling is needed", needed)
        return {"content": [text("It samples.")]}

    def change(self, what: str) -> Json:
        """Notify all subscribers that a list changed."""
        for request_id, notifications in list(self._listening.items()):
            if notifications.get(f"{what}ListChanged"):
                method = f"notifications/{what}/list_changed"
                self.notify(method, _meta={SPEC + "subscriptionId": request_id})
        return {"content": [text("Changed.")]}


DOES: dict[str, Callable[[Server, Json, Json], Json]] = {
    "test_tool_with_logging": Server.log,
    "test_logging_tool": Server.log,
    "test_tool_with_progress": Server.progress,
    "test_sampling": Server.sampling,
    "test_elicitation": Server.elicitation,
    "test_error_handling": Server.error,
    "test_missing_capability": Server.missing,
    "test_trigger_tool_change": lambda server, *_: server.change("tools"),
    "test_trigger_prompt_change": lambda server, *_: server.change("prompts"),
}


def read(uri: str) -> Json:
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    before, _, after = TEMPLATE.partition("{id}")
    if not uri.startswith(before) or not uri.endswith(after):
        raise RefusedError(-32602, "Resource not found", {"uri": uri})
    number = uri.removeprefix(before).removesuffix(after)
    data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}


WITH_TOOLS = (*CONTENT, *ASKS, *DOES, *(name for name in WANTS if not name.endswith("prompt")))
TOOLS = {"tools/list": {"tools": [said.tool(name) for name in WITH_TOOLS]}}


def main() -> None:
    server = Server()
    for line in sys.stdin:
        server.hear(json.loads(line))


if __name__ == "__main__":
    main()

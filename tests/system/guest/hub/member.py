"""Member of a hub: every feature of both eras, and faults on demand. Runs inside, as the server.

Arguments: its name; `--era legacy`, `modern` or `both`; `--start dead`, or the seconds that its
start takes; `--tools N` more tools; `--page N` entries in a page of a list; `--definitions FILE`
for `written_lists.py`. A fault begins when its tool `fault` is called.
"""

import argparse
import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.system.guest.hub import member_lists, written_lists
from tests.system.guest.hub.member_lists import SPEC, Json, MemberLists, text

HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26")
WAIT_S = 3600.0
FLOOD_LINE = "x" * 1_000_000
GARBAGE = (
    b"not a message",
    b'{"jsonrpc":"2.0"',
    b"\xff\xfe\x00",
    b'{"jsonrpc":"2.0","id":1}',
    b"[]",
)
STOLEN_IDS = [*range(1, 513), *(f"mcpwrap-hub/{n}" for n in range(1, 65))]
ASKS: dict[str, Json] = {
    "sampling": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": text("Say something")}],
            "maxTokens": 9,
        },
    },
    "elicitation": {
        "method": "elicitation/create",
        "params": {
            "message": "Your name?",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
    },
    "roots": {"method": "roots/list", "params": {}},
}


class RefusedError(Exception):
    """Error that is sent as the response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Member:
    """Server of one session."""

    def __init__(self, era: str, lists: MemberLists) -> None:
        self.name, self.era = lists.name, era
        self.lists = lists
        self.fault = ""
        self.cancelled = 0
        self.client = ""
        self._writing = threading.Lock()
        self._answer_by_id: dict[str, tuple[threading.Event, list[Json]]] = {}
        self._waiting: dict[int | str, threading.Event] = {}
        self._subscribed: set[str] = set()
        self._listening: dict[int | str, Json] = {}
        self._tasks: dict[str, Json] = {}
        self._has_handshake = False

    # ------------------------------------------------------------------ messages out
    def write(self, line: bytes) -> None:
        with self._writing, suppress(BrokenPipeError):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def send(self, **members: Any) -> None:
        message = {"jsonrpc": "2.0", **members}
        self.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())

    def notify(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, request: Json) -> Json:
        """Send a request to the agent; return the response."""
        number = f"ask-{len(self._answer_by_id)}"  # the same at each member
        event, answers = self._answer_by_id[number] = (threading.Event(), [])
        self.send(id=number, **request)
        event.wait(WAIT_S)
        return answers[0]

    def tell_change(self, kind: str) -> None:
        method = f"notifications/{kind}/list_changed"
        if self._has_handshake:
            self.notify(method)
        for number, wanted in list(self._listening.items()):
            if wanted.get(f"{kind}ListChanged"):
                self.notify(method, _meta={SPEC + "subscriptionId": number})

    def tell_update(self, uri: str) -> None:
        if uri in self._subscribed:
            self.notify("notifications/resources/updated", uri=uri)
        for number, wanted in list(self._listening.items()):
            if uri in wanted.get("resourceSubscriptions", []):
                meta = {SPEC + "subscriptionId": number}
                self.notify("notifications/resources/updated", uri=uri, _meta=meta)

    # ------------------------------------------------------------------ messages in
    def take(self, message: Json) -> None:
        """Handle one message; each request in a thread of its own."""
        if self.fault == "hang":
            return
        if "method" not in message:
            event, answers = self._answer_by_id[message["id"]]
            answers.append(message)
            event.set()
        elif "id" in message:
            threading.Thread(target=self.answer, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            number = message["params"]["requestId"]
            self._listening.pop(number, None)
            if number in self._waiting:
                self.cancelled += 1
                self._waiting.pop(number).set()

    def answer(self, request: Json) -> None:
        method, params = request["method"], request.get("params") or {}
        try:
            self._check_era(method, params)
            result = self._result(request, method, params)
        except RefusedError as refused:
            self.send(id=request["id"], error=refused.error)
            return
        if result is not None and self.fault != "hang":
            self._misbehave()
            self.send(id=request["id"], result=self._in_era(method, result))

    def _misbehave(self) -> None:
        if self.fault == "garbage":
            for line in GARBAGE:
                self.write(line)
        elif self.fault == "steal":
            for number in STOLEN_IDS:
                self.send(id=number, result={"content": [text(f"stolen by {self.name}")]})

    def _in_era(self, method: str, result: Json) -> Json:
        if self._has_handshake:
            return result
        is_cached = method.endswith("/list") or method in {"resources/read", "server/discover"}
        cache = {"ttlMs": 0, "cacheScope": "private"} if is_cached else {}
        return {"resultType": "complete", **result, **cache}

    def _check_era(self, method: str, params: Json) -> None:
        meta = params.get("_meta", {})
        is_modern = SPEC + "protocolVersion" in meta
        info = params.get("clientInfo") or meta.get(SPEC + "clientInfo") or {}
        self.client = info.get("name", self.client)
        if is_modern and self.era == "legacy":
            raise RefusedError(-32601, f"Method not found: {method}")
        if not is_modern and not self._has_handshake:
            if method != "initialize" or self.era == "modern":
                raise RefusedError(-32602, "_meta has no protocolVersion")
            self._has_handshake = True

    def _result(self, request: Json, method: str, params: Json) -> Json | None:
        if method in member_lists.LISTS:
            return self.lists.page(method, params.get("cursor"))
        if method.startswith("tasks/"):
            return self._of_task(method, params)
        if method not in METHODS:
            raise RefusedError(-32601, f"Method not found: {method}")
        return METHODS[method](self, request, params)

    def shake_hands(self, _request: Json, params: Json) -> Json:
        wanted = params["protocolVersion"]
        return self.lists.handshake(wanted if wanted in HANDSHAKES else HANDSHAKES[0])

    def subscribe(self, _request: Json, params: Json) -> Json:
        self._subscribed.add(params["uri"])
        return {}

    def unsubscribe(self, _request: Json, params: Json) -> Json:
        self._subscribed.discard(params["uri"])
        return {}

    def listen(self, request: Json, params: Json) -> None:
        """Subscribe as since 2026-07-28: without a response until the agent cancels it."""
        number, wanted = request["id"], params["notifications"]
        self._listening[number] = wanted
        meta = {SPEC + "subscriptionId": number}
        acknowledged = "notifications/subscriptions/acknowledged"
        self.notify(acknowledged, notifications=wanted, _meta=meta)

    def _of_task(self, method: str, params: Json) -> Json:
        if method == "tasks/list":
            return {"tasks": list(self._tasks.values())}
        task = self._tasks.get(params["taskId"])
        if task is None:
            raise RefusedError(-32602, "no such task")
        if method == "tasks/result":
            return {"content": [text(f"done by {self.name}")]}
        if method == "tasks/cancel":
            task["status"] = "cancelled"
        return task

    # ------------------------------------------------------------------ tools
    def call(self, request: Json, params: Json) -> Json | None:
        name, given = params["name"], params.get("arguments") or {}
        if name not in self.lists.tool_names():
            raise RefusedError(-32602, f"Unknown tool: {name}")
        if "task" in params:
            now = "2026-11-01T00:00:00Z"
            number = f"{self.name}-{len(self._tasks)}"
            task: Json = {"taskId": number, "status": "working", "ttl": 60000}
            task |= {"createdAt": now, "lastUpdatedAt": now}
            self._tasks[number] = task
            return {"task": task}
        return TOOLS.get(name, Member.echo)(self, request, params, given)

    def echo(self, _request: Json, params: Json, given: Json) -> Json:
        """Return the arguments, and what the agent has put into `_meta`."""
        meta = params.get("_meta", {})
        own = {k: v for k, v in meta.items() if not k.startswith(SPEC) and k != "progressToken"}
        told = json.dumps(given, ensure_ascii=False, sort_keys=True)
        return {"content": [text(f"{self.name}: {told}")], "_meta": {"good.test/of": own}}

    def rich(self, *_: Any) -> Json:
        """Return a result with all kinds of content, which breaks its own outputSchema."""
        return self.lists.rich()

    def progress(self, _request: Json, params: Json, given: Json) -> Json:
        token = params.get("_meta", {}).get("progressToken")
        for done in range(given.get("steps", 3)):
            time.sleep(given.get("pause_s", 0))
            if token is not None:
                self.notify("notifications/progress", progressToken=token, progress=done, total=3)
        return {"content": [text("done")]}

    def log(self, *_: Any) -> Json:
        self.notify("notifications/message", level="warning", logger=self.name, data={"n": 1})
        return {"content": [text("logged")]}

    def wait(self, request: Json, *_: Any) -> Json | None:
        """Wait until the agent cancels the call."""
        event = self._waiting[request["id"]] = threading.Event()
        self.notify("notifications/message", level="error", logger=self.name, data="waiting")
        event.wait(WAIT_S)
        return None

    def waited(self, *_: Any) -> Json:
        return {"content": [text(str(self.cancelled))]}

    def question(self, _request: Json, params: Json, given: Json) -> Json:
        """Ask the agent for something, in the form of the era; return the response as text."""
        wanted = ASKS[given["what"]]
        if self._has_handshake:
            answer = self.ask(wanted)
            return {"content": [text(_sorted(answer.get("result", answer.get("error"))))]}
        if params.get("requestState") == f"of {self.name}":
            return {"content": [text(_sorted(params["inputResponses"]["one"]))]}
        asked: Json = {"inputRequests": {"one": wanted}, "requestState": f"of {self.name}"}
        return {"resultType": "input_required", **asked}

    def environment(self, *_: Any) -> Json:
        return {"content": [text(json.dumps(dict(os.environ)))]}

    def identity(self, *_: Any) -> Json:
        """Return the member's name, UID and process, and the name of its client."""
        own = {"name": self.name, "uid": os.getuid(), "pid": os.getpid(), "client": self.client}
        return {"content": [text(json.dumps(own))]}

    def change(self, _request: Json, _params: Json, given: Json) -> Json:
        """Change a list, or a resource, and notify the agent of it."""
        what = given["what"]
        if what == "resource":
            self.tell_update(self.lists.document)
        else:
            self.lists.add(what)
            self.tell_change(what)
        return {"content": [text("changed")]}

    def large(self, _request: Json, _params: Json, given: Json) -> Json:
        data = base64.b64encode(os.urandom(given["bytes"] * 3 // 4)).decode()
        return {"content": [text(data)]}

    def begin_fault(self, _request: Json, _params: Json, given: Json) -> Json:
        """Answer, and misbehave from now on."""
        kind = given["kind"]
        if kind == "die":
            os._exit(3)
        if kind == "flood":
            threading.Thread(target=self._flood, daemon=True).start()
        elif kind in member_lists.FAULTS:
            self.lists.begin_fault(kind, given.get("of", ""))
            self.tell_change("tools")
        else:
            self.fault = kind
        return {"content": [text(f"from now on: {kind}")]}

    def _flood(self) -> None:
        while True:
            self.notify("notifications/message", level="error", data=FLOOD_LINE)


def _sorted(answer: Any) -> str:
    """Return a client's answer: the order of its members is by era."""
    return json.dumps(answer, sort_keys=True)


TOOLS: dict[str, Callable[..., Json | None]] = {
    "rich": Member.rich,
    "progress": Member.progress,
    "log": Member.log,
    "wait": Member.wait,
    "waited": Member.waited,
    "ask": Member.question,
    "environment": Member.environment,
    "identity": Member.identity,
    "change": Member.change,
    "large": Member.large,
    "fault": Member.begin_fault,
}


METHODS: dict[str, Callable[[Member, Json, Json], Json | None]] = {
    "initialize": Member.shake_hands,
    "server/discover": lambda member, *_: member.lists.discovery(),
    "ping": lambda *_: {},
    "logging/setLevel": lambda *_: {},
    "tools/call": Member.call,
    "prompts/get": lambda member, _, given: member.lists.prompt(given),
    "completion/complete": lambda member, _, given: member.lists.completion(given),
    "resources/read": lambda member, _, given: member.lists.read(given["uri"]),
    "resources/subscribe": Member.subscribe,
    "resources/unsubscribe": Member.unsubscribe,
    "subscriptions/listen": Member.listen,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--era", choices=("legacy", "modern", "both"), default="both")
    parser.add_argument("--start", default="0")
    parser.add_argument("--tools", type=int, default=0)
    parser.add_argument("--page", type=int, default=member_lists.PAGE)
    parser.add_argument("--definitions")
    options = parser.parse_args()
    if options.start == "dead":
        sys.exit(f"{options.name}: cannot open its database")
    time.sleep(float(options.start))
    lists = MemberLists(options.name, options.tools, options.page)
    if options.definitions:
        lists = written_lists.WrittenLists(options.name, options.definitions, options.page)
    member = Member(options.era, lists)
    for line in sys.stdin.buffer:
        member.take(json.loads(line))


if __name__ == "__main__":
    main()

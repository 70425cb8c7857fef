"""Definitions of a hub's member: lists in pages, what they name, and lists that are wrong."""

import itertools
from typing import Any

Json = dict[str, Any]
MODERN = "2026-07-28"
SPEC = "io.modelcontextprotocol/"
PAGE = 5  # entries; so that each list of tools has several pages
FAULTS = ("rename", "shadow", "loop")  # of lists
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
SHARED, SHARED_TEMPLATE = "shared://doc", "shared://item/{n}"
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
TASKS: Json = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
ARGUMENTS: dict[str, Json] = {
    "ask": {"what": {"type": "string", "enum": ["sampling", "elicitation", "roots"]}},
    "change": {"what": {"type": "string"}},
    "fault": {"kind": {"type": "string"}, "of": {"type": "string"}},
    "large": {"bytes": {"type": "integer"}},
    "progress": {"steps": {"type": "integer"}, "pause_s": {"type": "number"}},
}
NAMES = (
    "echo", "rich", "progress", "log", "wait", "waited", "ask", "environment", "identity", "change",
    "large", "fault",
)  # fmt: skip
ICON = {"src": "data:image/svg+xml,%3Csvg/%3E", "mimeType": "image/svg+xml", "sizes": ["any"]}
# What a hub that looks into definitions would change or refuse.
RICH: Json = {
    "name": "rich",
    "title": "Größe \N{SNOWMAN}",
    "description": 'All kinds of content: "quotes", \\ and </script>.',
    "icons": [ICON],
    "annotations": {"readOnlyHint": True, "openWorldHint": False, "good.test/own": [1, None]},
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer", "minimum": -9007199254740993}},
    },
    "outputSchema": {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    },
    "execution": {"taskSupport": "optional"},
    "_meta": {"good.test/tool": {"1": 1.0, "big": 123456789012345678901234567890}},
}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


class MemberLists:
    """Lists of one member, which its tools can change."""

    def __init__(self, name: str, more_tools: int, page: int = PAGE) -> None:
        self.name, self._page = name, page
        self.document = f"member://{name}/doc"
        self.template = f"member://{name}/item/{{n}}"
        self._is_looping = False
        self._numbers = itertools.count(1)
        names = [*NAMES, *(f"more-{n:02}" for n in range(more_tools))]
        self._entries: dict[str, list[Json]] = {
            "tools": [self._tool(each) for each in names],
            "prompts": [
                {"name": "greet", "arguments": [{"name": "who", "required": True}]},
                {"name": "plain", "description": f"of {name}", "icons": [ICON]},
            ],
            "resources": [
                {"uri": uri, "name": uri, "_meta": {"good.test/of": name}}
                for uri in (self.document, SHARED)
            ],
            "resourceTemplates": [
                {"uriTemplate": template, "name": template}
                for template in (self.template, SHARED_TEMPLATE)
            ],
        }

    def _tool(self, name: str) -> Json:
        if name == "rich":
            return RICH
        schema = {"type": "object", "properties": ARGUMENTS.get(name, {})}
        return {"name": name, "description": f"{name} of {self.name}", "inputSchema": schema}

    # ------------------------------------------------------------------ results
    def handshake(self, revision: str) -> Json:
        info = {"name": self.name, "version": "1"}
        said = {"protocolVersion": revision, "serverInfo": info, "instructions": self._words()}
        return {**said, "capabilities": {**CAPABILITIES, "tasks": TASKS}}

    def discovery(self) -> Json:
        info = {SPEC + "serverInfo": {"name": self.name, "version": "1"}}
        said = {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "_meta": info}
        return {**said, "instructions": self._words()}

    def _words(self) -> str:
        return f"Instructions of {self.name}."

    def page(self, method: str, cursor: str | None) -> Json:
        """Return a page of a list; the last one has no cursor, unless the list has no end."""
        key = LISTS[method]
        start = int(cursor or 0)
        end = start + self._page
        entries = self._entries[key][start:end]
        if self._is_looping and key == "tools":
            return {key: entries, "nextCursor": str(self._page)}
        is_last = end >= len(self._entries[key])
        return {key: entries, **({} if is_last else {"nextCursor": str(end)})}

    def prompt(self, params: Json) -> Json:
        name, given = params["name"], params.get("arguments") or {}
        words = f"{self.name}: {name} {given.get('who', '')}"
        return {"description": name, "messages": [{"role": "user", "content": text(words)}]}

    def completion(self, params: Json) -> Json:
        value = params["argument"]["value"]
        return {"completion": {"values": [f"{value}-{self.name}"], "total": 1, "hasMore": False}}

    def read(self, uri: str) -> Json:
        return {"contents": [{"uri": uri, "text": f"{self.name}: {uri}", "_meta": {"n": 1.50}}]}

    def rich(self) -> Json:
        link = {"type": "resource_link", "uri": f"member://{self.name}/linked", "name": "linked"}
        resource = {"uri": f"member://{self.name}/embedded", "text": "embedded", "mimeType": "a/b"}
        audio = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
        return {
            "content": [
                {**text("grüße\u2028\0"), "annotations": {"audience": ["user"], "priority": 0.5}},
                {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
                audio,
                link,
                {"type": "resource", "resource": resource},
            ],
            "structuredContent": {"count": "not an integer", "more": 1e2, "big": 2**63},
            "isError": False,
            "_meta": {"good.test/b": 1, "good.test/a": {"z": 0.1, "y": -0.0}},
        }

    # ------------------------------------------------------------------ changes
    def tool_names(self) -> set[str]:
        return {tool["name"] for tool in self._entries["tools"]}

    def add(self, kind: str) -> None:
        """Add an entry to a list."""
        name = f"new-{next(self._numbers)}"
        entry = {"uri": f"member://{self.name}/{name}"} if kind == "resources" else {}
        tool = self._tool(name) if kind == "tools" else {"name": name}
        self._entries[kind].append({**tool, **entry})

    def begin_fault(self, kind: str, other: str) -> None:
        """Rename `echo`, list the tools of another member and of the hub, or list without end."""
        tools = self._entries["tools"]
        if kind == "loop":
            self._is_looping = True
        elif kind == "rename":
            tools[0] = {**tools[0], "name": "renamed"}
        else:
            tools += [self._tool(name) for name in (f"{other}__echo", "mcpwrap_status", "bad name")]

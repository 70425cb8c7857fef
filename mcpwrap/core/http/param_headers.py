"""`Mcp-Param-*` headers, which repeat arguments of a tool call: checked, forwarded, or added.

A listener checks its agent's headers against the arguments. The remote program forwards them, or
adds them for an agent that sends none. Both learn a tool's headers from the responses to
`tools/list` that they forward. Until then nothing is checked or added.

Source: MCP 2026-07-28, tools, "x-mcp-header" (SEP-2243).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcpwrap.core.http import header_values
from mcpwrap.core.http.mcp_headers import HEADER_MISMATCH, HeaderMismatch, decoded
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Request
from mcpwrap.core.protocol.methods import TOOLS_CALL

PREFIX = "Mcp-Param-"
MAX_TOOLS = 4096  # servers have tens
MAX_HEADERS = 64  # of one tool; they have one or two
MAX_NAME_CHARS = 128
_ANNOTATION = "x-mcp-header"
_TYPES = frozenset({"string", "integer", "boolean"})
_NAME = re.compile(header_values.FIELD_NAME)
_HEADER = re.compile(PREFIX + header_values.FIELD_NAME, re.IGNORECASE | re.ASCII)
_ZEROS = re.compile(r"(?<=[0-9])\.0+")  # 7.0 is 7
_DECIMAL = re.compile(r"(-?[0-9]{1,64})(?:\.0{1,64})?")


@dataclass(frozen=True, slots=True)
class _ParamHeader:
    name: str  # with the prefix, in the case that the tool declares
    path: tuple[str, ...]  # of the property, in the arguments
    type: str


class ParamHeaders:
    """Headers that the tools of one server declare for their arguments."""

    def __init__(self) -> None:
        self._by_tool: dict[str, tuple[_ParamHeader, ...]] = {}

    def remember(self, result: Json) -> None:
        """Store the headers that a result of tools/list declares; it may be one page of several."""
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue
            if not (declared := _declared(tool.get("inputSchema"))):
                self._by_tool.pop(name, None)
            elif name in self._by_tool or len(self._by_tool) < MAX_TOOLS:
                self._by_tool[name] = declared

    def mismatch(self, request: Request, head: RequestHead) -> HeaderMismatch | None:
        """Return the error for a header that is not the argument it repeats; None without one."""
        given = from_head(head)
        names = [name.lower() for name, _ in head.fields if name.lower().startswith(PREFIX.lower())]
        if len(names) != len(given):
            return HeaderMismatch(HEADER_MISMATCH, "a header Mcp-Param-* is given more than once")
        tool = request.params.get("name")
        if request.method != TOOLS_CALL or not isinstance(tool, str):
            return None
        arguments = request.params.get("arguments")
        for declared in self._by_tool.get(tool, ()):
            name = declared.name.lower()
            if not _agree(declared, _at(arguments, declared.path), given.get(name)):
                why = f"{name} is not the argument {'.'.join(declared.path)}"
                return HeaderMismatch(HEADER_MISMATCH, f"the headers do not match the body: {why}")
        return None

    def made_of(self, params: Mapping[str, Json]) -> dict[str, str]:
        """Return the headers to add to a tools/call whose agent did not send them."""
        texts = {
            declared.name: _as_text(_at(params.get("arguments"), declared.path))
            for declared in self._by_tool.get(str(params.get("name")), ())
        }
        return {n: header_values.encoded(text) for n, text in texts.items() if text is not None}


def from_head(head: RequestHead) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of an HTTP request, by lower-case name; the last of each."""
    pairs = ((name.lower(), value) for name, value in head.fields)
    return {name: value for name, value in pairs if name.startswith(PREFIX.lower())}


def forwardable(headers: Json, arguments: Json) -> dict[str, str]:
    """Return the agent's headers that repeat an argument and can be sent.

    A value that is not among the arguments is not forwarded: the policy has judged the arguments
    alone, and a proxy before the server may decide by the headers alone.
    """
    if not isinstance(headers, dict):
        return {}
    texts = set(_texts(arguments))
    return {
        name.lower(): value
        for name, value in headers.items()
        if _HEADER.fullmatch(name)
        and isinstance(value, str)
        and header_values.is_plain(value)
        and (text := decoded(value)) is not None
        and _without_zeros(text) in texts
    }


def _declared(schema: Json) -> tuple[_ParamHeader, ...]:
    """Return the headers of a tool; none if one is invalid, because agents then drop the tool.

    More or longer headers than any tool needs are invalid too, because a server chooses them.
    """
    found: dict[str, _ParamHeader] = {}
    for path, declared in _properties(schema, ()):
        if _ANNOTATION not in declared:
            continue
        name, kind = declared[_ANNOTATION], declared.get("type")
        if not isinstance(name, str) or not _is_name(name) or name.lower() in found:
            return ()
        if not isinstance(kind, str) or kind not in _TYPES:
            return ()
        found[name.lower()] = _ParamHeader(PREFIX + name, path, kind)
    return tuple(found.values()) if len(found) <= MAX_HEADERS else ()


def _is_name(untrusted: str) -> bool:
    return len(untrusted) <= MAX_NAME_CHARS and _NAME.fullmatch(untrusted) is not None


def _properties(
    schema: Json, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, Json]]]:
    """Yield the properties that `properties` alone leads to. JSON is bounded in depth."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield (*above, name), inner
            yield from _properties(inner, (*above, name))


def _at(arguments: Json, path: tuple[str, ...]) -> Json:
    found = arguments
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _agree(declared: _ParamHeader, value: Json, header: str | None) -> bool:
    """Return whether argument and header are both absent, or equal."""
    text = _as_text(value)
    if text is None or header is None:
        return text is None and header is None
    plain = decoded(header)
    if declared.type == "integer" and plain is not None and not isinstance(value, (bool, str)):
        number = _DECIMAL.fullmatch(plain)
        return number is not None and str(int(number[1])) == text
    return plain == text


def _without_zeros(text: str) -> str:
    zeros = _ZEROS.search(text)
    return text[: zeros.start()] if zeros and zeros.end() == len(text) else text


def _texts(value: Json) -> Iterator[str]:
    """Yield all values of the arguments as text. JSON is bounded in depth.

    A text is not decoded: the policy has not judged what a text in base64 would decode to.
    """
    match value:
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _ if (text := _as_text(value)) is not None:
            yield text
            yield _without_zeros(text)
        case _:
            pass


def _as_text(value: Json) -> str | None:
    """Return a value as header text, 7.0 as `7`; None for a value that has no header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None

"""`Mcp-Param-*` headers for a remote server, from a tool's arguments (2026-07-28, SEP-2243)."""

import re
from collections.abc import Iterator, Mapping

from mcpwrap.core.http import header_values
from mcpwrap.core.http.mcp_headers import decoded
from mcpwrap.core.protocol.json_value import Json

PREFIX = "Mcp-Param-"
MAX_TOOLS = 4096  # servers have tens
_ANNOTATION = "x-mcp-header"
_TYPES = frozenset({"string", "integer", "boolean"})
_NAME = re.compile(header_values.FIELD_NAME)
_HEADER = re.compile(PREFIX + header_values.FIELD_NAME, re.IGNORECASE | re.ASCII)
_ZEROS = re.compile(r"(?<=[0-9])\.0+")  # 7.0 is 7

_Path = tuple[str, ...]


def passed_on(headers: Json, arguments: Json) -> dict[str, str]:
    """Return those of an agent's headers that are ones of parameters and can be sent.

    What none of the arguments says goes nowhere: the policy has judged the arguments alone, and
    whoever stands before the server may decide by the headers alone.
    """
    if not isinstance(headers, dict):
        return {}
    said = set(_texts(arguments))
    return {
        name.lower(): value
        for name, value in headers.items()
        if _HEADER.fullmatch(name)
        and isinstance(value, str)
        and header_values.is_plain(value)
        and _plainly(value) in said
    }


def _plainly(header: str) -> str | None:
    text = decoded(header)
    zeros = None if text is None else _ZEROS.search(text)
    return text[: zeros.start()] if text and zeros and zeros.end() == len(text) else text


def _texts(value: Json) -> Iterator[str]:
    """Yield all that arguments say, as it stands in headers. JSON is bounded in depth."""
    match value:
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case float() if value.is_integer():
            yield str(int(value))
        case _ if (text := _as_text(value)) is not None:
            yield text
            yield _plainly(text) or text
        case _:
            pass


class Tools:
    """Header declarations in the lists of tools that were seen."""

    def __init__(self) -> None:
        self._header_by_path: dict[str, dict[_Path, str]] = {}

    def see(self, result: Json) -> None:
        """Remember the tools in a result of tools/list, which may be one page of several."""
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue
            if declared := _declared(tool.get("inputSchema")):
                if len(self._header_by_path) < MAX_TOOLS:
                    self._header_by_path[name] = declared
            else:
                self._header_by_path.pop(name, None)

    def headers(self, params: Mapping[str, Json]) -> dict[str, str]:
        """Return the headers of a tools/call."""
        found = {}
        declared = self._header_by_path.get(str(params.get("name")), {})
        for path, header in declared.items():
            text = _as_text(_at(params.get("arguments"), path))
            if text is not None:
                found[PREFIX + header] = header_values.encoded(text)
        return found


def _declared(schema: Json) -> dict[_Path, str]:
    """Return the headers of a schema by the property's path; none if one of them is not valid."""
    found: dict[_Path, str] = {}
    for path, declared in _properties(schema, ()):
        header = declared.get(_ANNOTATION)
        if header is None:
            continue
        if not isinstance(header, str) or not _NAME.fullmatch(header):
            return {}
        if str(declared.get("type")) not in _TYPES:
            return {}
        if header.lower() in map(str.lower, found.values()):
            return {}
        found[path] = header
    return found


def _properties(schema: Json, above: _Path) -> Iterator[tuple[_Path, dict[str, Json]]]:
    """Yield those that are reached by `properties` alone. JSON is bounded in depth."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield (*above, name), inner
            yield from _properties(inner, (*above, name))


def _at(value: Json, path: _Path) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _as_text(value: Json) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case _:
            return None

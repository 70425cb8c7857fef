"""Forms of definitions: clients refuse a list of all members for one entry in another form.

Source: schema.ts of 2025-11-25, as the official SDKs check it (zod, pydantic). Unknown keys pass.
"""

from collections.abc import Mapping

from mcpwrap.core.protocol.json_value import Json

_Kinds = type | tuple[type, ...]
_NUMBER = (int, float)
_COMMON: Mapping[str, _Kinds] = {
    "title": str, "description": str, "icons": list, "_meta": dict,
}  # fmt: skip
_ANNOTATIONS: Mapping[str, _Kinds] = {
    "title": str, "readOnlyHint": bool, "destructiveHint": bool, "idempotentHint": bool,
    "openWorldHint": bool, "audience": list, "priority": _NUMBER, "lastModified": str,
}  # fmt: skip
_SCHEMA: Mapping[str, _Kinds] = {"type": str, "properties": dict, "required": list}
_ICON: Mapping[str, _Kinds] = {"src": str, "mimeType": str, "theme": str}
_ARGUMENT: Mapping[str, _Kinds] = {
    "name": str, "title": str, "description": str, "required": bool,
}  # fmt: skip
# Keys of each kind of entry that it must have, and those that it may have.
_FORMS: Mapping[str, tuple[tuple[str, ...], Mapping[str, _Kinds]]] = {
    "tool": (
        ("name", "inputSchema"),
        {
            "name": str, "inputSchema": dict, "outputSchema": dict, "annotations": dict,
            "execution": dict,
        },
    ),
    "prompt": (("name",), {"name": str, "arguments": list}),
    "resource": (
        ("name", "uri"),
        {"name": str, "uri": str, "mimeType": str, "size": _NUMBER, "annotations": dict},
    ),
    "template": (
        ("name", "uriTemplate"),
        {"name": str, "uriTemplate": str, "mimeType": str, "annotations": dict},
    ),
}  # fmt: skip


def why_malformed(kind: str, entry: Json) -> str:
    """Return why clients would refuse a list with this entry; "" if they would not."""
    if not isinstance(entry, dict):
        return "it is not an object"
    required, form = _FORMS[kind]
    key = next((key for key in required if key not in entry), "") or (
        _odd_key(entry, {**_COMMON, **form}) or _odd_part(entry)
    )
    return f"`{key}` is not as MCP defines it" if key else ""


def _odd_key(entry: dict[str, Json], form: Mapping[str, _Kinds]) -> str:
    """Return a key whose value is of another type; "" if there is none."""
    for key, kinds in form.items():
        if key in entry and not _is_a(entry[key], kinds):
            return key
    return ""


def _is_a(value: Json, kinds: _Kinds) -> bool:
    """Return whether a value has a type; True is an int to Python."""
    return isinstance(value, kinds) and not (isinstance(value, bool) and kinds is not bool)


def _odd_part(entry: dict[str, Json]) -> str:
    if "inputSchema" in entry and not _is_schema(entry["inputSchema"]):
        return "inputSchema"
    annotations = entry.get("annotations", {})
    if isinstance(annotations, dict) and _odd_key(annotations, _ANNOTATIONS):
        return "annotations"
    for key, form, required in (("icons", _ICON, "src"), ("arguments", _ARGUMENT, "name")):
        elements = entry.get(key, [])
        for element in elements if isinstance(elements, list) else ():
            is_object = isinstance(element, dict) and required in element
            if not isinstance(element, dict) or not is_object or _odd_key(element, form):
                return key
    return ""


def _is_schema(schema: Json) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "object" or _odd_key(schema, _SCHEMA):
        return False
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    return (
        isinstance(required, list)
        and isinstance(properties, dict)
        and all(isinstance(name, str) for name in required)
    )

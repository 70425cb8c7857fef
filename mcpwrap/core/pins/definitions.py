"""Definitions of a server: what it says of its tools, prompts, resource templates, and of itself.

A definition is one entry of a list with all its keys, as the server sent it: agents may put any of
it before their model. Its text is canonical JSON, so that the order of keys changes nothing.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.server_revisions import SERVER_INFO
from mcpwrap.core.protocol.strict_json import NotJsonError, TooDeepError, decode, encode_sorted

Kind = Literal["tool", "prompt", "template", "server"]
KINDS: tuple[Kind, ...] = ("server", "tool", "prompt", "template")
MAX_VERSION_CHARS = 40
_OF_SERVER = {"instructions", "serverInfo"}  # keys of what a server says of itself
_VERSION_CHARS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_")


@dataclass(frozen=True, slots=True)
class PinnedList:
    """List whose entries are pinned."""

    kind: Kind
    key: str  # of the entries, in a result
    name: str  # key of an entry's name


PINNED_LISTS: Mapping[str, PinnedList] = {  # by method
    methods.TOOLS_LIST: PinnedList("tool", "tools", "name"),
    methods.PROMPTS_LIST: PinnedList("prompt", "prompts", "name"),
    "resources/templates/list": PinnedList("template", "resourceTemplates", "uriTemplate"),
}
_CAPABILITIES: Mapping[Kind, str] = {
    "tool": "tools", "prompt": "prompts", "template": "resources"
}  # fmt: skip
DESCRIPTIONS = frozenset({methods.INITIALIZE, methods.DISCOVER})  # of the server itself


@dataclass(frozen=True, slots=True)
class DefinitionKey:
    """Name of a definition: of a tool or prompt its name, of a template its URI, of a server ""."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition with its canonical text; equal definitions have equal digests."""

    key: DefinitionKey
    text: bytes
    digest: str = field(init=False, compare=False)  # SHA-256 of the text, in hexadecimal digits

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.text))


class Finding(msgspec.Struct, frozen=True):
    """Suspicious part of a definition."""

    name: str  # of the kind of finding
    where: str  # path within the definition
    excerpt: str  # harmless text
    reason: str


def digest_of(text: bytes) -> str:
    """Return the digest of a canonical text."""
    return hashlib.sha256(text).hexdigest()


def entry_definition(of: PinnedList, entry: Json) -> Definition:
    """Return the definition of one entry of a list. One without a valid name has the name ""."""
    name = entry.get(of.name) if isinstance(entry, dict) else None
    key = DefinitionKey(of.kind, name if isinstance(name, str) else "")
    return Definition(key, encode_sorted(entry))


def is_canonical(definition: Definition) -> bool:
    """Return whether a definition from elsewhere is one of this module: its text, and its name."""
    try:
        value = decode(definition.text)
    except (NotJsonError, TooDeepError):
        return False
    if encode_sorted(value) != definition.text:
        return False
    kind, name = definition.key.kind, definition.key.name
    if kind == "server":
        return not name and isinstance(value, dict) and value.keys() == _OF_SERVER
    of = next(one for one in PINNED_LISTS.values() if one.kind == kind)
    return entry_definition(of, value).key.name == name


def listed_definitions(method: str, entries: Iterable[Json]) -> list[Definition]:
    """Return the definitions of the entries of a list, in their order."""
    of = PINNED_LISTS[method]
    return [entry_definition(of, entry) for entry in entries]


def server_definition(description: Mapping[str, Json]) -> Definition:
    """Return what a server says of itself: `instructions`, and `serverInfo` without its version.

    An unusual version counts, because it may hold a text.
    """
    infos = [_without_version(info) for info in _infos(description)]
    is_one = all(info == infos[0] for info in infos)
    about: dict[str, Json] = {
        "instructions": description.get("instructions", ""),
        "serverInfo": infos if not is_one else infos[0] if infos else None,
    }
    return Definition(DefinitionKey("server", ""), encode_sorted(about))


def describes_itself(description: Mapping[str, Json]) -> bool:
    """Return whether a server says anything of itself."""
    return bool(description.get("instructions") or _infos(description))


def without_description(description: dict[str, Json], name: str) -> dict[str, Json]:
    """Return what a server says of itself, without its words: with this name, and its version."""
    info: Json = {"name": name, "version": server_version(description) or "unknown"}
    after = {key: value for key, value in description.items() if key != "instructions"}
    if "serverInfo" in after:
        after["serverInfo"] = info
    meta = after.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO in meta:
        after["_meta"] = {**meta, SERVER_INFO: info}
    return after


def _infos(description: Mapping[str, Json]) -> list[Json]:
    """Return what a server calls itself: since 2026-07-28 in `_meta`, before that beside it."""
    meta = description.get("_meta")
    in_meta = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    return [info for info in (description.get("serverInfo"), in_meta) if info is not None]


def _without_version(info: Json) -> Json:
    if not isinstance(info, dict) or not _plain_version(info):
        return info
    return {key: value for key, value in info.items() if key != "version"}


def server_version(description: Mapping[str, Json]) -> str:
    """Return the version that a server reports of itself; "" for an unusual one."""
    infos = _infos(description)
    return _plain_version(infos[0]) if infos else ""


def _plain_version(info: Json) -> str:
    version = info.get("version") if isinstance(info, dict) else None
    return version if isinstance(version, str) and is_plain_version(version) else ""


def is_plain_version(text: str) -> bool:
    """Return whether a version is one in form, and no sentence; "" is one that is unknown."""
    has_form = text.removeprefix("v")[:1].isdecimal() and _VERSION_CHARS.issuperset(text)
    return not text or (has_form and len(text) <= MAX_VERSION_CHARS)


def undeclared_kinds(description: Mapping[str, Json]) -> tuple[Kind, ...]:
    """Return the kinds of which a server declares that it has none."""
    declared = description.get("capabilities")
    if not isinstance(declared, dict):
        return ()
    return tuple(kind for kind, capability in _CAPABILITIES.items() if capability not in declared)

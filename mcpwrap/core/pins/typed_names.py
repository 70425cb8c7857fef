"""Names of definitions as a person types them in a command: `add`, `prompt:x`, `instructions`."""

import shlex
from dataclasses import dataclass

from mcpwrap.core.pins.definitions import Kind
from mcpwrap.core.protocol.confusable_names import told_apart

_INSTRUCTIONS = "instructions"
_DIGEST = "sha256"
_PREFIXES: dict[str, Kind] = {"tool": "tool", "prompt": "prompt", "template": "template"}
_MAX_TYPED_CHARS = 100
_TYPED_DIGITS = 16


@dataclass(frozen=True, slots=True)
class TypedName:
    """Name of a definition, or the beginning of its digest, from a command line."""

    kind: Kind
    name: str
    digest: str = ""

    def names(self, kind: Kind, name: str, digest: str) -> bool:
        """Return whether a definition is meant."""
        if self.digest:
            return digest.startswith(self.digest)
        return (kind, name) == (self.kind, self.name)


def parse_typed(text: str) -> TypedName:
    """Return what a person typed; a name without a prefix is a tool's."""
    prefix, colon, name = text.partition(":")
    if text == _INSTRUCTIONS:
        return TypedName("server", "")
    if colon and prefix in _PREFIXES:
        return TypedName(_PREFIXES[prefix], name)
    if colon and prefix == _DIGEST and name:
        return TypedName("tool", "", name.lower())
    return TypedName("tool", text)


def typed_name(kind: Kind, name: str, digest: str) -> str:
    """Return what a person types for a definition, quoted for a shell.

    A server chooses its names: one that a person cannot type is replaced by its digest, or by ""
    if that is not known.
    """
    if kind == "server":
        return _INSTRUCTIONS
    if not (name.isascii() and name.isprintable() and 0 < len(name) <= _MAX_TYPED_CHARS):
        return f"{_DIGEST}:{digest[:_TYPED_DIGITS]}" if digest else ""
    is_plain = kind == "tool" and not name.startswith("-")
    if is_plain and parse_typed(name) == TypedName("tool", name):
        return shlex.quote(name)
    return shlex.quote(f"{kind}:{name}")


def displayed_name(kind: Kind, name: str) -> str:
    """Return the kind and name of a definition in a text, such as `prompt "x"`."""
    return _INSTRUCTIONS if kind == "server" else f'{kind} "{told_apart(name)}"'

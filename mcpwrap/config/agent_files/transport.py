"""Common types of servers' transports, for all agents, and readers of the values of an entry."""

from dataclasses import dataclass, field

from mcpwrap.config.agent_files.syntax.document import Opaque


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """Program that the agent starts."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    further: tuple[str, ...] = ()  # other keys about how it is started
    inherits: tuple[str, ...] = ()  # the agent's own variables that it gets


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Server at a URL."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()  # other keys about how it is reached


@dataclass(frozen=True, slots=True)
class UnknownTransport:
    """Entry without a server that mcpwrap could run, or with more than one meaning."""

    why: str


Transport = StdioTransport | HttpTransport | UnknownTransport


class BadEntryError(ValueError):
    """Entry that is not understood; the message gives the reason."""


def table(value: object, key: str) -> dict[str, object]:
    """Return the table at `key`."""
    if isinstance(value, dict):
        return value
    raise BadEntryError(f"{key} is {_kind(value)}, not a table")


def text(value: object, key: str) -> str:
    """Return the text at `key`."""
    if isinstance(value, str):
        return value
    raise BadEntryError(f"`{key}` is {_kind(value)}, not text")


def texts(value: object, key: str) -> tuple[str, ...]:
    """Return the list of texts at `key`; empty if it is absent."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(text(item, f"{key}[{number}]") for number, item in enumerate(value))
    raise BadEntryError(f"`{key}` is {_kind(value)}, not a list")


def texts_by_name(value: object, key: str) -> dict[str, str]:
    """Return the table of texts at `key`. A number becomes text, as in agents."""
    if value is None:
        return {}
    found = table(value, f"`{key}`")
    return {
        name: str(item)
        if isinstance(item, int) and not isinstance(item, bool)
        else text(item, f"{key}.{name}")
        for name, item in found.items()
    }


def _kind(value: object) -> str:
    if isinstance(value, Opaque):
        return value.what
    kind = next((k for t, k in _KINDS if isinstance(value, t)), "a date")
    return "nothing" if value is None else kind


_KINDS = (
    (bool, "true or false"),
    (int, "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, "a table"),
)

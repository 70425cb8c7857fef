"""Common types of a server's launch, whichever agent lists it, and readers of an entry's values."""

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
    inherits: tuple[str, ...] = ()  # variables of the agent's own that it is given


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Server at a URL."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()  # other keys about how it is reached


@dataclass(frozen=True, slots=True)
class UnknownTransport:
    """Entry without a server that we could run, or that reads in more than one way."""

    why: str


Transport = StdioTransport | HttpTransport | UnknownTransport


class BadEntryError(ValueError):
    """Entry that is not understood; the message gives the reason."""


def table(value: object, key: str) -> dict[str, object]:
    """Return a table that stands at `key`."""
    if isinstance(value, dict):
        return value
    raise BadEntryError(f"{key} is {_kind(value)}, not a table")


def text(value: object, key: str) -> str:
    """Return a text that stands at `key`."""
    if isinstance(value, str):
        return value
    raise BadEntryError(f"`{key}` is {_kind(value)}, not text")


def texts(value: object, key: str) -> tuple[str, ...]:
    """Return a list of texts."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(text(item, f"{key}[{number}]") for number, item in enumerate(value))
    raise BadEntryError(f"`{key}` is {_kind(value)}, not a list")


def texts_by_name(value: object, key: str) -> dict[str, str]:
    """Return a table of texts. A number is taken for what is written: agents make text of it."""
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

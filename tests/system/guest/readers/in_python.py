"""Python's json, pydantic with and without types, and the types of the official library.

Runs where that library is: `in_python.py json`, `dict`, `typed` or `sdk`.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import mcp_types
from pydantic import TypeAdapter

A = TypeVar("A")


@dataclass
class Reference:
    """Subject of a completion."""

    name: str | None = None
    uri: str | None = None


@dataclass
class Options:
    """Arguments within an argument."""

    level: float | None = None


@dataclass
class Arguments:
    """The arguments of a tool; pydantic takes "yes" for true, and "1" for 1."""

    cmd: str | None = None
    count: float | None = None
    force: bool | None = None
    options: Options | None = None
    path: str | None = None
    paths: list[str] | None = None


@dataclass
class Params(Generic[A]):
    """Params of a call, a prompt, a resource and a completion."""

    name: str | None = None
    uri: str | None = None
    arguments: A | None = None
    ref: Reference | None = None


@dataclass
class Message(Generic[A]):
    """Request or notification."""

    id: int | str | None = None
    method: str | None = None
    params: Params[A] | None = None


ADAPTERS = {
    "dict": TypeAdapter(Message[dict[str, Any]]),
    "typed": TypeAdapter(Message[Arguments]),
}


def by_type(way: str) -> Callable[[bytes], Any]:
    """Return a reader into dataclasses; null members are left out."""

    def read(line: bytes) -> Any:
        return asdict(ADAPTERS[way].validate_json(line), dict_factory=without_null)

    return read


def without_null(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {key: value for key, value in pairs if value is not None}


def by_sdk(line: bytes) -> Any:
    """Read as the server of the official library does from its standard input."""
    text = line.decode(errors="replace")
    message = mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    whole = message.model_dump(by_alias=True, exclude_unset=True)
    if isinstance(message, mcp_types.JSONRPCRequest):
        asked = {key: whole[key] for key in ("method", "params") if key in whole}
        request = mcp_types.client_request_adapter.validate_python(asked, by_name=False)
        whole |= request.model_dump(by_alias=True, exclude_unset=True, mode="json")
    return whole


def described(value: Any) -> Any:
    """Return a value in the form that all readers write."""
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass").hex()
        case int() | float():
            return ["n", repr(value)]
        case list():
            return ["a", *map(described, value)]
        case _:
            return ["o", *([described(key), described(inner)] for key, inner in value.items())]


WAYS: dict[str, Callable[[bytes], Any]] = {
    "json": json.loads,
    "dict": by_type("dict"),
    "typed": by_type("typed"),
    "sdk": by_sdk,
}


def main() -> None:
    """Read each line of standard input."""
    sys.set_int_max_str_digits(0)  # of the output here; a number of 4300 digits is read
    read = WAYS[sys.argv[1]]
    for line in sys.stdin:
        try:
            whole = read(bytes.fromhex(line))
        except (ValueError, RecursionError):  # pydantic's and json's errors are of the first kind
            whole = None
        print(json.dumps(described(whole)) if isinstance(whole, dict) else "refused")


if __name__ == "__main__":
    main()

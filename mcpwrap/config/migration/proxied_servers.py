"""Parser of a list of proxied servers (`proxied-mcp-servers.json`): a JSON array of entries.

Its values are literal: `${NAME}` in them is an error, as this format has no references, and mcpwrap
would otherwise give a server a text that its author did not mean.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcpwrap.config.agent_files.syntax import json_document
from mcpwrap.config.agent_files.transport import (
    BadEntryError,
    StdioTransport,
    table,
    text,
    texts,
    texts_by_name,
)
from mcpwrap.config.model import TRANSPORTS, ConfigError, Problem
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.value_parsers import BadValueError, inherited_any

MAX_BYTES = 1024 * 1024
_KEYS = (
    *("name", "namespace", "command", "args", "env", "inherits"),
    *("supportedTransports", "instructions"),
)
_NEEDED = ("name", "namespace", "command", "supportedTransports")
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")
_REFERENCE = re.compile(r"\$\{|\{env:|\A\$[A-Z_][A-Z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedServer:
    """One entry: a program, and how the server that offers its tools names them."""

    name: str  # for people
    namespace: str
    launch: StdioTransport
    transports: tuple[str, ...]
    instructions: str = ""


def is_proxied_list(content: bytes) -> bool:
    """Return whether a file begins like such a list. No TOML begins so: `[` has a key after it."""
    return _LIST.match(content) is not None


def parse_proxied(file: SourceFile) -> tuple[ProxiedServer, ...]:
    """Return the entries of a list.

    Raises:
        ConfigError: with every problem of the list.
        FileError: it is not JSON.
    """
    if len(file.content) > MAX_BYTES:
        raise ConfigError([_problem(file, "", "over 1 MiB", "E-CONFIG-TOO-LARGE")])
    try:
        body = file.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([_problem(file, "", "not UTF-8", "E-CONFIG-NOT-UTF8")]) from error
    value = json_document.value_of(file.name, body)
    if not isinstance(value, list) or not value:
        raise ConfigError([_problem(file, "", "it lists no server", "E-PROXIED-ENTRY")])
    found, problems = [], []
    for number, entry in enumerate(value):
        try:
            found.append(_entry(entry))
        except BadEntryError as error:
            problems.append(_problem(file, _place(number, entry), str(error), "E-PROXIED-ENTRY"))
        except BadValueError as error:
            place = _place(number, entry)
            problems.append(Problem(file.name, place, "", error.problem, error.fix, error.code))
    if problems:
        raise ConfigError(problems)
    return tuple(found)


def _problem(file: SourceFile, place: str, why: str, code: str) -> Problem:
    fix = "correct it: `man mcpwrap`, wrap, has the format"
    return Problem(file.name, place, "", why, fix, code)


def _place(number: int, entry: object) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"entry {number + 1}{f', {name!a:.80}' if isinstance(name, str) else ''}"


def _entry(value: object) -> ProxiedServer:
    entry = table(value, "the entry")
    for key in entry:
        if key not in _KEYS:
            raise BadEntryError(f"{key!a:.80} is not a key of this format")
    for key in _NEEDED:
        if key not in entry:
            raise BadEntryError(f"it has no `{key}`")
    launch = _launch(entry)
    return ProxiedServer(
        name=_filled(entry, "name"),
        namespace=text(entry["namespace"], "namespace"),
        launch=launch,
        transports=_transports(entry),
        instructions=text(entry.get("instructions", ""), "instructions"),
    )


def _filled(entry: Mapping[str, object], key: str) -> str:
    value = text(entry[key], key)
    if not value.strip():
        raise BadEntryError(f"`{key}` is empty")
    return value


def _launch(entry: Mapping[str, object]) -> StdioTransport:
    env = texts_by_name(entry.get("env"), "env")
    launch = StdioTransport(
        _filled(entry, "command"),
        texts(entry.get("args"), "args"),
        env,
        inherits=tuple(_inherited(entry, env)),
    )
    for name, value in {"command": launch.command, **env}.items():
        _expect_literal(name, value)
    for number, value in enumerate(launch.args, start=1):
        _expect_literal(f"argument {number}", value)
    return launch


def _inherited(entry: Mapping[str, object], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that an agent's program passes on: a value in `env` is final, also ""."""
    for name in dict.fromkeys(texts(entry.get("inherits"), "inherits")):
        if name not in env:
            yield inherited_any(name)


def _expect_literal(name: str, value: str) -> None:
    if _REFERENCE.search(value):
        raise BadValueError(
            f"the value of {name!a:.80} refers to a variable, and this format has no references",
            "write the value; or list the variable's name in `inherits`",
            code="E-PROXIED-REFERENCE",
        )


def _transports(entry: Mapping[str, object]) -> tuple[str, ...]:
    found = texts(entry["supportedTransports"], "supportedTransports")
    if not found or not set(found) <= set(TRANSPORTS):
        raise BadEntryError('`supportedTransports` is not a list of "stdio" and "http"')
    return tuple(each for each in TRANSPORTS if each in found)

"""Proposal of servers, and nothing else, by an account other than root, for a person's review."""

import re
from collections.abc import Collection, Iterable, Mapping

import tomli

from mcpwrap.config.model import ConfigError, Problem, Server
from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.names import OAUTH_KEY, is_server_name
from mcpwrap.errors import UsageError

MAX_SHOWN_CHARS = 64 * 1024  # over 1500 lines: a person would accept more without reading it

_NAME = "the proposal"
_ASCII = re.compile(r"[\n -~]*")


def texts_of(raw: bytes) -> dict[str, str]:
    """Return each server of a proposal as `toml_of` writes it, by name.

    Raises:
        ConfigError: with every problem of the proposal.
    """
    servers = parse_part([SourceFile(_NAME, raw)]).servers
    problems = [
        Problem(
            _NAME,
            f"[{key}]",
            "",
            "cannot be proposed: only servers can",
            "remove it; root can write it into /etc/mcpwrap",
            code="E-PROPOSAL-TABLE",
        )
        for key in tomli.loads(raw.decode())
        if key != "mcp_servers"
    ]
    if not servers:
        problems.append(
            Problem(
                _NAME,
                "",
                "",
                "it has no server",
                "write a table `[mcp_servers.NAME]`",
                code="E-PROPOSAL-EMPTY",
            )
        )
    texts = {name: toml_of(server) for name, server in servers.items()}
    if (size := _size(texts)) > MAX_SHOWN_CHARS:
        problems.append(
            Problem(
                _NAME,
                "",
                "",
                f"{size} characters for a person to read; the limit is {MAX_SHOWN_CHARS}",
                "propose fewer servers at a time",
                code="E-PROPOSAL-TOO-LARGE",
            )
        )
    if problems:
        raise ConfigError(problems)
    return texts


def servers_of(untrusted_texts: Mapping[str, str]) -> dict[str, Server]:
    """Return the servers in an output of `texts_of` that is not trusted, after validation.

    Raises:
        UsageError: `texts_of` does not return such an output.
    """
    if not untrusted_texts or _size(untrusted_texts) > MAX_SHOWN_CHARS:
        raise _malformed("no server, or too many")
    servers = {}
    for name, text in untrusted_texts.items():
        if not is_server_name(name) or not _ASCII.fullmatch(text):
            raise _malformed("characters that are not valid in a name or in TOML of mcpwrap")
        server = parse_part([SourceFile(_NAME, text.encode())]).servers.get(name)
        if server is None or toml_of(server) != text:
            raise _malformed("a text that is not one server as mcpwrap writes it")
        servers[name] = server
    return servers


def expect_declared(
    servers: Mapping[str, Server], untrusted_keys: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse secrets, by server and key, that the proposal does not refer to.

    Raises:
        UsageError: a secret is of another server, or its server does not refer to it.
    """
    for name, by_key in untrusted_keys.items():
        for key in by_key:
            if name not in servers or key not in settable(servers[name]):
                raise UsageError(
                    f"the proposal does not refer to a secret {key!a:.80} of {name!a:.80}; "
                    "nothing was changed",
                    where="standard input",
                    fix="give only secrets to which the proposal refers, as `${KEY}`",
                    code="E-PROPOSAL-SECRET-UNREFERENCED",
                )


def expect_nobodys(names: Iterable[str], used: Collection[str]) -> None:
    """Refuse names of removed servers: a new server of that name would get its files and secrets.

    Raises:
        UsageError: a name is that of a removed server.
    """
    if again := sorted(set(names) & set(used)):
        raise UsageError(
            f"{', '.join(again)}: not configured any more, but accounts, files and secrets of "
            "these names still exist; nothing was changed",
            where="mcpwrap accept",
            fix="delete those with `sudo mcpwrap apply --purge`, or propose another name",
            code="E-PROPOSAL-NAME-RETIRED",
        )


def settable(server: Server) -> list[str]:
    """Return the secrets of a server that an operator has to set."""
    return sorted(server.secrets() - {OAUTH_KEY})


def _size(texts: Mapping[str, str]) -> int:
    return sum(map(len, texts.values()))


def _malformed(what: str) -> UsageError:
    return UsageError(
        f"its reader returned malformed output: {what}; nothing was changed",
        where=_NAME,
        fix="examine the file and who wrote it: it may be an attack on the reader",
        code="E-PROPOSAL-READER",
    )

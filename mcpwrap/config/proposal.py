"""Proposal of servers, and nothing else, by another account than root, for a person's review."""

import re
from collections.abc import Collection, Iterable, Mapping

import tomli

from mcpwrap.config.model import ConfigError, Problem, Server
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.names import OAUTH_KEY, is_server_name
from mcpwrap.errors import UsageError

MAX_SHOWN_CHARS = 64 * 1024  # over 1500 lines: nobody reads more, and then says yes to it

_NAME = "the proposal"
_ASCII = re.compile(r"[\n -~]*")


def texts_of(raw: bytes) -> dict[str, str]:
    """Return each server of a proposal as `toml_of` writes it, by name.

    Raises:
        ConfigError: with what is wrong with it.
    """
    servers = parse([SourceFile(_NAME, raw)]).servers
    problems = [
        Problem(_NAME, f"[{key}]", "", "is nothing that can be proposed", "leave it to root")
        for key in tomli.loads(raw.decode())
        if key != "mcp_servers"
    ]
    if not servers:
        problems.append(Problem(_NAME, "", "", "there is no server in it", "propose one"))
    texts = {name: toml_of(server) for name, server in servers.items()}
    if (size := _size(texts)) > MAX_SHOWN_CHARS:
        problem = f"{size} characters for a person to read, and {MAX_SHOWN_CHARS} are the most"
        problems.append(Problem(_NAME, "", "", problem, "propose fewer servers at a time"))
    if problems:
        raise ConfigError(problems)
    return texts


def servers_of(untrusted_texts: Mapping[str, str]) -> dict[str, Server]:
    """Return the servers in what should come from `texts_of`, once it is certain that it could.

    Raises:
        UsageError: it could not.
    """
    if not untrusted_texts or _size(untrusted_texts) > MAX_SHOWN_CHARS:
        raise _never_said("no server, or too many")
    servers = {}
    for name, text in untrusted_texts.items():
        if not is_server_name(name) or not _ASCII.fullmatch(text):
            raise _never_said("characters that no name or no text has")
        server = parse([SourceFile(_NAME, text.encode())]).servers.get(name)
        if server is None or toml_of(server) != text:
            raise _never_said("another text than one server's, as mcpwrap writes it")
        servers[name] = server
    return servers


def expect_declared(
    servers: Mapping[str, Server], untrusted_keys: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse secrets, by server and key, of which a proposal says nothing.

    Raises:
        UsageError: one is of another server, or of none of its variables and headers.
    """
    for name, by_key in untrusted_keys.items():
        for key in by_key:
            if name not in servers or key not in settable(servers[name]):
                raise UsageError(
                    f"the proposal has no secret {key!a:.80} of {name!a:.80}; nothing was changed",
                    where="standard input",
                    fix="give those alone to which the proposal refers, as `${KEY}`",
                )


def expect_nobodys(names: Iterable[str], used: Collection[str]) -> None:
    """Refuse names of servers that were taken out: who gets one gets its files and secrets too.

    Raises:
        UsageError: one is such a name.
    """
    if again := sorted(set(names) & set(used)):
        raise UsageError(
            f"{', '.join(again)}: of servers of these names that are not configured any more, "
            "account, files and secrets are still there; nothing was changed",
            where="mcpwrap accept",
            fix="forget those, `sudo mcpwrap apply --purge`, or propose it under another name",
        )


def settable(server: Server) -> list[str]:
    """Return the secrets of a server that somebody has to set."""
    return sorted(server.secrets() - {OAUTH_KEY})


def _size(texts: Mapping[str, str]) -> int:
    return sum(map(len, texts.values()))


def _never_said(what: str) -> UsageError:
    return UsageError(
        f"was read by a program that answered what it never does, {what}; nothing was changed",
        where=_NAME,
        fix="find out what is in the file, and who wrote it: it may be an attack on that program",
    )

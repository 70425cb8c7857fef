"""Parser of `config.toml` and `conf.d` into one `Config`, with all errors found in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import tomli

from mcpwrap.config import hub, python_server, server_table, value_parsers
from mcpwrap.config.file_types.config_file import ApprovalsTable, ConfigFile, EgressTable
from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.model import (
    ApprovalSettings,
    Config,
    ConfigError,
    Direct,
    Problem,
    Server,
    WorkerListener,
)
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name

MAX_FILE_BYTES = 1024 * 1024
MAX_SERVERS = 1000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Configuration file: its name in errors, and its bytes."""

    name: str
    content: bytes


def parse(files: Sequence[SourceFile]) -> Config:
    """Return the configuration of all files. Their order does not matter: a server is in one file.

    Raises:
        ConfigError: with every problem of every file.
    """
    problems: list[Problem] = []
    config = _config(files, problems)
    problems += hub.membership_problems(config.servers, config.file_by_server)
    if problems:
        raise ConfigError(problems)
    return config


def parse_part(files: Sequence[SourceFile]) -> Config:
    """Return the configuration of some files: members of their hubs may be in others.

    Raises:
        ConfigError: with every problem of these files.
    """
    problems: list[Problem] = []
    config = _config(files, problems)
    if problems:
        raise ConfigError(problems)
    return config


def _config(files: Sequence[SourceFile], problems: list[Problem]) -> Config:
    servers: dict[str, Server] = {}
    file_by_server: dict[str, str] = {}
    parents: list[Direct] = []
    approvals: list[ApprovalSettings] = []
    workers: list[WorkerListener] = []
    for file in files:
        top = TomlTableReader(_table(file, problems), file=file.name, name="", problems=problems)
        parents += _parent(top, parents)
        approvals += _approvals(top, approvals)
        workers += _worker(top, workers)
        for server in _servers(top):
            if other := file_by_server.get(server.name):
                table = f"[mcp_servers.{server.name}]"
                fix = "keep one of the two"
                problems.append(
                    Problem(
                        file.name,
                        table,
                        "",
                        f"is also defined in {other}",
                        fix,
                        code="E-CONFIG-DUPLICATE",
                    )
                )
            servers[server.name] = server
            file_by_server[server.name] = file.name
    if len(servers) > MAX_SERVERS:
        problems.append(
            Problem(
                "",
                "",
                "",
                f"{len(servers)} servers",
                f"define at most {MAX_SERVERS}",
                code="E-CONFIG-TOO-MANY",
            )
        )
    parent, settings = next(iter(parents), None), next(iter(approvals), ApprovalSettings())
    worker = next(iter(workers), None)
    return Config(dict(sorted(servers.items())), file_by_server, parent, settings, worker)


def _parent(top: TomlTableReader, others: list[Direct]) -> list[Direct]:
    """Return the parent proxy in this file's `[egress]`, if any; only one file may have one."""
    egress = top.table("egress")
    parent = egress.one("parent", value_parsers.parent, None)
    egress.finish(keys_of(EgressTable))
    if parent and others:
        egress.note(
            "parent",
            "is also set in another file",
            "keep one of the two",
            code="E-CONFIG-DUPLICATE",
        )
    return [parent] if parent else []


def _approvals(top: TomlTableReader, others: list[ApprovalSettings]) -> list[ApprovalSettings]:
    """Return this file's `[approvals]`, if any; only one file may have one."""
    if not top.has("approvals"):
        return []
    ours = top.table("approvals")
    approvals = ApprovalSettings(
        same_uid=ours.flag("same_uid"), webhook=ours.one("webhook", value_parsers.url, "")
    )
    ours.finish(keys_of(ApprovalsTable))
    if others:
        ours.note(
            "", "is also defined in another file", "keep one of the two", code="E-CONFIG-DUPLICATE"
        )
    return [approvals]


def _worker(top: TomlTableReader, others: list[WorkerListener]) -> list[WorkerListener]:
    """Return this file's `[worker]`, if any; only one file may have one."""
    if top.has_text("worker"):
        top.refuse(
            "worker",
            "is a table here, for other machines",
            'write `worker = "https://…"` in [mcp_servers.NAME.mcpwrap] of a Python server',
            code="E-CONFIG-TYPE",
        )
    if not top.has_table("worker"):
        top.table("worker")  # notes what else it is
        return []
    table = top.table("worker")
    found = python_server.listener(table)
    if others:
        table.note(
            "", "is also defined in another file", "keep one of the two", code="E-CONFIG-DUPLICATE"
        )
    return [found] if found else []


def _servers(top: TomlTableReader) -> list[Server]:
    found = top.table("mcp_servers")
    top.finish(keys_of(ConfigFile))
    servers = []
    for name in found.names():
        if is_server_name(name):
            servers.append(server_table.read(name, found.table(name)))
        else:
            found.note(
                repr(name),
                "is not a valid server name: an account and a unit are named after it",
                f"begin with a-z, go on with a-z 0-9 _ -, use at most {MAX_NAME_CHARS} characters",
                code="E-CONFIG-SERVER-NAME",
            )
    return servers


def _table(file: SourceFile, problems: list[Problem]) -> dict[str, object]:
    """Return the parsed TOML of the file; empty if it cannot be parsed."""
    if len(file.content) > MAX_FILE_BYTES:
        problems.append(
            Problem(
                file.name,
                "",
                "",
                "over 1 MiB",
                "split it into conf.d/*.toml",
                code="E-CONFIG-TOO-LARGE",
            )
        )
        return {}
    try:
        return tomli.loads(file.content.decode())
    except UnicodeDecodeError as error:
        at = file.content.count(b"\n", 0, error.start) + 1
        problem = Problem(
            file.name,
            "",
            "",
            f"not UTF-8 (line {at})",
            "save it as UTF-8",
            code="E-CONFIG-NOT-UTF8",
        )
    except tomli.TOMLDecodeError as error:
        problem = Problem(
            file.name,
            "",
            "",
            f"not TOML: {error}",
            "correct the syntax at that position; toml.io describes it",
            code="E-CONFIG-TOML",
        )
    except ValueError as error:  # a number of thousands of digits
        problem = Problem(
            file.name, "", "", f"not TOML: {error}", "shorten the number", code="E-CONFIG-TOML"
        )
    except RecursionError:
        problem = Problem(
            file.name,
            "",
            "",
            "nested too deeply",
            "remove levels: `[mcp_servers.NAME.mcpwrap.limits]` is the deepest",
            code="E-CONFIG-TOML",
        )
    problems.append(problem)
    return {}

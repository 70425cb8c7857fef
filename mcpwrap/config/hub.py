"""Parser of a hub's table (`members`), and the rules that its members must keep."""

from collections.abc import Iterator, Mapping

from mcpwrap.config import local_program, value_parsers
from mcpwrap.config.file_types.config_file import (
    MAX_MEMBERS,
    HubSettings,
    MemberTable,
    ProgramSettings,
    RemoteSettings,
)
from mcpwrap.config.file_types.fields import keys_of, keys_without
from mcpwrap.config.model import TRANSPORTS, Hub, HubMember, Problem, Server
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.hub.names import is_namespace, max_namespace_chars

# Of all members. The wrapper passes them to the hub's program in one variable, of at most 128 KiB
# (execve(2), MAX_ARG_STRLEN), and agents read 2048 characters.
MAX_INSTRUCTIONS_BYTES = 16 * 1024


def read(name: str, reader: TomlTableReader, ours: TomlTableReader) -> Hub:
    """Return the members. `ours` is the reader of the sub-table `mcpwrap`.

    `shared` is not a key of that: a hub has nothing to share, and it would not make the data of its
    members shared.
    """
    if "_" in name:
        reader.note(
            "",
            f"{name!r} cannot be the name of a hub: agents join it and the names of tools with `_`",
            "write `-` instead of `_`",
            code="E-HUB-NAME",
        )
    for key in local_program.TABLE_KEYS:
        _refuse(reader, key)
    for key in keys_without(HubSettings, ProgramSettings, RemoteSettings):
        _refuse(ours, key)
    table = reader.table("members")
    members = tuple(_member(name, member, table.table(member)) for member in _names(table))
    _expect_room(members, table)
    _expect_each_namespace_once(members, table)
    return Hub(members=members)


def _refuse(reader: TomlTableReader, key: str) -> None:
    reader.refuse(
        key,
        "has no effect on a hub: its members have their own settings",
        "set it for the members, in their own tables",
        code="E-HUB-SETTING",
    )


def _names(table: TomlTableReader) -> list[str]:
    if count := len(table.names()):
        if count > MAX_MEMBERS:
            table.note(
                "",
                f"{count} members",
                f"write at most {MAX_MEMBERS}, or make two hubs",
                code="E-CONFIG-TOO-MANY",
            )
    else:
        table.note(
            "",
            "has no members",
            "write a table `[mcp_servers.HUB.members.SERVER]` for each server that it offers",
            code="E-HUB-EMPTY",
        )
    return sorted(table.valid_names(value_parsers.server_name))


def _member(hub: str, name: str, table: TomlTableReader) -> HubMember:
    def namespace(value: str) -> str:
        return _namespace(hub, value)

    usual = "" if table.has("namespace") else _usual_namespace(hub, name, table)
    transports = table.many("transports", _transport, TRANSPORTS, may_be_empty=False)
    member = HubMember(
        name=name,
        namespace=table.one("namespace", namespace, usual),
        instructions=table.one("instructions", value_parsers.plain_text, ""),
        transports=tuple(each for each in TRANSPORTS if each in transports),
    )
    table.finish(keys_of(MemberTable))
    return member


def _usual_namespace(hub: str, name: str, table: TomlTableReader) -> str:
    """Return the server's own name, which cannot be the namespace at every hub."""
    try:
        return _namespace(hub, name)
    except BadValueError as error:
        table.note("namespace", f"is not set, and {error.problem}", error.fix, code=error.code)
        return name


def _namespace(hub: str, value: str) -> str:
    """Parse a namespace: "" for a member whose tools keep their names."""
    longest = max_namespace_chars(hub)
    if value and not (is_namespace(value) and len(value) <= longest):
        raise BadValueError(
            f"{value!a} is not a valid namespace at this hub",
            f"use A-Z, a-z, 0-9, - and single `_` between them, at most {longest} characters",
            code="E-HUB-NAMESPACE",
        )
    return value


def _transport(value: str) -> str:
    if value not in TRANSPORTS:
        raise BadValueError(
            f"{value!a} is not a transport of a hub's agents",
            'write `transports = ["stdio", "http"]`, or one of the two',
            code="E-HUB-TRANSPORT",
        )
    return value


def _expect_room(members: tuple[HubMember, ...], table: TomlTableReader) -> None:
    size = sum(len(member.instructions.encode()) for member in members)
    if size > MAX_INSTRUCTIONS_BYTES:
        table.note(
            "",
            f"`instructions` of all members have {size} bytes; agents read 2048 characters",
            f"write at most {MAX_INSTRUCTIONS_BYTES} bytes",
            code="E-HUB-INSTRUCTIONS",
        )


def _expect_each_namespace_once(members: tuple[HubMember, ...], table: TomlTableReader) -> None:
    first: dict[str, str] = {}
    for member in members:
        other = first.setdefault(member.namespace, member.name)
        if other != member.name:
            table.note(
                member.name,
                f"{other} has the namespace {member.namespace!a} too",
                "write another `namespace` for one of the two",
                code="E-HUB-NAMESPACE-TWICE",
            )


def membership_problems(
    servers: Mapping[str, Server], file_by_server: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what is wrong with members of hubs, in a configuration that has all servers."""
    for name, server in servers.items():
        if not isinstance(server.runs, Hub):
            continue
        for member in server.runs.members:
            table = f"[mcp_servers.{name}.members.{member.name}]"
            problem = _unfit(member.name, servers, file_by_server[name], table)
            if problem:
                yield problem


def _unfit(member: str, servers: Mapping[str, Server], file: str, table: str) -> Problem | None:
    """Return why this server cannot be a member of a hub; None if it can."""
    server = servers.get(member)
    if server is None:
        return Problem(
            file,
            table,
            "",
            "no server of this name is configured",
            f"write a table `[mcp_servers.{member}]`, or remove this member",
            code="E-HUB-MEMBER-UNKNOWN",
        )
    if isinstance(server.runs, Hub):
        return Problem(
            file,
            table,
            "",
            "is a hub, and a hub cannot be a member",
            f"write the members of {member} instead",
            code="E-HUB-MEMBER-HUB",
        )
    if server.relay == "direct":
        return Problem(
            file,
            table,
            "",
            'has `relay = "direct"`, so its messages would not be judged',
            f'write `relay = "gate"` in [mcp_servers.{member}.mcpwrap]',
            code="E-HUB-MEMBER-DIRECT",
        )
    return None

"""From the configuration to the files, links and accounts that should exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import msgspec

from mcpwrap.config.model import Config, Local, Remote, Server
from mcpwrap.core import spec as specs
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths, units
from mcpwrap.plan.registry import Registry


@dataclass(frozen=True, slots=True)
class Ids:
    """The numbers behind the names in `agents`, as this machine has them."""

    uid_by_account: Mapping[str, int]
    gid_by_group: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Desired:
    """How the machine should be. Files are text by path."""

    uid_by_name: dict[str, int]
    server_files: dict[str, dict[str, str]]  # by server: what a restart makes effective
    sysusers_files: dict[str, str]
    links: dict[str, str]
    admissions: specs.Admissions
    registry: Registry


def desired(config: Config, registry: Registry, ids: Ids) -> Desired:
    """Return how the machine should be.

    Raises:
        UsageError: an agent has no account on this machine, or agents would share what is private.
    """
    servers = config.servers
    return Desired(
        uid_by_name={name: registry.uid_of(name) for name in servers},
        server_files={
            name: _files(server, registry.uid_of(name)) for name, server in servers.items()
        },
        sysusers_files={
            paths.sysusers(name): units.sysusers(name, registry.uid_of(name)) for name in servers
        },
        links={paths.link(name): paths.STUB for name in servers},
        admissions=specs.Admissions(
            by_server={name: _admission(server, ids) for name, server in servers.items()}
        ),
        registry=registry,
    )


def _files(server: Server, uid: int) -> dict[str, str]:
    return {
        paths.spec(server.name): specs.encode(_spec(server)),
        paths.drop_in(server.name): units.drop_in(server, uid),
    }


def _spec(server: Server) -> specs.Spec:
    runs = _local(server)
    return specs.Spec(
        name=server.name,
        command=runs.command,
        args=runs.args,
        cwd=runs.cwd,
        env={key: "".join(map(str, template)) for key, template in runs.env.items()},
        inherits=runs.inherits,
        state=server.state,
        allow_degraded=server.allow_degraded,
        sessions=server.limits.sessions,
        memory_bytes=server.limits.memory_bytes,
        tasks=server.limits.tasks,
    )


def _local(server: Server) -> Local:
    match server.runs:
        case Local() as local:
            return local
        case Remote():
            raise TypeError(f"{server.name}: `unsupported.refuse` comes first")
        case _:
            assert_never(server.runs)


def _admission(server: Server, ids: Ids) -> specs.Admission:
    uids: list[int] = []
    gids: list[int] = []
    for agent in server.agents:
        if agent.startswith("@"):
            gids.append(_id(server, agent, ids.gid_by_group, agent[1:]))
        else:
            uids.append(_id(server, agent, ids.uid_by_account, agent))
    is_private = server.state and not server.shared
    if is_private and (gids or len(uids) > 1):
        raise UsageError(
            "more than one account would share this server's state; nothing was changed",
            where=f"[mcp_servers.{server.name}.mcpwrap], agents",
            fix="name one account in `agents`, or write `shared = true`",
        )
    return specs.Admission(
        uids=tuple(sorted(uids)), gids=tuple(sorted(gids)), inherits=_local(server).inherits
    )


def _id(server: Server, agent: str, id_by_name: Mapping[str, int], name: str) -> int:
    number = id_by_name.get(name)
    if number is not None:
        return number
    kind = "group" if agent.startswith("@") else "account"
    raise UsageError(
        f"this machine has no {kind} {name!r}; nothing was changed",
        where=f"[mcp_servers.{server.name}.mcpwrap], agents",
        fix=f"make the {kind}, or take {agent!r} out",
    )


class Applied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`/var/lib/mcpwrap/applied.json`: what the last complete `apply` made effective."""

    hash_by_server: dict[str, str] = {}
    refused_uids: tuple[int, ...] = ()

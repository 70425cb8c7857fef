"""Desired state of the machine, from the configuration: files, links, accounts, packet rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from mcpwrap.config.model import Config, Local, RemoteServer, SecretRef, Server
from mcpwrap.core.names import egress_address
from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire import sni_front_file, webhook_file
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.errors import UsageError
from mcpwrap.plan import http_listeners, paths, unit_files, workspaces
from mcpwrap.plan.egress import nft_elements, server_egress, squid_instances
from mcpwrap.plan.egress.server_egress import Sources
from mcpwrap.plan.registry import Allocation, Registry


@dataclass(frozen=True, slots=True)
class Ids:
    """UIDs and GIDs of the names in `agents`, as this machine has them."""

    uid_by_account: Mapping[str, int]
    gid_by_group: Mapping[str, int]
    # Accounts listed in the group, and those whose own group it is.
    uids_by_group: Mapping[str, frozenset[int]] = field(default_factory=dict)


PolicyFiles = Mapping[str, tuple[str, ...]]  # by server: the files whose rules concern it


@dataclass(frozen=True, slots=True)
class Desired:
    """Desired state of the machine. Files are text by path."""

    uid_by_name: dict[str, int]
    server_files: dict[str, dict[str, str]]  # by server: what a restart makes effective
    sysusers_files: dict[str, str]
    elements: nft_elements.Elements
    proxies: dict[str, str]  # configuration by Squid instance
    front: str  # the configuration of the front; "" for none
    webhook: str  # the configuration of the webhook; "" for none
    authorities: frozenset[str]  # certificate authorities that must exist
    links: dict[str, str]
    admissions: specs.AccessList
    registry: Registry
    workspaces: dict[str, specs.Workspaces]  # of the servers that have any
    listeners: dict[str, Listener]  # by instance


def desired(
    config: Config, registry: Registry, ids: Ids, sources: Sources, policies: PolicyFiles
) -> Desired:
    """Return the desired state of the machine.

    Raises:
        UsageError: an agent has no account on this machine, or agents would share private data.
    """
    servers = config.servers
    uids = {name: registry.uid_of(name) for name in servers}
    admissions = {
        name: _admission(server, ids, policies.get(name, ())) for name, server in servers.items()
    }
    registry = http_listeners.assigned(squid_instances.assigned(config, registry), admissions)
    listeners = http_listeners.desired_listeners(config, admissions, registry)
    described = workspaces.described(config, admissions)
    return Desired(
        uid_by_name=uids,
        server_files={
            name: _files(server, registry.by_name[name], sources, described.get(name))
            for name, server in servers.items()
        },
        sysusers_files={paths.sysusers(n): unit_files.sysusers(n, uid) for n, uid in uids.items()},
        elements=nft_elements.elements(config, uids, sources) | http_listeners.elements(listeners),
        proxies=server_egress.proxies(config, registry, sources),
        front=_front(config, uids),
        webhook=_webhook(config),
        authorities=_authorities(config),
        links={paths.link(name): paths.STUB for name in servers},
        admissions=specs.AccessList(
            by_server=admissions, same_uid_approves=config.approvals.same_uid
        ),
        registry=registry,
        workspaces=described,
        listeners=listeners,
    )


def _front(config: Config, uids: Mapping[str, int]) -> str:
    served = {
        name: egress_address(uids[name])
        for name, server in config.servers.items()
        if server.egress and server.transparent
    }
    return specs.encode(sni_front_file.Front(by_server=served)) if served else ""


def _webhook(config: Config) -> str:
    url = config.approvals.webhook
    return specs.encode(webhook_file.Webhook(url=url)) if url else ""


def _authorities(config: Config) -> frozenset[str]:
    with_egress = [server for server in config.servers.values() if server.egress]
    return frozenset(s.name if s.intercept else paths.SPLICE_CA for s in with_egress)


def _files(
    server: Server, has: Allocation, sources: Sources, shown: specs.Workspaces | None
) -> dict[str, str]:
    uid = has.uid
    spec = msgspec.structs.replace(_spec(server, uid, sources), workspaces=shown)
    files = {
        paths.spec(server.name): specs.encode(spec),
        paths.drop_in(server.name): unit_files.drop_in(server, uid, has.squid or ""),
    }
    if server.egress and server.transparent:
        files[paths.resolv_conf(server.name)] = server_egress.resolv_conf(uid)
    return files


def _spec(server: Server, uid: int, sources: Sources) -> specs.ServerSpec:
    runs = _program(server)
    return specs.ServerSpec(
        name=server.name,
        command=runs.command,
        args=runs.args,
        cwd=runs.cwd,
        egress_env=server_egress.variables(server, uid, sources),
        env={variable: tuple(map(_part, template)) for variable, template in runs.env.items()},
        inherits=runs.inherits,
        inherits_any=runs.inherits_any,
        secrets=tuple(sorted(server.secrets())),
        secret_files=tuple(sorted(server.secret_files)),
        state=server.state,
        writable_command=server.writable_command,
        allow_degraded=server.allow_degraded,
        idle_exit_s=server.idle_exit_s,
        sessions=server.limits.sessions,
        memory_bytes=server.limits.memory_bytes,
        tasks=server.limits.tasks,
        cpu_percent=server.limits.cpu_percent,
        state_bytes=server.limits.state_bytes,
        cache_bytes=server.limits.cache_bytes,
        remote=_remote(server.runs) if isinstance(server.runs, RemoteServer) else None,
        umask=server.umask,
    )


def _remote(runs: RemoteServer) -> specs.RemoteSpec:
    headers = {name: tuple(map(_part, template)) for name, template in runs.headers.items()}
    if key := runs.bearer_token_env_var:
        headers["Authorization"] = ("Bearer ", specs.SecretPart(key))
    return specs.RemoteSpec(url=runs.url, headers=headers, oauth=runs.oauth)


def _part(part: str | SecretRef) -> str | specs.SecretPart:
    return specs.SecretPart(part.key) if isinstance(part, SecretRef) else part


def _program(server: Server) -> Local:
    """Return the program that the wrapper starts: for a URL, the remote program."""
    match server.runs:
        case Local() as local:
            return local
        case RemoteServer():
            return Local(command=paths.REMOTE_PROGRAM)
        case _:
            assert_never(server.runs)


def _admission(server: Server, ids: Ids, policy: tuple[str, ...]) -> specs.AccessRule:
    uids: list[int] = []
    gids: list[int] = []
    for agent in server.agents:
        if agent.startswith("@"):
            gids.append(_id(server, agent, ids.gid_by_group, agent[1:]))
        else:
            uids.append(_id(server, agent, ids.uid_by_account, agent))
    private = " and ".join(
        what
        for what, is_there in (
            ("state", server.state),
            ("cache", server.cache),
            ("secrets", server.secrets()),
            ("workspace", server.workspace),
        )
        if is_there
    )
    if private and not server.shared and (gids or len(uids) > 1):
        raise UsageError(
            f"more than one account would share this server's {private}; nothing was changed",
            where=f"[mcp_servers.{server.name}.mcpwrap], agents",
            fix="name one account in `agents`, or write `shared = true`",
            code="E-PLAN-NOT-SHARED",
        )
    runs = _program(server)
    members = {uid for group in _groups(server) for uid in ids.uids_by_group.get(group, ())} - {0}
    return specs.AccessRule(
        uids=tuple(sorted(uids)),
        gids=tuple(sorted(gids)),
        inherits=runs.inherits,
        inherits_any=runs.inherits_any,
        relay=server.relay,
        audit=server.audit,
        # root is not an agent, whatever groups it is in.
        http_uids=tuple(sorted({*uids, *members} - {0})) if server.speaks_http() else (),
        members=tuple(sorted(members)),
        login=server.has_oauth(),
        policy=policy,
        sessions=server.limits.sessions,
    )


def _groups(server: Server) -> list[str]:
    return [agent[1:] for agent in server.agents if agent.startswith("@")]


def _id(server: Server, agent: str, id_by_name: Mapping[str, int], name: str) -> int:
    number = id_by_name.get(name)
    if number is not None:
        return number
    kind = "group" if agent.startswith("@") else "account"
    raise UsageError(
        f"this machine has no {kind} {name!r}; nothing was changed",
        where=f"[mcp_servers.{server.name}.mcpwrap], agents",
        fix=f"create the {kind}, or remove {agent!r} from `agents`",
        code="E-PLAN-NO-ACCOUNT",
    )

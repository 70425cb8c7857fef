"""Desired state of the machine, from the configuration: files, links, accounts, packet rules."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from mcpwrap.config.model import (
    Config,
    Hub,
    Local,
    Python,
    RemoteServer,
    SecretRef,
    Server,
    Template,
)
from mcpwrap.core.names import account_of, egress_address
from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire import sni_front_file, webhook_file
from mcpwrap.core.wire.execution import execute_api
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.errors import UsageError
from mcpwrap.plan import http_listeners, hubs, paths, run_slots, unit_files, workspaces
from mcpwrap.plan.egress import nft_elements, server_egress, squid_instances
from mcpwrap.plan.egress.server_egress import MachineSoftware
from mcpwrap.plan.registry import Allocation, Registry


@dataclass(frozen=True, slots=True)
class Ids:
    """UIDs and GIDs of the names in `agents`, as this machine has them."""

    uid_by_account: Mapping[str, int]
    gid_by_group: Mapping[str, int]
    # Accounts listed in the group, and those whose own group it is.
    uids_by_group: Mapping[str, frozenset[int]] = field(default_factory=dict)


Servers = Mapping[str, Server]  # all of the configuration, by name
PolicyFiles = Mapping[str, tuple[str, ...]]  # by server: the files whose rules concern it


@dataclass(frozen=True, slots=True)
class Desired:
    """Desired state of the machine. Files are text by path."""

    uid_by_name: dict[str, int]  # of servers
    uid_by_slot: dict[str, int]  # of run slots
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
    job_files: dict[str, dict[str, str]]  # of run slots, by instance
    worker: str  # the configuration of the worker; "" for none
    worker_drop_ins: dict[str, str]

    def uid_by_account(self) -> dict[str, int]:
        """Return the UIDs of all accounts of servers and run slots."""
        return {account_of(n): uid for n, uid in (self.uid_by_name | self.uid_by_slot).items()}


def desired(
    config: Config,
    registry: Registry,
    ids: Ids,
    software: MachineSoftware,
    policies: PolicyFiles,
) -> Desired:
    """Return the desired state of the machine.

    Raises:
        UsageError: an agent has no account on this machine, or agents would share private data.
    """
    servers = config.servers
    uids = {name: registry.uid_of(name) for name in servers}
    slots = {name: registry.uid_of(name) for name in run_slots.names(config)}
    rules = {
        name: _admission(server, servers, ids, policies.get(name, ()))
        for name, server in servers.items()
    }
    admissions = hubs.with_members(rules, config)
    registry = http_listeners.assigned(squid_instances.assigned(config, registry), admissions)
    listeners = http_listeners.desired_listeners(config, admissions, registry)
    described = workspaces.described(config, admissions)
    return Desired(
        uid_by_name=uids,
        uid_by_slot=slots,
        server_files={
            name: _files(server, servers, registry.by_name[name], software, described.get(name))
            for name, server in servers.items()
        },
        sysusers_files=_sysusers_files(uids, slots),
        elements=nft_elements.elements(config, uids, software.sources)
        | nft_elements.refused(slots.values())
        | http_listeners.elements(listeners),
        proxies=server_egress.proxies(config, registry, software),
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
        job_files=run_slots.files(config),
        worker=run_slots.worker(config),
        worker_drop_ins=run_slots.worker_drop_ins(config),
    )


def _sysusers_files(uids: Mapping[str, int], slots: Mapping[str, int]) -> dict[str, str]:
    """Return a file for each server and pool: a pool is named as its server."""
    by_file: dict[str, dict[str, int]] = {name: {name: uid} for name, uid in uids.items()}
    for name, uid in slots.items():
        by_file.setdefault(name.rpartition("/")[0], {})[name] = uid
    return {paths.sysusers(name): unit_files.sysusers(found) for name, found in by_file.items()}


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
    server: Server,
    servers: Servers,
    has: Allocation,
    software: MachineSoftware,
    shown: specs.Workspaces | None,
) -> dict[str, str]:
    uid = has.uid
    spec = msgspec.structs.replace(_spec(server, servers, uid, software), workspaces=shown)
    files = {
        paths.spec(server.name): specs.encode(spec),
        paths.drop_in(server.name): unit_files.drop_in(server, uid, has.squid or ""),
    }
    if server.egress and server.transparent:
        files[paths.resolv_conf(server.name)] = server_egress.resolv_conf(uid)
    return files


def _spec(
    server: Server, servers: Servers, uid: int, software: MachineSoftware
) -> specs.ServerSpec:
    runs = _program(server, servers)
    return specs.ServerSpec(
        name=server.name,
        command=runs.command,
        args=runs.args,
        cwd=runs.cwd,
        egress_env=server_egress.variables(server, uid, software),
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
        python=_python(server, server.runs) if isinstance(server.runs, Python) else None,
        hub=hubs.spec(server.runs, servers) if isinstance(server.runs, Hub) else None,
    )


def _remote(runs: RemoteServer) -> specs.RemoteSpec:
    headers = {name: tuple(map(_part, template)) for name, template in runs.headers.items()}
    if key := runs.bearer_token_env_var:
        headers["Authorization"] = ("Bearer ", specs.SecretPart(key))
    return specs.RemoteSpec(url=runs.url, headers=headers, oauth=runs.oauth)


def _python(server: Server, runs: Python) -> specs.PythonSpec:
    return specs.PythonSpec(
        python=runs.interpreter,
        packages=runs.packages,
        installs=bool(server.egress) and runs.worker is None,
        worker=f"https://{paths.place(runs.worker)}" if runs.worker else "",
        ca=runs.worker_ca,
        limits=runs.limits,
        cache_bytes=server.limits.cache_bytes,
    )


def _part(part: str | SecretRef) -> str | specs.SecretPart:
    return specs.SecretPart(part.key) if isinstance(part, SecretRef) else part


def _program(server: Server, servers: Servers) -> Local:
    """Return the program that the wrapper starts, which may be one of mcpwrap's."""
    match server.runs:
        case Local() as local:
            return local
        case RemoteServer():
            return Local(command=paths.REMOTE_PROGRAM)
        case Python():
            token: Template = (SecretRef(execute_api.TOKEN),)
            return Local(command=paths.PYTHON_PROGRAM, env={execute_api.TOKEN: token})
        case Hub():
            return hubs.program(server.name, server.runs, servers)
        case _:
            assert_never(server.runs)


def _admission(
    server: Server, servers: Servers, ids: Ids, policy: tuple[str, ...]
) -> specs.AccessRule:
    uids: list[int] = []
    gids: list[int] = []
    for agent in server.agents:
        if agent.startswith("@"):
            gids.append(_id(server, agent, ids.gid_by_group, agent[1:]))
        else:
            uids.append(_id(server, agent, ids.uid_by_account, agent))
    private = " and ".join(_private(server))
    if private and not server.shared and (gids or len(uids) > 1):
        raise UsageError(
            f"more than one account would share this server's {private}; nothing was changed",
            where=f"[mcp_servers.{server.name}.mcpwrap], agents",
            fix="name one account in `agents`, or write `shared = true`",
            code="E-PLAN-NOT-SHARED",
        )
    runs = _program(server, servers)
    members = {uid for group in _groups(server) for uid in ids.uids_by_group.get(group, ())} - {0}
    return specs.AccessRule(
        uids=tuple(sorted(uids)),
        gids=tuple(sorted(gids)),
        inherits=runs.inherits,
        inherits_any=runs.inherits_any,
        relay=server.relay,
        pins=_pins(server),
        audit=server.audit,
        # root is not an agent, whatever groups it is in.
        http_uids=tuple(sorted({*uids, *members} - {0})) if server.speaks_http() else (),
        members=tuple(sorted(members)),
        login=server.has_oauth(),
        policy=policy,
        sessions=server.limits.sessions,
        executes=isinstance(server.runs, Python),
        workspaces=tuple(one.path for one in server.workspace if one.is_writable),
        projects=tuple(one.path for one in server.projects),
        project_by_url=dict(sorted(server.http.items())),
        previews=dict(server.previews),
    )


def _pins(server: Server) -> specs.Pins:
    """Return how its definitions are accepted.

    Those of a hub are its members', and those of a Python server mcpwrap's own.
    """
    has_none = isinstance(server.runs, Hub | Python) or server.relay == "direct"
    return "off" if has_none else server.pins


def _private(server: Server) -> Iterator[str]:
    """Yield the names of what the agents of a server would share.

    A Python server has no data of its agents but results, which it gives to whoever has their
    unguessable URI; its secret is the token of the worker.
    """
    if server.state:
        yield "state"
    if not isinstance(server.runs, Python):
        if server.cache:
            yield "cache"
        if server.secrets():
            yield "secrets"
    if server.workspace:
        yield "workspace"
    if server.projects:
        yield "projects"


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

"""Egress of servers: allowlists, proxy variables, and lines of their units."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from mcpwrap.config.model import Config, Destination, Group, Server
from mcpwrap.core.distribution import Distribution
from mcpwrap.core.names import EGRESS_PORT, egress_address
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths
from mcpwrap.plan.egress import squid_conf
from mcpwrap.plan.egress.squid_conf import SquidListener
from mcpwrap.plan.egress.squid_instances import OPEN
from mcpwrap.plan.registry import Registry

# Each runtime has its own name for the file of certificates it trusts.
_CA_VARIABLES = (
    "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "AWS_CA_BUNDLE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Package registry, as this machine's own configuration names it."""

    hosts: tuple[Destination, ...]
    variables: Mapping[str, str] = field(default_factory=dict)  # that point npx or uvx to it


Sources = Mapping[str, PackageSource]  # by the name of a group


@dataclass(frozen=True, slots=True)
class MachineSoftware:
    """Software of this machine that servers use: package registries, and paths of programs."""

    sources: Sources
    distribution: Distribution


def hosts(server: Server, sources: Sources) -> tuple[Destination, ...]:
    """Return the allowlist, each entry once, groups replaced by their hosts.

    Raises:
        UsageError: this machine's configuration has no registry for a group.
    """
    found: list[Destination] = []
    for entry in server.egress:
        match entry:
            case Destination():
                found.append(entry)
            case Group(name):
                found += _source(server, name, sources).hosts
            case _:
                assert_never(entry)
    return tuple(dict.fromkeys(found))


def variables(server: Server, uid: int, software: MachineSoftware) -> dict[str, str]:
    """Return the variables in a server's environment for its cache and its egress."""
    given: dict[str, str] = {}
    if server.cache:
        folder = f"{paths.CACHES}/{server.name}"
        given |= {
            "XDG_CACHE_HOME": folder,
            "npm_config_cache": f"{folder}/npm",
            "UV_CACHE_DIR": f"{folder}/uv",
        }
    if not server.egress:
        return given
    proxy = f"http://{egress_address(uid)}:{EGRESS_PORT}"
    for name in ("HTTPS_PROXY", "HTTP_PROXY"):
        given |= {name: proxy, name.lower(): proxy}
    given["NODE_USE_ENV_PROXY"] = "1"  # Node 22.21 and 24.5 and later
    if server.direct:
        beyond = ",".join(sorted({direct.address for direct in server.direct}))
        given |= {"NO_PROXY": beyond, "no_proxy": beyond}
    system = software.distribution.system_cas
    trusted = paths.ca_bundle(server.name) if server.intercept else system
    given |= dict.fromkeys(_CA_VARIABLES, trusted)
    for entry in server.egress:
        if isinstance(entry, Group):
            given |= _source(server, entry.name, software.sources).variables
    return given


def proxies(config: Config, registry: Registry, software: MachineSoftware) -> dict[str, str]:
    """Return the configuration of each Squid instance that serves a server."""
    found: dict[str, list[SquidListener]] = defaultdict(list)
    for name, server in config.servers.items():
        if instance := registry.by_name[name].squid:
            found[instance].append(
                SquidListener(
                    name=name,
                    address=egress_address(registry.uid_of(name)),
                    hosts=hosts(server, software.sources),
                    requests=server.requests,
                )
            )
    return {
        instance: squid_conf.intercepted(
            instance, listeners, config.parent, software.distribution.certgen
        )
        if instance.startswith(OPEN)
        else squid_conf.spliced(instance, listeners, config.parent)
        for instance, listeners in found.items()
    }


def unit_lines(server: Server, uid: int) -> Iterator[str]:
    """Yield the lines of a wrapper's drop-in, in its section [Service]."""
    if not server.has_network():
        yield "# Without an allowlist it has no network: not even a loopback interface is shared."
        yield "PrivateNetwork=yes"
    for direct in server.direct:
        yield f"# By `direct`, not through Squid. The packet rules allow port {direct.port} alone."
        yield f"IPAddressAllow={direct.address}"
    if server.uses_local_worker():
        yield "# The worker of this machine."
        yield f"IPAddressAllow={worker_file.ADDRESS}"
    if server.egress:
        yield "# Its own egress address; the packet rules enforce the same, for each port of it."
        yield f"IPAddressAllow={egress_address(uid)}"
        if server.transparent:
            yield "# The resolver that answers every name with that address."
            yield f"BindReadOnlyPaths={paths.resolv_conf(server.name)}:/etc/resolv.conf"
        if server.intercept:
            yield f"BindReadOnlyPaths={paths.ca_bundle(server.name)}"
    if server.cache:
        yield from _cache(server)


def _cache(server: Server) -> Iterator[str]:
    yield "# Downloads, for the next session."
    yield f"CacheDirectory=mcpwrap/{server.name}"
    if server.uses_local_worker():
        yield "# Runs, which have its group, pass to the packages in it."
        yield "CacheDirectoryMode=0710"


def unit_section(server: Server, uid: int, instance: str) -> Iterator[str]:
    """Yield the lines of its section [Unit], for a server with an allowlist."""
    own = paths.address_unit(egress_address(uid))
    out = paths.proxy_unit(instance)
    if server.transparent:
        out += f" {paths.FRONT_UNIT}"
    yield "[Unit]"
    yield "# The packet rules refuse its connections from any address but its own."
    yield f"Requires={own}"
    yield f"After={own}"
    yield "# Its egress, without which it starts nevertheless."
    yield f"Wants={out}"
    yield f"After={out}"


def resolv_conf(uid: int) -> str:
    """Return a resolv.conf(5) that names the front, at this wrapper's own address."""
    return (
        f"{paths.WRITTEN}nameserver {egress_address(uid)}\nsearch .\noptions timeout:2 attempts:2\n"
    )


def _source(server: Server, name: str, sources: Sources) -> PackageSource:
    if name in sources:
        return sources[name]
    raise UsageError(
        f"this machine's configuration has no registry for @{name}; nothing was changed",
        where=f"[mcp_servers.{server.name}.mcpwrap], egress",
        fix=_FIX_BY_GROUP[name],
        code="E-PLAN-PACKAGE-REGISTRY",
    )


_FIX_BY_GROUP = {
    "npm": "install npm, or write `registry = …` to /etc/npmrc; or list the hosts instead",
    "pypi": "install pip, or write `index-url = …` to /etc/pip.conf; or list the hosts instead",
}

"""State of the machine for `mcpwrap wrap`: servers, names, secrets without a value."""

from mcpwrap.cli.agents.discovery import FileOwner, known
from mcpwrap.cli.agents.wrap.decision import AppliedState
from mcpwrap.config.model import Config, Server
from mcpwrap.config.parse import parse
from mcpwrap.core import oauth_key
from mcpwrap.core.secrets.at_rest import Settings
from mcpwrap.linux import accounts
from mcpwrap.machine import observer, package_sources


def machine(who: FileOwner) -> AppliedState:
    """Return what there is for whoever wraps.

    Raises:
        UsageError: the configuration of this machine is wrong.
    """
    config = parse(observer.config_files()) if observer.has_configuration() else Config({}, {})
    applied, settings = known(who), observer.secret_settings()
    servers = {n: one for n, one in config.servers.items() if _may_use(one, who)}
    return AppliedState(
        known=applied,
        servers=servers,
        taken=frozenset({*config.servers, *observer.registry().by_name}),
        sources=frozenset(package_sources.found()),
        unset={name: keys for name, one in servers.items() if (keys := _unset(one, settings))},
    )


def _may_use(server: Server, who: FileOwner) -> bool:
    groups = [name[1:] for name in server.agents if name.startswith("@")]
    return who.account in server.agents or any(
        who.uid in accounts.uids_in(group) for group in groups
    )


def _unset(server: Server, settings: Settings) -> tuple[str, ...]:
    return tuple(
        key
        for key in sorted(server.secrets() - {oauth_key.KEY})
        if (found := settings.of(server.name, key)) is None or not found.is_set
    )

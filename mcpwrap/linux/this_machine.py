"""The plan for this machine: its configuration against how it is. Reads only."""

from collections.abc import Mapping

from mcpwrap.config.parse import parse
from mcpwrap.core import oauth_key
from mcpwrap.core.names import ACCOUNT_PREFIX
from mcpwrap.linux import accounts, observe, package_sources, way_out
from mcpwrap.linux.executables import check
from mcpwrap.plan import listeners, registry, widenings
from mcpwrap.plan.desired import Desired, desired
from mcpwrap.plan.diff import Retired, diff
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step


def notes() -> list[str]:
    """Return a line for each boundary that is widened, and each server that does not start."""
    settings = observe.secret_settings()
    config = parse(observe.config_files())
    not_there = {name: check.missing(server) for name, server in config.servers.items()}
    return [
        *widenings.of(config),
        *(f"{name} does not start: {line}" for name, lines in not_there.items() for line in lines),
    ] + [
        f"{name} does not start before `sudo mcpwrap secret set {name} {key}`"
        for name, key in sorted(observe.declared_secrets())
        if key != oauth_key.KEY  # which its start makes
        and not ((setting := settings.of(name, key)) and setting.is_set)
    ]


def steps(retired: Retired = Retired.KEEP) -> list[Step]:
    """Return what root should do now. Anybody may ask; only root sees the packet rules.

    Raises:
        McpwrapError: the configuration is wrong, or the registry cannot be read.
    """
    have = observe.observe()
    return diff(_wanted(have), have, retired)


def wanted(added: Mapping[str, str] | None = None) -> Desired:
    """Return how this machine should be; with `added`, texts by path, once these files are there.

    Raises:
        McpwrapError: the configuration is wrong, or the registry cannot be read.
    """
    return _wanted(observe.observe(), added)


def _wanted(have: Observed, added: Mapping[str, str] | None = None) -> Desired:
    config = parse(observe.config_files(added))
    check.expect_roots(config)
    way_out.expect_possible(config)
    known = {n.removeprefix(ACCOUNT_PREFIX): uid for n, uid in have.uid_by_account.items()}
    before = listeners.adopted(registry.adopt(observe.registry(), known), have.files)
    allocated = registry.allocate(
        config.servers,
        before,
        accounts.taken_ids(config.servers, {a.uid for a in before.by_name.values()}),
    )
    return desired(config, allocated, observe.ids(config), package_sources.found())

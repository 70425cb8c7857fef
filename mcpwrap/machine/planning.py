"""Planner for this machine: its configuration compared with its observed state. Reads only.

The prerequisites of egress on this machine (Squid, OpenSSL) are checked before anything is made.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.config.model import Config
from mcpwrap.config.parse import parse
from mcpwrap.config.policy.parse import files_by_server
from mcpwrap.core import names
from mcpwrap.core.names import ACCOUNT_PREFIX
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts
from mcpwrap.linux.accounts import OwnedIds
from mcpwrap.machine import observer, package_sources, program_check, secret_index_file
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.plan import http_listeners, paths, registry, widened_boundaries
from mcpwrap.plan.desired import Desired, desired
from mcpwrap.plan.diff.diff import RetirementPolicy, diff
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.registry import Registry
from mcpwrap.plan.steps import Step

# By what `apply` and the units run; `squid` without OpenSSL has no `security_file_certgen`.
_PACKAGE_BY_PATH = {
    "/usr/sbin/squid": "squid-openssl",
    paths.CERTGEN: "squid-openssl",
    "/usr/share/squid/errors/templates": "squid-openssl",
    "/usr/bin/openssl": "openssl",
}


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """Desired state of this machine, the steps that lead to it, and what was not examined."""

    wanted: Desired
    steps: list[Step]
    notes: list[str]


def planned(
    retired: RetirementPolicy = RetirementPolicy.KEEP, added: Mapping[str, str] | None = None
) -> MachinePlan:
    """Return what root should do now. Anybody may ask; only root sees all of the machine.

    With `added`, texts by path, as it will be once these files are there.

    Raises:
        McpwrapError: the configuration is wrong, or the registry cannot be read.
    """
    observer.expect_roots_own()
    have = observer.observe()
    config = parse(observer.config_files(added))
    program_check.expect_roots(config)
    _expect_squid(config)
    allocated, owned = _allocated(config, have)
    policies = files_by_server(policy_files(), config.servers)
    want = desired(config, allocated, observer.ids(config), package_sources.found(), policies)
    return MachinePlan(want, diff(want, have, retired), [*map(_unfinished, owned.unfinished)])


def steps(retired: RetirementPolicy = RetirementPolicy.KEEP) -> list[Step]:
    """Return the steps of what is planned."""
    return planned(retired).steps


def notes() -> list[str]:
    """Return a line for each boundary that is widened, and each server that does not start."""
    settings = secret_index_file.read()
    config = parse(observer.config_files())
    not_there = {name: program_check.missing(server) for name, server in config.servers.items()}
    return [
        *vanished(),
        *widened_boundaries.widenings_of(config),
        *(f"{name} does not start: {line}" for name, lines in not_there.items() for line in lines),
    ] + [
        f"{name} does not start before `sudo mcpwrap secret set {name} {key}`"
        for name, key in sorted(observer.declared_secrets())
        if key != names.OAUTH_KEY  # which its start makes
        and not ((setting := settings.of(name, key)) and setting.is_set)
    ]


def vanished() -> list[str]:
    """Return a line for each server whose policy is not there, though nobody has applied that."""
    return [
        f"{name}: its policy {', '.join(files)} is gone: the gate goes by what it has read of it, "
        "or refuses sessions; restore it, or `sudo mcpwrap apply`, if that is meant"
        for name, files in observer.vanished_policies().items()
    ]


def _allocated(config: Config, have: Observed) -> tuple[Registry, OwnedIds]:
    """Return the registry as it should be, and what was found where it has new UIDs."""
    known = {n.removeprefix(ACCOUNT_PREFIX): uid for n, uid in have.uid_by_account.items()}
    before = http_listeners.adopted(registry.adopt(observer.registry(), known), have.files)
    used = {allocation.uid for allocation in before.by_name.values()}
    # Only where an account is to be made: the processes of ours are our own.
    running = frozenset() if config.servers.keys() <= known.keys() else accounts.running_ids()
    taken = accounts.taken_by_others(used) | (running - {*known.values()})
    new = registry.without_uid(config.servers, before, taken)
    owned = accounts.owned_ids() if new and os.geteuid() == 0 else OwnedIds()
    taken |= accounts.taken_near(new, used | taken | owned.ids)
    return registry.allocate(config.servers, before, taken, owned.ids), owned


def _unfinished(folder: str) -> str:
    return (
        f"{folder} has more than {accounts.MAX_NAMES} names: of the files further down none was "
        "looked at for a UID that is new now"
    )


def _expect_squid(config: Config) -> None:
    """Refuse servers with `egress` on a machine that has no Squid to judge it.

    Raises:
        UsageError: with the package that is missing.
    """
    wanting = [name for name, server in config.servers.items() if server.egress]
    missing = [path for path in _PACKAGE_BY_PATH if not Path(path).exists()]
    if wanting and missing:
        raise UsageError(
            f"`egress` needs {missing[0]}, which is not there; nothing was changed",
            where=f"[mcp_servers.{wanting[0]}.mcpwrap], egress",
            fix=f"`apt install {_PACKAGE_BY_PATH[missing[0]]}`",
        )

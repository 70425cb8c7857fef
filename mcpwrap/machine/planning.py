"""Planner for this machine: its configuration compared with its observed state. Reads only.

The mechanisms that it needs, and the egress prerequisites of this machine (Squid, OpenSSL), are
checked before any step.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.config.model import Config, Server
from mcpwrap.config.parse import parse
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import files_by_server, parse_policy
from mcpwrap.core import names
from mcpwrap.core.distribution import Distribution, Software
from mcpwrap.core.names import name_of
from mcpwrap.core.wire.execution import execute_api
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts, os_release
from mcpwrap.linux.accounts import OwnedIds
from mcpwrap.machine import observer, package_sources, program_check, secret_index_file
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.machine.prerequisites import labels, mechanisms
from mcpwrap.plan import http_listeners, hubs, registry, run_slots, widened_boundaries
from mcpwrap.plan.desired import Desired, desired
from mcpwrap.plan.diff.diff import RetirementPolicy, diff
from mcpwrap.plan.egress.server_egress import MachineSoftware
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.registry import Registry
from mcpwrap.plan.steps import Step


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """Desired state of this machine, the steps that lead to it, and the parts not examined."""

    wanted: Desired
    steps: list[Step]
    notes: list[str]


def planned(
    retired: RetirementPolicy = RetirementPolicy.KEEP, added: Mapping[str, str] | None = None
) -> MachinePlan:
    """Return the plan for this machine. Every account may call it; only root sees all.

    `added` has texts by path, which count as files of the configuration.

    Raises:
        McpwrapError: the configuration is wrong, the registry cannot be read, or there are steps,
            and this machine lacks a mechanism that they need.
    """
    mechanisms.expect_systemd()
    observer.expect_roots_own()
    have = observer.observe()
    config = parse(observer.config_files(added))
    program_check.expect_roots(config)
    labels.expect_programs(config)
    words = os_release.distribution()
    _expect_squid(config, words)
    allocated, owned = _allocated(config, have)
    policies = files_by_server(policy_files(), config.servers)
    software = MachineSoftware(package_sources.found(words), words)
    want = desired(config, allocated, observer.ids(config), software, policies)
    todo = diff(want, have, retired)
    if todo:  # else the machine works as it is, or `doctor` says why it does not
        mechanisms.expect(config)
    return MachinePlan(want, todo, [*map(_unfinished, owned.unfinished)])


def steps(retired: RetirementPolicy = RetirementPolicy.KEEP) -> list[Step]:
    """Return the steps of the plan."""
    return planned(retired).steps


def notes() -> list[str]:
    """Return a line for each boundary that is widened, and each server that does not start."""
    settings = secret_index_file.read()
    config = parse(observer.config_files())
    not_there = {name: program_check.missing(server) for name, server in config.servers.items()}
    return [
        *vanished(),
        *policy_errors(),
        *mechanisms.notes(config),
        *labels.notes(config),
        *widened_boundaries.widenings_of(config),
        *hubs.notes(config),
        *(f"{name} does not start: {line}" for name, lines in not_there.items() for line in lines),
    ] + [
        f"{name} does not start before `sudo mcpwrap secret set {name} {key}`"
        for name, key in sorted(observer.declared_secrets())
        if not _is_made_at_start(config.servers[name], key)
        and not ((setting := settings.of(name, key)) and setting.is_set)
    ]


def _is_made_at_start(server: Server, key: str) -> bool:
    """Return whether root makes this secret when the server starts."""
    return key == names.OAUTH_KEY or (server.uses_local_worker() and key == execute_api.TOKEN)


def vanished() -> list[str]:
    """Return a line for each server whose policy files are gone without an `apply` since."""
    return [
        f"{name}: its policy {', '.join(files)} is gone: the gate keeps the policy that it has "
        "read, or refuses sessions; restore it, or `sudo mcpwrap apply`, if that is intended"
        for name, files in observer.vanished_policies().items()
    ]


def policy_errors() -> list[str]:
    """Return a line if the policy of this machine has errors."""
    try:
        parse_policy(policy_files())
    except PolicyError as error:
        note = (
            f"the policy has errors ({len(error.flaws)}), which `mcpwrap policy check` shows: "
            "the gate keeps the policy that it has read, and at its next start refuses sessions"
        )
        return [note]
    return []


def _allocated(config: Config, have: Observed) -> tuple[Registry, OwnedIds]:
    """Return the desired registry, and the IDs that were found in use if it has new UIDs."""
    wanted = [*config.servers, *run_slots.names(config)]
    known = {name_of(account): uid for account, uid in have.uid_by_account.items()}
    before = http_listeners.adopted(registry.adopt(observer.registry(), known), have.files)
    used = {allocation.uid for allocation in before.by_name.values()}
    # Only if an account must be created: processes of existing wrappers are mcpwrap's own.
    running = frozenset() if known.keys() >= set(wanted) else accounts.running_ids()
    taken = accounts.taken_by_others(used) | (running - {*known.values()})
    new = registry.without_uid(wanted, before, taken)
    owned = accounts.owned_ids() if new and os.geteuid() == 0 else OwnedIds()
    taken |= accounts.taken_near(new, used | taken | owned.ids)
    return registry.allocate(wanted, before, taken, owned.ids), owned


def _unfinished(folder: str) -> str:
    return (
        f"{folder} has more than {accounts.MAX_NAMES} names: the files further down were not "
        "searched for owners with the new UIDs"
    )


def _expect_squid(config: Config, distribution: Distribution) -> None:
    """Refuse servers with `egress` on a machine without the egress prerequisites.

    Raises:
        UsageError: a file is missing; the fix names its package.
    """
    wanting = [name for name, server in config.servers.items() if server.egress]
    # Files that `apply` and the units use; Squid without OpenSSL has no `certgen`.
    needed: dict[str, Software] = {
        "/usr/sbin/squid": "squid",
        distribution.certgen: "squid",
        "/usr/share/squid/errors/templates": "squid",
        "/usr/bin/openssl": "openssl",
    }
    missing = [path for path in needed if not Path(path).exists()]
    if wanting and missing:
        raise UsageError(
            f"`egress` needs {missing[0]}, which does not exist; nothing was changed",
            where=f"[mcp_servers.{wanting[0]}.mcpwrap], egress",
            fix=distribution.install(needed[missing[0]]),
            code="E-EGRESS-NOT-INSTALLED",
        )

"""Mechanisms that `apply` needs: what needs each, its probe, and the fix where it is missing.

They are tried before the first step, so a machine without one is not changed.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mcpwrap.config.model import Config
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.machine.prerequisites import environment, probes
from mcpwrap.machine.prerequisites.environment import Environment

_WHERE = "this machine"
_RUN = "or use `mcpwrap run`, which needs neither root nor systemd"
_NEWER_KERNEL = "`wsl.exe --update` in Windows installs a newer kernel; then `wsl.exe --shutdown`"
_NESTS = "`security.nesting=true` in LXD and Incus, `lxc.include` of nesting.conf in LXC"
_NESTING = f"let the container use it: {_NESTS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Mechanism of the kernel or of systemd."""

    name: str
    is_needed: Callable[[Config], bool]
    probe: Callable[[], str]  # the reason why it is missing, or ""
    is_roots: bool  # only root can try it
    fix_by_environment: Mapping[Environment, str]
    code: str


@dataclass(frozen=True, slots=True)
class MissingMechanism:
    """Mechanism that cannot be used here, and the reason."""

    mechanism: Mechanism
    reason: str


def _always(_: Config) -> bool:
    return True


def _has_code(config: Config) -> bool:
    """Return whether anything is to be started. Without it, `apply` only takes away."""
    return bool(config.servers or config.worker)


def _needs_landlock(config: Config) -> bool:
    servers = config.servers.values()
    return any(not server.allow_degraded for server in servers) or bool(config.pools())


def _has_workspace(config: Config) -> bool:
    return any(server.workspace or server.projects for server in config.servers.values())


_SYSTEMD_WAYS = {
    Environment.MACHINE: f"boot this machine with systemd {probes.OLDEST_SYSTEMD} or later",
    Environment.WSL: "write `[boot]` and below it `systemd=true` into /etc/wsl.conf, run "
    "`wsl.exe --shutdown` in Windows, and repeat the command",
    Environment.CONTAINER: f"start the container with systemd {probes.OLDEST_SYSTEMD} or later as "
    "its first process, as LXC does",
}
SYSTEMD = Mechanism(
    name="systemd",
    is_needed=_always,
    probe=probes.systemd,
    is_roots=False,
    fix_by_environment=_SYSTEMD_WAYS,
    code="E-MACHINE-SYSTEMD",
)
MECHANISMS = (
    SYSTEMD,
    Mechanism(
        name="version of systemd",
        is_needed=_always,
        probe=probes.systemd_version,
        is_roots=False,
        fix_by_environment=_SYSTEMD_WAYS,
        code="E-MACHINE-SYSTEMD-VERSION",
    ),
    Mechanism(
        name="seccomp",
        is_needed=_has_code,
        probe=probes.seccomp,
        is_roots=False,
        fix_by_environment={
            Environment.MACHINE: "boot a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
            Environment.WSL: _NEWER_KERNEL,
            Environment.CONTAINER: "start the container without a filter of prctl(2), on x86_64 or "
            "aarch64",
        },
        code="E-MACHINE-SECCOMP",
    ),
    Mechanism(
        name="Landlock",
        is_needed=_needs_landlock,
        probe=probes.no_landlock,
        is_roots=False,
        fix_by_environment={
            Environment.MACHINE: "boot a kernel with `lsm=…,landlock`; `allow_degraded = true` "
            "starts a server without it",
            Environment.WSL: f"{_NEWER_KERNEL}; `allow_degraded = true` starts a server without it",
            Environment.CONTAINER: "let the container call landlock_create_ruleset(2), and boot "
            "its host with `lsm=…,landlock`; `allow_degraded = true` starts a server without it",
        },
        code="E-MACHINE-LANDLOCK",
    ),
    Mechanism(
        name="packet rules (nftables)",
        is_needed=_has_code,
        probe=probes.packet_rules,
        is_roots=True,
        fix_by_environment={
            Environment.MACHINE: "install nftables, and boot a kernel with nf_tables and its "
            "modules",
            Environment.WSL: f"install nftables; {_NEWER_KERNEL}",
            Environment.CONTAINER: "install nftables, load nf_tables on the host, and let the "
            f"container have CAP_NET_ADMIN and namespaces of its own ({_NESTS})",
        },
        code="E-MACHINE-PACKET-RULES",
    ),
    Mechanism(
        name="namespaces of units",
        is_needed=_has_code,
        probe=probes.unit_namespaces,
        is_roots=True,
        fix_by_environment={
            Environment.MACHINE: "boot a kernel with namespaces of mounts, network and IPC",
            Environment.WSL: _NEWER_KERNEL,
            Environment.CONTAINER: _NESTING,
        },
        code="E-MACHINE-NAMESPACES",
    ),
    Mechanism(
        name="ID-mapped mounts, for `workspace`",
        is_needed=_has_workspace,
        probe=probes.idmapped_mounts,
        is_roots=True,
        fix_by_environment={
            Environment.MACHINE: "boot Linux 5.12 or later, and let root make user namespaces "
            "(`sysctl user.max_user_namespaces`); or leave out `workspace`",
            Environment.WSL: f"{_NEWER_KERNEL}; or leave out `workspace`",
            Environment.CONTAINER: f"{_NESTING}; or leave out `workspace`",
        },
        code="E-MACHINE-IDMAP",
    ),
)


def expect_systemd() -> None:
    """Refuse a machine that systemd does not manage: nothing about it can be observed.

    Raises:
        UsageError: with the fix.
    """
    if reason := SYSTEMD.probe():
        raise _refusal([MissingMechanism(SYSTEMD, reason)])


def expect(config: Config) -> None:
    """Refuse a machine without a mechanism that this configuration needs.

    Raises:
        UsageError: it names all that are missing, as far as the caller can try them.
    """
    if found := list(missing(config)):
        raise _refusal(found)


def missing(config: Config) -> Iterator[MissingMechanism]:
    """Yield the needed mechanisms that are missing; only root tries all of them."""
    for mechanism in _tried(config):
        if reason := mechanism.probe():
            yield MissingMechanism(mechanism, reason)


def checks(config: Config) -> Iterator[Check]:
    """Yield the checks of `doctor`."""
    for mechanism in _tried(config):
        try:
            reason = mechanism.probe()
        except (McpwrapError, OSError) as error:
            yield unknown(mechanism.name, str(error), "fix the cause named above, and try again")
            continue
        if reason:
            fix = f"{mechanism.fix_by_environment[environment.found()]}; {_RUN}"
            yield failed(mechanism.name, f"is missing: {reason} [{mechanism.code}]", fix)
        else:
            yield good(mechanism.name, "works")
    for note in _unlimited(config):
        yield warned("cgroup controllers", note, "boot with cgroup v2; in a container, delegate it")
    for note in _without_projects(config):
        yield warned("projects", note, "`man mcpwrap-errors`, E-SESSION-NAMESPACES")


def notes(config: Config) -> list[str]:
    """Return a line for each setting of this configuration that has no effect on this machine."""
    return [*_unlimited(config), *_without_projects(config)]


def _unlimited(config: Config) -> Iterator[str]:
    names = probes.missing_controllers() if _has_code(config) else []
    if names:
        text = "the limits of memory, tasks and processor time that need them are not enforced"
        yield f"this machine lacks the cgroup controllers {', '.join(names)}: {text}"


def _without_projects(config: Config) -> Iterator[str]:
    has_projects = any(server.projects for server in config.servers.values())
    if has_projects and (reason := probes.session_namespaces()):
        yield (
            f"sessions see no project: ordinary accounts can make no user and mount namespaces "
            f"({reason}) [E-SESSION-NAMESPACES]"
        )


def _tried(config: Config) -> Iterator[Mechanism]:
    may_try_all = os.geteuid() == 0
    for mechanism in MECHANISMS:
        if mechanism.is_needed(config) and (may_try_all or not mechanism.is_roots):
            yield mechanism


def _refusal(found: list[MissingMechanism]) -> UsageError:
    here = environment.found()
    first, *others = found
    more = [_in_one_line(one.mechanism, one.reason, here) for one in others]
    return UsageError(
        f"{first.mechanism.name}: {first.reason}; nothing was changed",
        where=_WHERE,
        fix=f"{first.mechanism.fix_by_environment[here]}; {_RUN}",
        more=more,
        code=first.mechanism.code,
    )


def _in_one_line(mechanism: Mechanism, reason: str, here: Environment) -> str:
    fix = mechanism.fix_by_environment[here]
    return f"{mechanism.name}: {reason} [{mechanism.code}]: {fix}"

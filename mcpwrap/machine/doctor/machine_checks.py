"""Health check of the machine below the servers: kernel, Squid, packet rules, accounts. As root."""

import os
import pwd
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mcpwrap.config.model import Config
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.core.names import ACCOUNT_PREFIX, FIRST_UID, LAST_UID
from mcpwrap.errors import UsageError
from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.systemd.systemctl import UP, ToolError, properties, run
from mcpwrap.machine import nft_table, observer
from mcpwrap.machine.doctor import squid_health
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.plan import paths
from mcpwrap.plan.http_listeners import instance

SQUID = "/usr/sbin/squid"
_OLDEST_SQUID = (5, 7)
_SCOPES_ABI = 6  # of Landlock: Linux 6.12


def machine(config: Config) -> Iterator[Check]:
    """Return what is to be said of the machine itself."""
    yield _landlock()
    yield _made("packet rules", _rules)
    yield _strangers()
    yield _made("root's files", _files)
    for name, files in observer.vanished_policies().items():
        text = "gone; the gate goes by what it has read of it, or refuses sessions"
        fix = "restore it; or `sudo mcpwrap apply`, if that is meant"
        yield failed(f"{name}: policy", f"{', '.join(files)}: {text}", fix)
    if config.approvals.same_uid:
        text = "approvals need no proof: whatever runs as an agent's account can approve its calls"
        yield warned("approvals", text, "take `same_uid` out of [approvals], and apply")
    if any(server.egress for server in config.servers.values()):
        yield _made("Squid", _squid)
    for unit, meaning in _units(config):
        yield _made(unit, partial(_unit, unit, meaning))


def _made(what: str, check: Callable[[], Check]) -> Check:
    """Make one check; that a tool failed is no verdict."""
    try:
        return check()
    except (ToolError, OSError) as error:
        problem = error.problem if isinstance(error, ToolError) else str(error)
        return unknown(what, problem, "see what it says, then try again")


def _units(config: Config) -> Iterator[tuple[str, str]]:
    """Return the units that must be up, and what it means if one is not."""
    yield "mcpwrap-gate.socket", "no agent gets in"
    yield "mcpwrap-watch.service", ""
    for listener in observer.listeners():
        unit = paths.listener_socket(instance(listener))
        yield unit, f"UID {listener.uid} does not find {listener.server} by HTTP"
    if config.approvals.webhook:
        yield paths.WEBHOOK_UNIT, "nobody is told what waits for approval"
    if any(server.egress for server in config.servers.values()):
        instances = {a.squid for a in observer.registry().by_name.values() if a.squid}
        for squid in sorted(instances):
            yield paths.proxy_unit(squid), "its servers do not get out"
        if any(s.egress and s.transparent for s in config.servers.values()):
            yield paths.FRONT_UNIT, "programs that know no proxy do not get out"


def _landlock() -> Check:
    kernel = os.uname().release
    abi = landlock.version()
    if not abi:
        fix = "boot a kernel with `lsm=…,landlock`; `allow_degraded` does without"
        return failed("kernel", f"{kernel} has no Landlock: no server starts", fix)
    if abi < _SCOPES_ABI:
        text = f"{kernel}: servers of one account can signal each other's sessions"
        return warned("kernel", text, "Linux 6.12 keeps them apart")
    return good("kernel", f"{kernel}, Landlock {abi}")


def _squid() -> Check:
    if not Path(SQUID).exists():
        return failed("Squid", f"{SQUID} is not there", "`apt install squid-openssl`")
    said = run(SQUID, "-v")
    found = re.search(r"Version (\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    text = ".".join(map(str, version))
    if "--with-openssl" not in said:
        return failed("Squid", f"{text} without OpenSSL", "`apt install squid-openssl`")
    if version < _OLDEST_SQUID:
        return warned("Squid", f"{text} has known holes", "upgrade to 5.7 or later")
    return good("Squid", text)


def _rules() -> Check:
    """Say whether the table is loaded.

    Raises:
        ToolError: nobody can say.
    """
    fix = "`sudo systemctl restart mcpwrap-nft`, then `sudo mcpwrap apply`"
    if not nft_table.is_loaded():
        return failed("packet rules", "are not loaded", fix)
    return good("packet rules", f"loaded, {len(nft_table.elements())} elements")


def _files() -> Check:
    try:
        observer.expect_roots_own()
        policy_files()
    except UsageError as error:
        return failed(error.where, error.problem, error.fix)
    return good("root's files", "only root can change them")


def _strangers() -> Check:
    """Name accounts in our range that are not ours: one could come to own what a server left."""
    found = [
        entry.pw_name
        for entry in pwd.getpwall()
        if FIRST_UID <= entry.pw_uid <= LAST_UID and not entry.pw_name.startswith(ACCOUNT_PREFIX)
    ]
    if found:
        text = f"others have UIDs of {FIRST_UID} to {LAST_UID}: {', '.join(found[:5])}"
        return warned("accounts", text, "set UID_MAX in /etc/login.defs below 20000")
    return good("accounts", f"nobody else has a UID from {FIRST_UID} to {LAST_UID}")


def _unit(unit: str, meaning: str) -> Check:
    if paths.instance_of(unit) and squid_health.problems([unit]).get(unit) == squid_health.SILENT:
        what = f"{squid_health.SILENT}; {meaning}"
        return failed(unit, what, squid_health.fix(unit, squid_health.SILENT))
    shown = properties([unit], ["ActiveState", "SubState"])[unit]
    state = shown["ActiveState"]
    if state in UP:
        return good(unit, "active")
    if state in {"activating", "deactivating"} and shown["SubState"] != "auto-restart":
        return unknown(unit, f"it is {state}", "try again in a moment")
    what = f"{state}; {meaning}" if meaning else state
    return failed(unit, what, f"`sudo systemctl restart {unit}`; `journalctl -u {unit}`")

"""Health check of the machine: kernel, Squid, packet rules, accounts, units. Needs root."""

import os
import pwd
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mcpwrap.config.model import Config
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.core.names import FIRST_UID, LAST_UID, OUR_PREFIXES
from mcpwrap.errors import UsageError
from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.os_release import distribution
from mcpwrap.linux.systemd.systemctl import UP, ToolError, properties, run
from mcpwrap.machine import nft_table, observer
from mcpwrap.machine.doctor import squid_health
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.machine.prerequisites import mechanisms
from mcpwrap.plan import paths

SQUID = "/usr/sbin/squid"
_OLDEST_SQUID = (5, 7)
_SCOPES_ABI = 6  # of Landlock: Linux 6.12


def machine(config: Config) -> Iterator[Check]:
    """Yield the checks of the machine itself."""
    yield _kernel()
    yield from mechanisms.checks(config)
    yield _made("packet rules", _rules)
    yield _foreign_accounts()
    yield _made("root's files", _files)
    for name, files in observer.vanished_policies().items():
        text = "gone; the gate keeps the policy that it has read, or refuses sessions"
        found = f"{', '.join(files)}: {text} [E-POLICY-FILE-MISSING]"
        fix = "restore it; or `sudo mcpwrap apply`, if that is intended"
        yield failed(f"{name}: policy", found, fix)
    if config.approvals.same_uid:
        text = "approvals need no proof: each process of an agent's account can approve its calls"
        fix = "remove `same_uid` from [approvals], then `sudo mcpwrap apply`"
        yield warned("approvals", text, fix)
    if any(server.egress for server in config.servers.values()):
        yield _made("Squid", squid_program)
    for unit, meaning in _units(config):
        yield _made(unit, partial(_unit, unit, meaning))


def _made(what: str, check: Callable[[], Check]) -> Check:
    """Make one check. If a tool failed, there is no verdict."""
    try:
        return check()
    except (ToolError, OSError) as error:
        problem = error.named_problem if isinstance(error, ToolError) else str(error)
        return unknown(what, problem, "fix the cause named above, then run doctor again")


def _units(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the units that must be up, each with the consequence if it is down."""
    yield "mcpwrap-gate.socket", "no agent can open a session"
    yield "mcpwrap-watch.service", ""
    for listener in observer.listeners():
        unit = paths.listener_socket(listener.instance())
        yield unit, f"UID {listener.uid} cannot reach {listener.server} by HTTP"
    if config.approvals.webhook:
        yield paths.WEBHOOK_UNIT, "pending approvals are not posted"
    if any(server.egress for server in config.servers.values()):
        instances = {a.squid for a in observer.registry().by_name.values() if a.squid}
        for squid in sorted(instances):
            yield paths.proxy_unit(squid), "its servers have no egress"
        if any(s.egress and s.transparent for s in config.servers.values()):
            yield paths.FRONT_UNIT, "servers without proxy support have no egress"


def _kernel() -> Check:
    kernel = os.uname().release
    abi = landlock.version()
    if abi < _SCOPES_ABI:
        text = f"{kernel}: servers of one account can signal each other's sessions"
        return warned("kernel", text, "boot Linux 6.12 or later, which prevents that")
    return good("kernel", f"{kernel}, Landlock {abi}")


def squid_program() -> Check:
    """Return the check of Squid's program.

    Raises:
        ToolError: it failed.
    """
    if not Path(SQUID).exists():
        text = f"{SQUID} does not exist [E-EGRESS-NOT-INSTALLED]"
        return failed("Squid", text, distribution().install("squid"))
    output = run(SQUID, "-v")
    found = re.search(r"Version (\d+)\.(\d+)", output)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    number = ".".join(map(str, version))
    if "--with-openssl" not in output:
        text = f"{number} is built without OpenSSL [E-EGRESS-NOT-INSTALLED]"
        return failed("Squid", text, distribution().install("squid"))
    if version < _OLDEST_SQUID:
        return warned("Squid", f"{number} has known vulnerabilities", "upgrade to 5.7 or later")
    return good("Squid", number)


def _rules() -> Check:
    """Check that the packet rules are loaded.

    Raises:
        ToolError: nft failed, so it is not known.
    """
    fix = "`sudo systemctl restart mcpwrap-nft`, then `sudo mcpwrap apply`"
    if not nft_table.is_loaded():
        return failed("packet rules", "are not loaded [E-RULES-NOT-LOADED]", fix)
    return good("packet rules", f"loaded, {len(nft_table.elements())} elements")


def _files() -> Check:
    try:
        observer.expect_roots_own()
        policy_files()
    except UsageError as error:
        return failed(error.where, error.named_problem, error.fix)
    return good("root's files", "only root can change them")


def _foreign_accounts() -> Check:
    """Report other accounts in mcpwrap's UID range: one could own files that a server left."""
    found = [
        entry.pw_name
        for entry in pwd.getpwall()
        if FIRST_UID <= entry.pw_uid <= LAST_UID and not entry.pw_name.startswith(OUR_PREFIXES)
    ]
    if found:
        text = f"others have UIDs from {FIRST_UID} to {LAST_UID}: {', '.join(found[:5])}"
        return warned("accounts", text, "set UID_MAX in /etc/login.defs below 20000")
    return good("accounts", f"no other account has a UID from {FIRST_UID} to {LAST_UID}")


def _unit(unit: str, meaning: str) -> Check:
    if paths.instance_of(unit) and squid_health.problems([unit]).get(unit) == squid_health.SILENT:
        text = f"{squid_health.SILENT}; {meaning} [E-DOCTOR-SQUID]"
        return failed(unit, text, squid_health.fix(unit, squid_health.SILENT))
    shown = properties([unit], ["ActiveState", "SubState"])[unit]
    state = shown["ActiveState"]
    if state in UP:
        return good(unit, "active")
    if state in {"activating", "deactivating"} and shown["SubState"] != "auto-restart":
        return unknown(unit, f"it is {state}", "run doctor again in a moment")
    what = f"{state}; {meaning}" if meaning else state
    text = f"{what} [E-DOCTOR-UNIT-DOWN]"
    return failed(unit, text, f"`sudo systemctl restart {unit}`; `journalctl -u {unit}`")

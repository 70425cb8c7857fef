"""Looking at the machine below the servers: kernel, Squid, rules, accounts. As root."""

import os
import pwd
import re

from mcpwrap.config.model import Config
from mcpwrap.core.checkup import Check, failed, good, warned
from mcpwrap.core.names import ACCOUNT_PREFIX, FIRST_UID, LAST_UID
from mcpwrap.linux import landlock, observe, packet_rules
from mcpwrap.linux.systemd import ToolError, properties, run
from mcpwrap.plan import paths
from mcpwrap.plan.listeners import instance

SQUID = "/usr/sbin/squid"
_OLDEST_SQUID = (5, 7)
_SCOPES_ABI = 6  # of Landlock: Linux 6.12


def machine(config: Config) -> list[Check]:
    """Return what is to be said of the machine itself."""
    found = [_landlock(), _rules(), _strangers()]
    found += [_unit("mcpwrap-gate.socket", "no agent gets in"), _unit("mcpwrap-watch.service", "")]
    if config.approvals.same_uid:
        text = "approvals need no proof: whatever runs as an agent's account can approve its calls"
        found.append(warned("approvals", text, "take `same_uid` out of [approvals], and apply"))
    for listener in observe.listeners():
        unit = paths.listener_socket(instance(listener))
        found.append(_unit(unit, f"UID {listener.uid} does not find {listener.server} by HTTP"))
    if config.approvals.webhook:
        found.append(_unit(paths.WEBHOOK_UNIT, "nobody is told what waits for approval"))
    if any(server.egress for server in config.servers.values()):
        found.append(_squid())
        instances = {a.squid for a in observe.registry().by_name.values() if a.squid}
        found += [
            _unit(paths.proxy_unit(i), "its servers do not get out") for i in sorted(instances)
        ]
        if any(s.egress and s.transparent for s in config.servers.values()):
            found.append(_unit(paths.FRONT_UNIT, "programs that know no proxy do not get out"))
    return found


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
    try:
        said = run(SQUID, "-v")
    except ToolError as error:
        return failed("Squid", error.problem, "`apt install squid-openssl`")
    found = re.search(r"Version (\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    text = ".".join(map(str, version))
    if "--with-openssl" not in said:
        return failed("Squid", f"{text} without OpenSSL", "`apt install squid-openssl`")
    if version < _OLDEST_SQUID:
        return warned("Squid", f"{text} has known holes", "upgrade to 5.7 or later")
    return good("Squid", text)


def _rules() -> Check:
    fix = "`sudo systemctl restart mcpwrap-nft`, then `sudo mcpwrap apply`"
    if not packet_rules.text():
        return failed("packet rules", "are not loaded", fix)
    return good("packet rules", f"loaded, {len(packet_rules.elements())} elements")


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
    state = properties([unit], ["ActiveState"])[unit]["ActiveState"]
    if state == "active":
        return good(unit, "active")
    what = f"{state}; {meaning}" if meaning else state
    return failed(unit, what, f"`sudo systemctl restart {unit}`; `journalctl -u {unit}`")

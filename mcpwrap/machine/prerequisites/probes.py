"""Probes of kernel mechanisms. Each uses one in a throw-away object, and leaves nothing behind.

A probe returns the reason why its mechanism cannot be used, or "". Whether a kernel has been built
with a mechanism does not show whether a container or WSL2 lets this machine use it.
"""

import os
import re
from pathlib import Path

from mcpwrap.linux.isolation import landlock, namespaces
from mcpwrap.linux.mount import idmap, mount_api
from mcpwrap.linux.mount.idmap import Swap
from mcpwrap.linux.mount.mount_api import Attribute
from mcpwrap.linux.seccomp import bpf, no_setuid
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError, properties, run
from mcpwrap.machine.nft_table import NFT

RULES = Path("/usr/lib/mcpwrap/nftables/mcpwrap.nft")
TRIAL_UNIT = "mcpwrap-trial.service"
OLDEST_SYSTEMD = 252  # of Debian 12: the oldest that the stories run on
_BOOTED = Path("/run/systemd/system")  # sd_booted(3)
_UNSHARE = "/usr/bin/unshare"
_IN_NEW_NETWORK = (_UNSHARE, "--net", "--")
_CONTROLLERS = ("cpu", "memory", "pids")
_CGROUPS = Path("/sys/fs/cgroup")
_TWO_IDS = Swap(1, 2)  # any two
_EXIT_CODE = "exit-code"
_NOBODY = 65534
_NAMESPACE_STATUS = {"225": "a network", "226": "mounts"}  # systemd.exec(5), EXIT_NETWORK, …
# Parts of the packet rules, tried one by one if all together fail: declarations, the hook of a
# chain, and its rule.
PART_BY_NAME = {
    "a table of the family inet": ("", "", ""),
    "a chain for outgoing packets": ("", "output", ""),
    "sets of accounts (meta skuid)": ("set s { type uid; }", "output", "meta skuid @s drop"),
    "sets of account, address and port": (
        "set s { type uid . ipv4_addr . inet_service; }",
        "output",
        "meta skuid . ip daddr . tcp dport @s drop",
    ),
    "sets of address ranges": ("set s { type ipv4_addr; flags interval; auto-merge; }", "", ""),
    "sets that packets fill": (
        "set s { type uid; size 9; flags dynamic,timeout; timeout 1d; counter; }",
        "output",
        "update @s { meta skuid }",
    ),
    "refusals (reject)": ("", "output", "meta l4proto tcp reject with tcp reset"),
    "addresses of this machine (fib)": ("", "output", "fib daddr type local drop"),
    "listening sockets (socket)": ("", "input", "socket wildcard 1 drop"),
}


def systemd() -> str:
    """Return why systemd does not manage this machine."""
    return "" if _BOOTED.is_dir() else "it is not the first process (PID 1) here"


def systemd_version() -> str:
    """Return why the systemd that runs is too old.

    Raises:
        ToolError: it does not answer.
    """
    found = re.search(r"Version=v?(\d+)", run(SYSTEMCTL, "show", "-p", "Version"))
    if found and int(found[1]) < OLDEST_SYSTEMD:
        return f"it is {found[1]}, and the oldest that works is {OLDEST_SYSTEMD}"
    return ""


def seccomp() -> str:
    """Return why a server's filter of system calls cannot be installed."""
    try:
        bpf.this_machine(no_setuid.MACHINES)
        bpf.expect_filters()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def no_landlock() -> str:
    """Return why no process can be restricted by Landlock."""
    return "" if landlock.version() else "the kernel does not offer it"


def packet_rules() -> str:
    """Return which part of the packet rules the kernel refuses, in a network namespace that ends.

    The whole file is loaded there, without the elements of this machine. Needs root.
    """
    if not Path(NFT).exists():
        return f"{NFT} does not exist"
    try:
        run(*_IN_NEW_NETWORK, "/usr/bin/true")
    except ToolError as error:
        return f"a network namespace: {error.problem}"
    lines = RULES.read_text(encoding="utf-8").splitlines()
    refused = _refused("\n".join(line for line in lines if not line.startswith("include ")))
    if not refused:
        return ""
    return ", ".join(refused_parts()) or refused


def refused_parts() -> list[str]:
    """Return the names of the parts of the packet rules that the kernel refuses. Needs root."""
    return [name for name, part in PART_BY_NAME.items() if _refused(_table(*part))]


def _table(declarations: str, hook: str, rule: str) -> str:
    """Return a table with these parts, in the form of nftables/mcpwrap.nft."""
    chain = f"chain c {{\ntype filter hook {hook} priority filter\n{rule}\n}}" if hook else ""
    return f"table inet t {{\n{declarations}\n{chain}\n}}"


def _refused(rules: str) -> str:
    """Return the first line of nft(8) about rules that cannot be loaded; "" if they can be."""
    try:
        run(*_IN_NEW_NETWORK, NFT, "-f", "-", stdin=f"{rules}\n")
    except ToolError as error:
        return error.problem
    return ""


def unit_namespaces() -> str:
    """Return why a unit does not get namespaces as a server's unit does. Needs root.

    systemd ignores some directives that it cannot carry out, so the unit compares its namespaces
    with those of PID 1.
    """
    try:
        run(SYSTEMCTL, "start", "--", TRIAL_UNIT)
    except ToolError as error:
        shown = properties([TRIAL_UNIT], ["LoadState", "Result", "ExecMainStatus"])[TRIAL_UNIT]
        if shown["LoadState"] != "loaded":
            return error.problem
        run(SYSTEMCTL, "reset-failed", "--", TRIAL_UNIT)
        if shown["Result"] != _EXIT_CODE:
            return f"{error.problem} ({shown['Result']})"
        kind = _NAMESPACE_STATUS.get(shown["ExecMainStatus"], "mounts, network or IPC")
        return f"a unit of systemd gets none of its own for {kind} ({TRIAL_UNIT})"
    return ""


def idmapped_mounts() -> str:
    """Return why mounts cannot have other owners. Needs root.

    Whether the file system of a workspace supports this, `apply` tries with each workspace.
    """
    fds = []
    try:
        fds.append(mount_api.open_path("/"))
        fds.append(mount_api.copied(fds[0]))
        fds.append(idmap.namespace(_TWO_IDS, _TWO_IDS))
        mount_api.set_attributes(fds[1], Attribute.NO_SETUID)
        mount_api.expect_mapped(fds[1], fds[2])
    except OSError as error:
        return error.strerror or str(error)
    finally:
        for fd in fds:
            os.close(fd)
    return ""


def session_namespaces() -> str:
    """Return why a session can have no mount namespace of its own, tried as root or as the caller.

    Units of wrappers may still do without it: they know themselves.
    """
    return namespaces.why_impossible(_NOBODY if os.geteuid() == 0 else None)


def missing_controllers() -> list[str]:
    """Return the cgroup controllers that limits need, and that this machine cannot use."""
    try:
        there = (_CGROUPS / "cgroup.controllers").read_text(encoding="ascii").split()
    except OSError:  # cgroup v1: each controller is a mount, which a container may only read
        there = [name for name in _CONTROLLERS if _is_writable(_CGROUPS / name)]
    return [name for name in _CONTROLLERS if name not in there]


def _is_writable(mount: Path) -> bool:
    try:
        return not os.statvfs(mount).f_flag & os.ST_RDONLY
    except OSError:
        return False

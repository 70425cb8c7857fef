"""`mcpwrap purge`: removal of what `apply` has made, and of all files that mcpwrap has written.

Each part finds what is left of it, so after an interruption the same command continues. The packet
rules refuse the accounts of servers until these are gone.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_root.apply.step_executor import carry_out
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts, tty
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError, run
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import purge as plan
from mcpwrap.plan.steps import RemoveAccount, RemoveFile, RemoveTree

_SYSUSERS = "/usr/lib/sysusers.d/mcpwrap.conf"
_IP = "/usr/sbin/ip"
# Source: sd_booted(3). In a chroot systemctl(1) fails, and the packet rules are those of another
# system.
_BOOTED = "/run/systemd/system"
# Irreversibly, as in `panic`: a retry of an agent would cancel the stop job.
_STOP = (SYSTEMCTL, "stop", "--job-mode=replace-irreversibly", "--")


def confirm() -> None:
    """List what will be removed, and ask for `yes`.

    Raises:
        McpwrapError: another answer; or the process has no terminal.
    """
    text = "".join(f"{line}\n" for line in plan.shown(_accounts()))
    if not tty.says_yes(lambda _: text, "Remove all of this? Answer yes or no: "):
        raise McpwrapError(
            "not confirmed with `yes`; nothing was changed",
            where="mcpwrap purge",
            fix="run the same command again and answer `yes`, or give `--yes`",
            code="E-PURGE-NOT-CONFIRMED",
        )


def purge() -> None:
    """Remove everything, in an order that may be interrupted. The caller holds the lock.

    Raises:
        McpwrapError: a tool failed. What was removed before stays removed.
        OSError: a file could not be removed, as above.
    """
    is_booted = Path(_BOOTED).is_dir()
    if is_booted:
        for group in plan.SESSIONS:
            _stop(group)
    if units := sorted({Path(link).name for link in _found(plan.LINKS)}):
        tty.say(f"disable {' '.join(units)}")
        with suppress(ToolError):  # of a unit that it does not know the links are removed below
            run(SYSTEMCTL, "disable", "--", *units)
    _carry_out(plan.unit_steps(_found))
    if is_booted:
        run(SYSTEMCTL, "daemon-reload")
        _stop(plan.EVERYTHING)
    _carry_out(plan.steps(_found, _accounts()))
    if is_booted:
        _let_packets_go()
        with suppress(ToolError):  # if none of them is loaded
            run(SYSTEMCTL, "reset-failed", "--", "mcpwrap*")
    carry_out(RemoveTree(plan.RUNTIME))
    tty.say("done; now remove the package: nothing of it starts any more")


def _stop(units: tuple[str, ...]) -> None:
    tty.say(f"stop {' '.join(units)}")
    run(*_STOP, *units)


def _carry_out(steps: Iterable[RemoveFile | RemoveTree | RemoveAccount]) -> None:
    for step in steps:
        tty.say(step.describe())
        carry_out(step)


def _let_packets_go() -> None:
    """Remove table and routes. Each command succeeds where there is nothing to remove."""
    tty.say(f"remove the packet rules of the table {plan.TABLE}, and the routes {plan.ROUTES}")
    if Path(NFT).exists():
        run(NFT, "-f", "-", stdin=f"table {plan.TABLE}\ndelete table {plan.TABLE}\n")
    if Path(_IP).exists():
        run(_IP, "route", "flush", "table", "local", "root", plan.ROUTES)


def _accounts() -> list[str]:
    """Return the accounts of servers, run slots and mcpwrap itself that exist, and its groups."""
    own = plan.own_accounts(Path(_SYSUSERS).read_text(encoding="utf-8"))
    there = (n for n in own if {accounts.uid_of(n), accounts.gid_of(n)} != {None})
    return [*sorted(accounts.ours()), *there]


def _found(pattern: str) -> list[str]:
    """Return the paths of a pattern, links that lead nowhere too."""
    found = map(str, Path("/").glob(pattern.lstrip("/")))
    return sorted(path for path in found if os.path.lexists(path))

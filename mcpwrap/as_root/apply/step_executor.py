"""Step executor: carries out the steps of a plan, one case each.

The step that starts the webhook also makes its signing key, if that is missing.
"""

import os
import pwd
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from mcpwrap.as_root.egress import squid
from mcpwrap.as_root.lock import if_free
from mcpwrap.as_root.secrets import command as secrets_command
from mcpwrap.core.names import name_of
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts, root_files
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError, properties, run
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths, steps

SYSUSERS = "/usr/bin/systemd-sysusers"
USERDEL = "/usr/sbin/userdel"
GROUPDEL = "/usr/sbin/groupdel"
RULES_UNIT = "mcpwrap-nft.service"
_DOWN_STATES = frozenset({"inactive", "failed"})  # states of a unit that should have started
_WEBHOOK_KEY_BYTES = 32  # the length of the hash of its HMAC: RFC 2104 section 3


def carry_out(step: steps.Step) -> None:  # noqa: C901, PLR0912, PLR0915
    """Carry out one step, which may be repeated. This function has one case for each kind of step.

    Raises:
        McpwrapError: a tool failed, or its result is not the requested one.
        OSError: a file could not be written or removed.
    """
    match step:
        case steps.WriteFile(path, text):
            root_files.replace(path, text)
        case steps.RemoveFile(path):
            root_files.remove(path)
        case steps.RemoveLeftover(path):
            with if_free(paths.lock_of_temporary(path)) as is_free:
                if is_free:
                    root_files.remove(path)
        case steps.RemoveTree(path):
            run("/usr/bin/rm", "-rf", "--one-file-system", "--", path)  # the tree may be deep
        case steps.ShutTree(path):
            os.chown(path, 0, 0, follow_symlinks=False)
            Path(path).chmod(0o700)
        case steps.ForgetSecrets(name):
            secrets_command.purge(name)
        case steps.MakeLink(path, target):
            root_files.replace_link(path, target)
        case steps.MakeAccounts(wanted):
            _make_accounts(wanted)
        case steps.RemoveAccount(name):
            _remove_account(name)
        case steps.LoadRules():
            _load_rules()
        case steps.MakeAuthority(name):
            squid.make_ca(name)
        case steps.LoadProxy(instance, text):
            squid.load(instance, text)
        case steps.LoadFront():
            run(SYSTEMCTL, "enable", "--quiet", "--", paths.FRONT_UNIT)
            run(SYSTEMCTL, "reload-or-restart", "--", paths.FRONT_UNIT)
        case steps.LoadWebhook():
            _load_webhook()
        case steps.StopUnit(unit):
            run(SYSTEMCTL, "disable", "--quiet", "--now", "--", unit)
        case steps.ReloadUnits():
            run(SYSTEMCTL, "daemon-reload")
        case steps.StopServers(names):
            _stop(_units(names))
        case steps.RestartServers(names):
            services = [*map(paths.service_unit, names)]
            _run_for(services, {"failed"}, "try-restart")
        case steps.EnableSockets(names):
            sockets = map(paths.socket_unit, names)
            run(SYSTEMCTL, "enable", "--quiet", "--no-reload", "--", *sockets)
        case steps.StartSockets(names):
            _forget_failures(_units(names))
            _run_for([*map(paths.socket_unit, names)], _DOWN_STATES, "start")
        case steps.StopListeners(instances):
            _stop(_listener_units(instances))
        case steps.StartListeners(listeners):
            instances = tuple(instance for instance, _ in listeners)
            _forget_failures(_listener_units(instances))
            listening = [*map(paths.listener_socket, instances)]
            _run_for(listening, _DOWN_STATES, "enable", "--quiet", "--now")
        case steps.StopJobs(instances):
            _stop(_job_units(instances))
        case steps.StartJobs(instances):
            _forget_failures(_job_units(instances))
            listening = [*map(paths.job_socket, instances)]
            _run_for(listening, _DOWN_STATES, "enable", "--quiet", "--now")
        case steps.LoadWorker():
            _forget_failures([paths.WORKER_UNIT, paths.WORKER_SERVICE])
            _run_for([paths.WORKER_UNIT], _DOWN_STATES, "enable", "--quiet", "--now")
        case _:
            assert_never(step)


def _load_webhook() -> None:
    """Have the webhook post to the URL in its file. An existing key stays.

    Raises:
        McpwrapError: its unit does not start.
        OSError: the key cannot be written.
    """
    if not os.path.lexists(paths.WEBHOOK_KEY):
        root_files.replace(
            paths.WEBHOOK_KEY, f"{secrets.token_hex(_WEBHOOK_KEY_BYTES)}\n", mode=0o600
        )
    run(SYSTEMCTL, "enable", "--quiet", "--", paths.WEBHOOK_UNIT)
    run(SYSTEMCTL, "restart", "--", paths.WEBHOOK_UNIT)


def _load_rules() -> None:
    """Load the elements alone, so that counters keep their values; without a table, all rules."""
    try:
        run(NFT, "-f", paths.ELEMENTS)
    except ToolError:
        # A reload does not stop the units that require this one. A unit that is down is started.
        run(SYSTEMCTL, "reload-or-restart", RULES_UNIT)


def _make_accounts(wanted: Sequence[tuple[str, int]]) -> None:
    """Make accounts, and check: sysusers silently gives another UID where the wanted is taken."""
    is_new = any(accounts.uid_of(name) is None for name, _ in wanted)
    running = accounts.running_ids() if is_new else frozenset()
    for name, uid in wanted:
        _expect_free(name, uid, running)
    files = (paths.sysusers(name_of(account).partition("/")[0]) for account, _ in wanted)
    run(SYSUSERS, *dict.fromkeys(files))
    for name, uid in wanted:
        _expect_made(name, uid)


def _expect_free(name: str, uid: int, running: Collection[int]) -> None:
    owner = accounts.name_of(uid)
    if owner not in {None, name}:
        raise McpwrapError(
            f"UID {uid} now belongs to account {owner!r}",
            where=name,
            fix="repeat the command: it chooses another UID",
            code="E-APPLY-UID-TAKEN",
        )
    if accounts.uid_of(name) not in {None, uid}:
        raise McpwrapError(
            f"exists with UID {accounts.uid_of(name)}, and should have {uid}",
            where=f"the account {name}",
            fix=f"find out what made the account; `userdel {name}` removes it",
            code="E-APPLY-ACCOUNT-UID",
        )
    if accounts.uid_of(name) is None and uid in running:
        raise McpwrapError(
            f"a process now runs with UID or GID {uid}, in a container perhaps",
            where=name,
            fix="repeat the command: it chooses another UID",
            code="E-APPLY-UID-TAKEN",
        )


def _expect_made(name: str, uid: int) -> None:
    entry = pwd.getpwnam(name)
    if (entry.pw_uid, entry.pw_gid) != (uid, uid):
        raise McpwrapError(
            f"was made with UID {entry.pw_uid} and GID {entry.pw_gid} instead of {uid}",
            where=f"the account {name}",
            fix=f"`userdel {name}`, then find what has the id {uid}: `getent passwd {uid}`",
            code="E-APPLY-ACCOUNT-UID",
        )


def _remove_account(name: str) -> None:
    if accounts.uid_of(name) is not None:
        run(USERDEL, name)
    if accounts.gid_of(name) is not None:
        run(GROUPDEL, name)


def _run_for(units: Sequence[str], down: Collection[str], *command: str) -> None:
    """Run systemctl for units; on failure, name those in a state of `down`, as it may not."""
    try:
        run(SYSTEMCTL, *command, "--", *units)
    except ToolError as error:
        shown = properties(units, ["ActiveState"])
        failed = [unit for unit, found in shown.items() if found["ActiveState"] in down]
        if not failed:
            raise
        raise McpwrapError(
            f"{', '.join(failed)} failed: {error.problem}",
            where=SYSTEMCTL,
            fix=f"`journalctl -u {failed[0]}` has the reason",
            more=error.more,
            code="E-APPLY-UNIT-FAILED",
        ) from error


def _stop(units: Sequence[str]) -> None:
    """Stop and disable units. A unit that was never started is not a failure."""
    run(SYSTEMCTL, "disable", "--quiet", "--now", "--", *units)
    _forget_failures(units)


def _forget_failures(units: Sequence[str]) -> None:
    """Reset the failed state of units, and their start limits with it."""
    with suppress(ToolError):  # for units that are not loaded; all others are reset
        run(SYSTEMCTL, "reset-failed", "--", *units)


def _units(names: Sequence[str]) -> list[str]:
    return [*map(paths.socket_unit, names), *map(paths.service_unit, names)]


def _job_units(instances: Sequence[str]) -> list[str]:
    return [*map(paths.job_socket, instances), *map(paths.job_service, instances)]


def _listener_units(instances: Sequence[str]) -> list[str]:
    return [*map(paths.listener_socket, instances), *map(paths.listener_service, instances)]

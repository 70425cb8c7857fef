"""Steps for accounts: the group that may use servers, and an approver."""

import msgspec

from mcpwrap.cli.setup.init.guide import MCPWRAP, Guide
from mcpwrap.cli.setup.init.machine_steps import configuration
from mcpwrap.cli.setup.init.person import PersonAccount, other_person
from mcpwrap.core.approval.authorization import reachable
from mcpwrap.core.doctor import APPROVERS_GROUP
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts, tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine.doctor import approval_checks
from mcpwrap.plan import paths

USERS_GROUP = "mcpwrap"
GROUP, APPROVER = "group", "approver"
_USERMOD = "/usr/sbin/usermod"
_REASON = """\
By the default policy, calls that delete data wait for a person. Agents run as {account}, so
its answers need a password, which is for approvals only. A program of that account could watch
it being typed: an account without agents is safer."""
_NOBODY_APPROVES = "only root can approve: what waits for a person is refused to agents"
_POLKIT = "only root can approve, and {account} by `--polkit`, with the password of the account"


def group(guide: Guide, who: PersonAccount) -> None:
    """Add the person to the group that may use servers without `agents` of their own."""
    command = f"sudo usermod -aG {USERS_GROUP} {who.account}"
    guide.title(f"Group {USERS_GROUP}: accounts whose agents may use servers")
    if _is_in(USERS_GROUP, who):
        guide.end(GROUP, "already", command, f"{who.account} is in it")
    elif guide.offers(command, f"Add {who.account} to it?"):
        _add(who, USERS_GROUP)
        why = f"{who.account} is in it from the next login on: log out, and in again"
        guide.end(GROUP, "done", command, why)
    else:
        why = f"{who.account} can use servers that name it in `agents`, and no others"
        guide.end(GROUP, "skipped", command, why)


def approver(guide: Guide, who: PersonAccount) -> None:
    """Give the person a password for approvals, or another account the right to approve.

    Polkit, where it is installed, does not end the step: the account may have no password.
    """
    command = f"sudo mcpwrap approvals passwd {who.account}"
    guide.title("Approver: a person who answers calls that wait")
    config = configuration()
    if config and config.approvals.same_uid:
        why = f"{who.account} can approve without a password, by `same_uid`"
        guide.end(APPROVER, "already", command, why)
        return
    known = _approvers(who)
    if known:
        why = f"{', '.join(known)} can approve calls of {who.account}"
        guide.end(APPROVER, "already", command, why)
        return
    for line in _REASON.format(account=who.account).split("\n"):
        guide.say(f"   {line}")
    if guide.offers(command, f"Set one for {who.account}?"):
        _password(guide, who, command)
    elif name := guide.named("Another account that may approve (Enter: none)"):
        other = other_person(name, who)
        _add(other, APPROVERS_GROUP)
        typed = f"sudo usermod -aG {APPROVERS_GROUP} {other.account}"
        why = f"{other.account} can approve calls of {who.account}"
        guide.end(APPROVER, "done", typed, why)
    else:
        guide.end(APPROVER, "skipped", command, _left(who))


def _password(guide: Guide, who: PersonAccount, command: str) -> None:
    if not tty.has_terminal():
        why = f"a password is typed at a terminal, and there is none; {_left(who)}"
        guide.end(APPROVER, "skipped", command, why)
        return
    status = guide.ran([MCPWRAP, "approvals", "passwd", who.account])
    if status == 0:
        guide.end(APPROVER, "done", command, f"{who.account} can approve with the password")
    else:
        guide.end(APPROVER, "failed", command, f"no password was set; {_left(who)}")


def _left(who: PersonAccount) -> str:
    """Return who can approve the person's calls without this step."""
    if approval_checks.has_polkit():
        return _POLKIT.format(account=who.account)
    return _NOBODY_APPROVES


def _approvers(who: PersonAccount) -> list[str]:
    """Return the accounts that can approve calls of this one, but for root and by polkit.

    Raises:
        McpwrapError: the file with the passwords is damaged.
    """
    try:
        with_password = {one.uid for one in approval_checks.approvers().by_user.values()}
    except msgspec.MsgspecError as error:
        raise McpwrapError(
            f"is damaged: {error}",
            where=paths.APPROVERS,
            fix="remove the file, and set each password again",
            code="E-PASSWORD-FILE-DAMAGED",
        ) from error
    name_by_uid = {
        uid: name
        for name in approval_checks.members(APPROVERS_GROUP)
        if (uid := accounts.uid_of(name)) is not None  # it may have been removed
    }
    known = reachable(who.uid, set(name_by_uid), with_password)
    return sorted(name_by_uid.get(uid, who.account) for uid in known)


def _is_in(name: str, who: PersonAccount) -> bool:
    return accounts.gid_of(name) in who.groups


def _add(who: PersonAccount, name: str) -> None:
    """Add an account to a group of the package.

    Raises:
        UsageError: there is no such group.
        ToolError: usermod(8) failed, as it does for accounts of a directory.
    """
    if accounts.gid_of(name) is None:
        raise UsageError(
            f"there is no group {name}; nothing was changed",
            where="mcpwrap init",
            fix="run `sudo systemd-sysusers`, or reinstall the package",
            code="E-INIT-NO-GROUP",
        )
    systemctl.run(_USERMOD, "-aG", name, who.account)

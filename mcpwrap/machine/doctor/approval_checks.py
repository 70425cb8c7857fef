"""Health check of approvals: the accounts that can approve agents' requests. Needs root."""

import pwd
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mcpwrap.config.model import Config
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core import doctor
from mcpwrap.core.doctor import APPROVERS_GROUP, ApproverAccounts, Check, failed
from mcpwrap.core.policy.rules import Policy, for_server
from mcpwrap.core.wire import approver_passwords
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts
from mcpwrap.linux.polkit import Pkcheck
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.plan import paths


def approvals(config: Config) -> list[Check]:
    """Return the checks of approvals; no check if no rule requires one."""
    try:
        policy = parse_policy(policy_files())
        with_password = set(approvers().by_user)
    except UsageError as error:
        return [failed("policy", f"{error.where}: {error.named_problem}", "`mcpwrap policy check`")]
    except msgspec.MsgspecError:
        fix = f"remove {paths.APPROVERS}, and set each password again"
        text = "the file with the passwords cannot be parsed [E-PASSWORD-FILE-DAMAGED]"
        return [failed("approvals", text, fix)]
    asking = [server for server in config.servers.values() if _asks(policy, server.name)]
    if not asking:
        return []
    agents = {account for server in asking for name in server.agents for account in _named(name)}
    found = ApproverAccounts(
        agents=agents,
        members=set(members(APPROVERS_GROUP)),
        with_password=with_password,
        same_uid=config.approvals.same_uid,
        has_polkit=has_polkit(),
    )
    return doctor.approver_checks(found)


def _asks(policy: Policy, server: str) -> bool:
    concerned = for_server(policy, server)
    held = (r for r in concerned.rules if r.action == "allow_with_approval" and not r.observe)
    return not concerned.observe and any(held)


def _named(agent: str) -> Iterator[str]:
    """Yield the accounts that an entry of `agents` names."""
    yield from members(agent[1:]) if agent.startswith("@") else [agent]


def members(group: str) -> Iterator[str]:
    """Yield the members of a group, including accounts whose primary group it is."""
    yield from accounts.members_of(group)
    gid = accounts.gid_of(group)
    yield from (entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == gid)


def has_polkit() -> bool:
    """Return whether polkit can prove that an agent's own account answers."""
    return Path(Pkcheck().path).exists()


def approvers() -> approver_passwords.Approvers:
    """Return the accounts with a password for approvals. Needs root.

    Raises:
        msgspec.MsgspecError: the file is damaged.
    """
    try:
        return approver_passwords.decode(Path(paths.APPROVERS).read_bytes())
    except FileNotFoundError:
        return approver_passwords.Approvers()

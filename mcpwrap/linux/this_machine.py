"""The plan for this machine: its configuration against how it is. Reads only."""

from mcpwrap.config.parse import parse
from mcpwrap.core.names import ACCOUNT_PREFIX
from mcpwrap.linux import accounts, observe
from mcpwrap.plan import registry, unsupported
from mcpwrap.plan.desired import desired
from mcpwrap.plan.diff import Retired, diff
from mcpwrap.plan.steps import Step


def steps(retired: Retired = Retired.KEEP) -> list[Step]:
    """Return what root should do now. Anybody may ask; only root sees the packet rules.

    Raises:
        McpwrapError: the configuration is wrong, or the registry cannot be read.
    """
    config = parse(observe.config_files())
    unsupported.refuse(config)
    have = observe.observe()
    known = {n.removeprefix(ACCOUNT_PREFIX): uid for n, uid in have.uid_by_account.items()}
    before = registry.adopt(observe.registry(), known)
    allocated = registry.allocate(
        config.servers,
        before,
        accounts.taken_ids(config.servers, {a.uid for a in before.by_name.values()}),
    )
    return diff(desired(config, allocated, observe.ids(config)), have, retired)

"""The plan for this machine: its configuration against how it is. Reads only."""

from enum import Enum

from mcpwrap.config.parse import parse
from mcpwrap.core.names import ACCOUNT_PREFIX
from mcpwrap.linux import accounts, observe
from mcpwrap.plan import registry, unsupported
from mcpwrap.plan.desired import desired
from mcpwrap.plan.diff import diff
from mcpwrap.plan.steps import Step


class Retired(Enum):
    """What becomes of the state and the UID of a server that is no longer configured."""

    KEEP = "keep"
    PURGE = "purge"


def steps(retired: Retired = Retired.KEEP) -> list[Step]:
    """Return what root should do now. Anybody may ask; only root sees the packet rules.

    Raises:
        McpwrapError: the configuration is wrong, or the registry cannot be read.
    """
    config = parse(observe.config_files())
    unsupported.refuse(config)
    have = observe.observe()
    known = {n.removeprefix(ACCOUNT_PREFIX): uid for n, uid in have.uid_by_account.items()}
    allocated = registry.allocate(
        config.servers,
        registry.adopt(observe.registry(), known),
        accounts.taken_ids(config.servers),
    )
    purged: frozenset[str] = frozenset()
    if retired is Retired.PURGE:
        purged = have.states - config.servers.keys()
        allocated = registry.purge_retired(allocated)
    return diff(desired(config, allocated, observe.ids(config)), have, purge=purged)

"""Everything that `mcpwrap purge` removes: what `apply` has made, and what mcpwrap has written.

The postrm of the .deb has the same files and folders, in shell: root's program is gone by then.
tests/unit/plan/test_purge.py compares them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from mcpwrap.plan import next_version, paths
from mcpwrap.plan.steps import RemoveAccount, RemoveFile, RemoveTree, batches

# Units as patterns of systemctl(1), in the order in which they are stopped: the gate before the
# wrappers, so that it opens no session. The rest with the watchdog of the packet rules is stopped
# when no link wants it: any unit that starts would start it again, by sysinit.target.
SESSIONS = (
    ("mcpwrap-web.*", "mcpwrap-http@*"),
    ("mcpwrap-gate.socket", "mcpwrap-gate.service"),
    ("mcpwrap@*", "mcpwrap-next*", "mcpwrap-worker.*", "mcpwrap-job@*"),
)
EVERYTHING = ("mcpwrap*",)
LINKS = f"{paths.UNITS}/*.wants/mcpwrap*"
DROP_INS = (
    f"{paths.UNITS}/mcpwrap-nft.service.wants",
    f"/run/systemd/system/{next_version.UNIT}.d",
    f"{paths.UNITS}/mcpwrap@*.service.d",
    f"{paths.UNITS}/mcpwrap-http@*.socket.d",
    f"{paths.UNITS}/mcpwrap-job@*.service.d",
    f"{paths.UNITS}/mcpwrap-worker.*.d",
)
# Before the accounts: useradd(8) may give a free UID to a person.
CONTENT_BY_TREE = {
    "/etc/mcpwrap": "the configuration and the policies",
    "/var/lib/mcpwrap": "servers' state, sealed secrets and their keys, pins, saved approvals",
    paths.CACHES: "downloads of servers, and packages of runs",
    "/var/log/mcpwrap": "the audit, and the logs of egress",
}
STAMP = "/var/lib/systemd/timers/stamp-mcpwrap-audit-prune.timer"
# Last: it has the lock that `purge` holds.
RUNTIME = "/run/mcpwrap"
TABLE = "inet mcpwrap"
ROUTES = "127.77.0.0/16"

Find = Callable[[str], Iterable[str]]  # the paths that match a pattern


def own_accounts(sysusers: str) -> list[str]:
    """Return the accounts and groups of mcpwrap itself in a file of sysusers.d(5).

    The file also has a group that other software uses.
    """
    words = (line.split() for line in sysusers.splitlines())
    names = [word[1] for word in words if word[:1] in (["u"], ["g"])]
    return [name for name in names if name.startswith("mcpwrap")]


def unit_steps(find: Find) -> Iterator[RemoveFile | RemoveTree]:
    """Yield the steps after which no unit of mcpwrap is enabled, once systemd has read it."""
    yield from map(RemoveFile, find(LINKS))
    for pattern in DROP_INS:
        yield from map(RemoveTree, find(pattern))


def steps(find: Find, accounts: Iterable[str]) -> Iterator[RemoveFile | RemoveTree | RemoveAccount]:
    """Yield the steps after all units have stopped, and before the packet rules are removed."""
    for tree in CONTENT_BY_TREE:
        yield from map(RemoveTree, find(tree))
    yield from map(RemoveFile, find(STAMP))
    yield from map(RemoveAccount, accounts)


def shown(accounts: Collection[str]) -> list[str]:
    """Return the lines that list what is removed, before the question."""
    width = max(map(len, CONTENT_BY_TREE))
    named = [", ".join(some) for some in batches(sorted(accounts), 4)]
    return [
        "Removed from this machine for good:",
        *(f"  {tree:{width}}  {content}" for tree, content in CONTENT_BY_TREE.items()),
        "  all sessions, and the links and drop-ins of mcpwrap's units",
        f"  {len(accounts)} accounts and groups:",
        *(f"    {line}" for line in named),
        "  the packet rules and routes of mcpwrap, last",
        "Left as they are: the package, people's workspaces, and the files of their agents, in",
        "which each person can restore the former entries before, by `mcpwrap unwrap --all`.",
    ]

"""Registry of permanent UIDs and addresses by name, and of the Squid instance in use."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated

import msgspec

from mcpwrap.core.names import FIRST_UID, LAST_UID, next_uid, preferred_uid
from mcpwrap.core.wire import listener_file
from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths

FORMAT = 1
_Agent = Annotated[
    str, msgspec.Meta(pattern=r"\A(?:0|[1-9][0-9]{0,9})(?:\.[a-z][a-z0-9_-]{0,25})?\Z")
]
_Number = Annotated[int, msgspec.Meta(ge=1, le=listener_file.LAST)]
_INSTANCE = r"\A(?:(?:proxy|intercept)-[1-9][0-9]{0,3})?\Z"


class Allocation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Allocation of one name. A retired one is kept, so that no other name inherits its files."""

    uid: Annotated[int, msgspec.Meta(ge=FIRST_UID, le=LAST_UID)]
    is_retired: bool = False
    # The instance of Squid, "" for none; null is of a version that had one of each kind.
    squid: Annotated[str, msgspec.Meta(pattern=_INSTANCE)] | None = None
    # The numbers of its listeners, by the UID of the agent, and the name of a further URL behind a
    # dot: an agent's URL never changes.
    http: dict[_Agent, _Number] = {}


class Registry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of `/var/lib/mcpwrap/registry.json`: allocations by name."""

    format: int = FORMAT
    by_name: dict[str, Allocation] = {}

    def uid_of(self, name: str) -> int:
        """Return the UID of a name that has one."""
        return self.by_name[name].uid


class _Format(msgspec.Struct):
    """Part of the file that every version has."""

    format: int


def decode(text: str) -> Registry:
    """Return the registry in this text.

    Raises:
        McpwrapError: another format, or not a registry. Guessing would hand out a UID twice.
    """
    try:
        written = msgspec.json.decode(text, type=_Format).format
        if written != FORMAT:
            raise McpwrapError(
                f"unknown format {written}; this version of mcpwrap reads format {FORMAT}",
                where=paths.REGISTRY,
                fix="install the version of mcpwrap that wrote it, or a later one",
                code="E-REGISTRY-FORMAT",
            )
        registry = msgspec.json.decode(text, type=Registry)
    except msgspec.MsgspecError as error:
        raise _damaged(str(error)) from error
    uids = [allocation.uid for allocation in registry.by_name.values()]
    if len(set(uids)) < len(uids):
        raise _damaged("two names have the same UID")
    numbers = [n for allocation in registry.by_name.values() for n in allocation.http.values()]
    if len(set(numbers)) < len(numbers):
        raise _damaged("two listeners have the same address")
    return registry


def _damaged(why: str) -> McpwrapError:
    return McpwrapError(
        f"the file is damaged: {why}",
        where=paths.REGISTRY,
        fix="restore it from a backup",
        code="E-REGISTRY-DAMAGED",
    )


def adopt(registry: Registry, uid_by_name: Mapping[str, int]) -> Registry:
    """Return the registry with the servers whose account exists and which it lacks.

    So after the loss of the registry, no server gets the files of another. An account outside of
    mcpwrap's range, or with the UID of another server, is not mcpwrap's and is not adopted.
    """
    known = {allocation.uid for allocation in registry.by_name.values()}
    found = {
        name: Allocation(uid=uid)
        for name, uid in uid_by_name.items()
        if FIRST_UID <= uid <= LAST_UID and uid not in known
    }
    return Registry(by_name={**found, **registry.by_name})


def without_uid(
    names: Iterable[str], registry: Registry, taken_ids: Collection[int]
) -> frozenset[str]:
    """Return those of `names` that `allocate` will give a new UID."""
    known = registry.by_name
    return frozenset(n for n in names if n not in known or known[n].uid in taken_ids)


def allocate(
    names: Iterable[str],
    registry: Registry,
    taken_ids: Collection[int],
    owned_ids: Collection[int] = (),
) -> Registry:
    """Return the registry in which each of `names` has a UID and every other name is retired.

    `taken_ids` are UIDs and GIDs of accounts and processes that are not mcpwrap's. A name that has
    a UID keeps it, unless another account has got it since: a person comes before a server.
    `owned_ids` own something on this machine, which may be a server's files, and are given to no
    other name.

    Raises:
        McpwrapError: all 20000 are taken.
    """
    wanted = set(names)
    new = without_uid(wanted, registry, taken_ids)
    by_name = {
        name: msgspec.structs.replace(old, is_retired=name not in wanted)
        for name, old in registry.by_name.items()
        if name not in new
    }
    used = {allocation.uid for allocation in by_name.values()} | {*taken_ids, *owned_ids}
    for name in sorted(new):
        uid = _free_uid(name, used)
        used.add(uid)
        old_http = registry.by_name[name].http if name in registry.by_name else {}
        by_name[name] = Allocation(uid=uid, squid="", http=old_http)
    return Registry(by_name=dict(sorted(by_name.items())))


def purge_retired(registry: Registry) -> Registry:
    """Return the registry without its retired names: their UIDs are free again."""
    return Registry(by_name={n: a for n, a in registry.by_name.items() if not a.is_retired})


def _free_uid(name: str, used: Collection[int]) -> int:
    uid = preferred_uid(name)
    for _ in range(LAST_UID - FIRST_UID + 1):
        if uid not in used:
            return uid
        uid = next_uid(uid)
    raise McpwrapError(
        f"every UID from {FIRST_UID} to {LAST_UID} is taken",
        where=f"server {name!r}",
        fix="remove servers with `mcpwrap apply --purge`, or accounts and lines of /etc/subuid "
        "in that range",
        code="E-REGISTRY-NO-UID",
    )

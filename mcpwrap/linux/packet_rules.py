"""Our table in the kernel's packet filter. Reading it needs root."""

from pathlib import Path

import msgspec

from mcpwrap.linux.systemd import ToolError, run
from mcpwrap.plan.nft import SETS, Elements

NFT = "/usr/sbin/nft"


class _Concatenated(msgspec.Struct):
    concat: list[int | str]


class _Set(msgspec.Struct):
    name: str
    elem: msgspec.Raw = msgspec.Raw(b"[]")


_Elements = list[int | str | _Concatenated]


class _Object(msgspec.Struct):
    set: _Set | None = None


class _Listing(msgspec.Struct):
    nftables: list[_Object] = []


class _Counter(msgspec.Struct):
    packets: int


class _Count(msgspec.Struct):
    val: int
    counter: _Counter


class _CountElement(msgspec.Struct):
    elem: _Count


class _CountSet(msgspec.Struct):
    elem: list[_CountElement] = []


class _CountObject(msgspec.Struct):
    set: _CountSet | None = None


class _Counts(msgspec.Struct):
    nftables: list[_CountObject] = []


def text() -> str:
    """Return the rules and the declarations of sets, without what is in them; "" if not loaded."""
    try:
        return run(NFT, "-n", "-s", "-t", "list", "table", "inet", "mcpwrap")
    except ToolError:
        return ""


def is_loaded() -> bool:
    """Say whether the table is there.

    Raises:
        ToolError: nft failed otherwise, which says nothing of the rules.
    """
    try:
        run(NFT, "-t", "list", "table", "inet", "mcpwrap")
    except ToolError as error:
        if "No such file or directory" in error.problem and Path(NFT).exists():
            return False
        raise
    return True


def elements() -> Elements:
    """Return what is in the sets that `apply` fills; nothing if the table is not loaded.

    One call for all: each has nft(8) ask the kernel for everything that it has.
    """
    try:
        listing = run(NFT, "-j", "-n", "list", "table", "inet", "mcpwrap")
    except ToolError:
        return frozenset()
    objects = msgspec.json.decode(listing, type=_Listing).nftables
    return frozenset(
        (found.set.name, _text(element))
        for found in objects
        if found.set and found.set.name in SETS
        for element in msgspec.json.decode(found.set.elem, type=_Elements)
    )


def _text(element: int | str | _Concatenated) -> str:
    if isinstance(element, _Concatenated):
        return " . ".join(map(str, element.concat))
    return str(element)


def refused_by_uid() -> dict[int, int]:
    """Return how many packets of each account were refused since the rules were loaded."""
    try:
        listing = run(NFT, "-j", "-n", "list", "set", "inet", "mcpwrap", "refused_uid")
    except ToolError:
        return {}
    objects = msgspec.json.decode(listing, type=_Counts).nftables
    counted = [each.elem for found in objects if found.set for each in found.set.elem]
    return {each.val: each.counter.packets for each in counted}

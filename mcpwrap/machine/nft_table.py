"""Packet rules in the kernel: mcpwrap's nftables table. Needs root to read it."""

import re

import msgspec

from mcpwrap.linux.systemd.systemctl import ToolError, run
from mcpwrap.plan.egress.nft_elements import SETS, Elements

NFT = "/usr/sbin/nft"
_TABLE = re.compile(r"^table inet mcpwrap \{$.*?^\}$", re.MULTILINE | re.DOTALL)
# nft(8) 1.1.7 lists the number of a set's elements, which refused packets change, with -t too.
_COUNT = re.compile(r"[ \t]*# count [0-9]+$", re.MULTILINE)


class _Concatenated(msgspec.Struct):
    concat: list[int | str]


class _Set(msgspec.Struct):
    elem: list[int | str | _Concatenated] = []


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
    """Return the rules and the declarations of sets, without elements; "" if not loaded."""
    try:
        return _rules()
    except ToolError:
        return ""


def is_loaded() -> bool:
    """Return whether the table is loaded.

    Raises:
        ToolError: nft failed, so it is not known.
    """
    return bool(_rules())


def _rules() -> str:
    """Return mcpwrap's table, out of a listing of all tables.

    To list one table, nft(8) 1.0.6 reads all its elements, though -t prints none of them: 3.4 s if
    a server has filled the sets of refused connections.
    """
    found = _TABLE.search(run(NFT, "-n", "-s", "-t", "list", "ruleset", "inet"))
    return _COUNT.sub("", found[0]) if found else ""


def elements() -> Elements:
    """Return the elements of the sets that `apply` fills; none if the table is not loaded.

    Set by set: the whole table has the sets that servers fill, which nft(8) takes 6 s to print.
    """
    return frozenset((name, text) for name in SETS for text in _in_set(name))


def _in_set(name: str) -> list[str]:
    try:
        listing = run(NFT, "-j", "-n", "list", "set", "inet", "mcpwrap", name)
    except ToolError:
        return []
    objects = msgspec.json.decode(listing, type=_Listing).nftables
    return [_text(element) for found in objects if found.set for element in found.set.elem]


def _text(element: int | str | _Concatenated) -> str:
    if isinstance(element, _Concatenated):
        return " . ".join(map(str, element.concat))
    return str(element)


def refused_by_uid() -> dict[int, int]:
    """Return the number of refused packets by account, since the rules were loaded."""
    try:
        listing = run(NFT, "-j", "-n", "list", "set", "inet", "mcpwrap", "refused_uid")
    except ToolError:
        return {}
    objects = msgspec.json.decode(listing, type=_Counts).nftables
    counted = [each.elem for found in objects if found.set for each in found.set.elem]
    return {each.val: each.counter.packets for each in counted}

"""Our table in the kernel's packet filter."""

import msgspec

from mcpwrap.linux.systemd import ToolError, run

NFT = "/usr/sbin/nft"


class _Set(msgspec.Struct):
    elem: list[int] = []


class _Object(msgspec.Struct):
    set: _Set | None = None


class _Listing(msgspec.Struct):
    nftables: list[_Object] = []


def refused_uids() -> frozenset[int]:
    """Return the UIDs in the set of wrappers; empty if the table is not loaded. Needs root."""
    try:
        listing = run(NFT, "-j", "-n", "list", "set", "inet", "mcpwrap", "wrapped")
    except ToolError:
        return frozenset()
    objects = msgspec.json.decode(listing, type=_Listing).nftables
    return frozenset(uid for found in objects if found.set for uid in found.set.elem)

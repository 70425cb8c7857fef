"""Root's configuration of the SNI front: servers with `transparent` egress, and their addresses."""

from ipaddress import AddressValueError, IPv4Address, IPv4Network

import msgspec

from mcpwrap.core.names import is_server_name

FORMAT = 1
ADDRESSES = IPv4Network("127.77.0.0/16")  # each wrapper has one of these, for good


class Front(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Servers with `transparent` egress: `/var/lib/mcpwrap/front.json`."""

    format: int = FORMAT
    by_server: dict[str, str] = {}  # the address of each


def decode_front(text: bytes) -> Front:
    """Parse the front's file.

    Raises:
        msgspec.MsgspecError: it is malformed, of another format, or has two servers at one address,
            which would make it unknown which of them connects.
    """
    try:
        front = msgspec.json.decode(text, type=Front)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    if front.format != FORMAT:
        raise msgspec.ValidationError(f"format {front.format}, and this version knows {FORMAT}")
    for name, address in front.by_server.items():
        if not is_server_name(name):
            raise msgspec.ValidationError(f"{name!r} is not a server name")
        if not _is_ours(address):
            raise msgspec.ValidationError(f"{address!r} is not in {ADDRESSES}")
    if len(set(front.by_server.values())) < len(front.by_server):
        raise msgspec.ValidationError("two servers have the same address")
    return front


def _is_ours(address: str) -> bool:
    try:
        return IPv4Address(address) in ADDRESSES
    except AddressValueError:
        return False

"""Root's configuration of one agent's HTTP listener: `/var/lib/mcpwrap/http/NAME.UID.json`."""

import msgspec

PORT = 52100
LAST = 65_534  # highest number of a listener; the first is 1


class Listener(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Loopback address at which one account only reaches one server."""

    server: str
    uid: int  # of the agent
    address: str  # 127.78.0.0/16
    is_remote: bool  # the server is a URL


def address_at(number: int) -> str:
    """Return the address of the listener with this number: 127.78.0.1 to 127.78.255.254."""
    high, low = divmod(number, 256)
    return f"127.78.{high}.{low}"


def url(address: str) -> str:
    """Return the URL of a listener, for the configuration of its agent."""
    return f"http://{address}:{PORT}/"


def decode(text: bytes) -> Listener:
    """Parse root's file of a listener.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    try:
        return msgspec.json.decode(text, type=Listener)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error

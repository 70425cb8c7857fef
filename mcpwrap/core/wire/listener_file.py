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
    url_name: str = ""  # of a further URL, whose sessions have a project that root has named

    def agent(self) -> str:
        """Return the agent as the hello to the gate names it: its UID, and the name of the URL."""
        return f"{self.uid}.{self.url_name}" if self.url_name else str(self.uid)

    def instance(self) -> str:
        """Return the instance name of its units: neither a server's name nor a URL's has a dot."""
        return f"{self.server}.{self.agent()}"


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

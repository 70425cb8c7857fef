"""Journal entries with fields of their own (systemd.journal-fields(7)).

Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL. journald asks the kernel for the sender.
"""

import socket
from contextlib import suppress

_IDENTIFIER = "mcpwrap-gate"
_SOCKET = "/run/systemd/journal/socket"


class Journal:
    """Connection to the journal. Without a journal, or while it is full, nothing is written."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with suppress(OSError):
            self._socket.connect(_SOCKET)

    def write(self, message: str, **fields: str) -> bool:
        """Write an entry, with field names in capitals; return whether the journal accepted it."""
        entry = {"MESSAGE": message, "PRIORITY": "6", "SYSLOG_IDENTIFIER": _IDENTIFIER}
        packet = b"".join(_field(name, value) for name, value in (entry | fields).items())
        try:
            self._socket.send(packet, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True


def _field(name: str, value: str) -> bytes:
    """Return a field in the form for any value: name, length in 8 bytes (little-endian), value."""
    text = value.encode(errors="replace")
    return b"%b\n%b%b\n" % (name.encode(), len(text).to_bytes(8, "little"), text)

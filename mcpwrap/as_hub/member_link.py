"""Link of a hub to one member: the control socket at the gate, and two pipes."""

import os
import socket

from mcpwrap.as_hub.streams import LineReader, QueuedWriter
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.systemd.stderr_log import log_line

_MAX_WORDS_CHARS = 200


class MemberLink:
    """Open session of a member."""

    def __init__(self, name: str, control_fd: int, to_member_fd: int, from_member_fd: int) -> None:
        self.name = name
        self.control = socket.socket(fileno=control_fd)
        self.control.setblocking(False)  # noqa: FBT003 - of the standard library
        self.writer = QueuedWriter(to_member_fd)
        self.reader = LineReader(from_member_fd)
        self.ending = ""  # why it has ended, when the gate has reported that
        self.has_output = True  # until the end of its stream
        self.is_over_at_s = float("inf")  # the gate has reported its end by then, if it has ended
        self._last_words = ""

    def receive(self) -> session_socket.Packet | None:
        """Return the gate's next packet; None if it has closed the connection.

        Raises:
            BlockingIOError: there is none yet.
        """
        try:
            packet = self.control.recv(session_socket.MAX_PACKET_BYTES)
            return session_socket.decode(packet) if packet else None
        except BlockingIOError:
            raise
        except (OSError, session_socket.ProtocolError):
            return None

    def log(self, stderr: bytes) -> None:
        """Write the standard error of a member to the hub's own, which its agent gets."""
        for line in stderr.decode(errors="replace").splitlines():
            if text := line.strip():
                log_line(f"{self.name}: {text}")
                self._last_words = shown(text, _MAX_WORDS_CHARS)

    def has_ended(self, why: str) -> None:
        """Note the end of the member's server, whose last words are often the reason."""
        self.ending = f"{why}: {self._last_words}" if self._last_words else why

    def close(self) -> None:
        """Close the session, which ends the member's server."""
        self.control.close()
        self.writer.close()
        os.close(self.reader.fd)

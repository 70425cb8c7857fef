"""Error that refuses a session before it begins."""

from mcpwrap.core.wire import session_socket


class RefusalError(Exception):
    """Refusal of a session; the stub prints the reason and exits with `status`."""

    def __init__(self, status: session_socket.Exit, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why

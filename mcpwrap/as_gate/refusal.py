"""RUNS AS mcpwrap-gate: what ends a session before it began."""

from mcpwrap.core import hello


class RefusalError(Exception):
    """There will be no session; the stub says why and exits with `status`."""

    def __init__(self, status: hello.Exit, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why

"""Shared state of requests: logins, approval client, pages. It is in memory only."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from mcpwrap.as_web import viewer
from mcpwrap.as_web.approval_client import ApprovalClient, ListingFeed
from mcpwrap.as_web.connections import WebConnectionLimits, WebConnections
from mcpwrap.as_web.login_sessions import LoginSessions, LoginTokens
from mcpwrap.as_web.rendering import Pages
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.gate_client import approvals


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Settings that tests replace."""

    gate: str = approvals.PATH
    viewer_of: Callable[[str], Viewer | None] = viewer.viewer_of
    clock: Callable[[], float] = time.monotonic
    limits: WebConnectionLimits = field(default_factory=WebConnectionLimits)
    idle_s: float = 300.0  # without a session and a connection; the socket starts the unit again


class WebState:
    """State that outlives a request; one object for each process."""

    def __init__(self, port: int, settings: WebSettings) -> None:
        # The Host that a browser sends. Any other name is of another site (DNS rebinding).
        self.hosts = (f"127.0.0.1:{port}",)
        self.viewer_of = settings.viewer_of
        self.clock = settings.clock
        self.sessions = LoginSessions()
        self.login_tokens = LoginTokens()
        self.gate = ApprovalClient(settings.gate)
        self.live = ListingFeed(settings.gate)
        self.pages = Pages()
        self.connections: WebConnections | None = None
        self._idle_s = settings.idle_s
        self._used_at_s = settings.clock()

    def is_idle(self) -> bool:
        """Return whether there was no session and no connection for `idle_s`."""
        now_s = self.clock()
        if self.sessions.are_any(now_s) or (self.connections and self.connections.count):
            self._used_at_s = now_s
        return now_s - self._used_at_s >= self._idle_s

    async def viewer(self, user: str) -> Viewer | None:
        """Return the present read access of an account; None if the account no longer exists."""
        return await asyncio.to_thread(self.viewer_of, user)  # a lookup may use the network


STATE = web.AppKey("state", WebState)

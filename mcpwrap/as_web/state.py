"""Shared state of requests: logins, gate client, pages. In memory, gone with the process."""

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
    idle_s: float = 300.0  # without a session and a connection; the socket starts us anew


class WebState:
    """State that outlives a request; one object of this process."""

    def __init__(self, port: int, settings: WebSettings) -> None:
        # As a browser names us. By any other name somebody else's page asks (DNS rebinding).
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
        """Say whether nobody has been logged in or connected for long enough."""
        now_s = self.clock()
        if self.sessions.are_any(now_s) or (self.connections and self.connections.count):
            self._used_at_s = now_s
        return now_s - self._used_at_s >= self._idle_s

    async def viewer(self, user: str) -> Viewer | None:
        """Return what an account may see now; nothing if there is no such account any more."""
        return await asyncio.to_thread(self.viewer_of, user)  # accounts may come from elsewhere


STATE = web.AppKey("state", WebState)

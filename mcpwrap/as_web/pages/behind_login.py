"""Login check in front of the handlers of pages."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from mcpwrap.as_web import responses
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.errors import McpwrapError

_LOGGED_OUT = "you are not logged in any more [E-WEB-NOT-LOGGED-IN]"
Handler = Callable[[web.Request, LoginSession, Viewer], Awaitable[web.StreamResponse]]


def behind_login(
    handler: Handler, *, is_use: bool
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that requires a login.

    `is_use` is False for requests that an open page sends by itself: they do not renew the session.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        session = responses.find_session(request)
        viewer = await request.app[STATE].viewer(session.user) if session else None
        if session is None or viewer is None:
            return _log_in_first(request)
        if is_use:
            session.used_at_s = request.app[STATE].clock()
        try:
            return await handler(request, session, viewer)
        except McpwrapError as error:
            return responses.refused(request, error)

    return handle


def _log_in_first(request: web.Request) -> web.Response:
    if request.method == "POST":
        responses.note(request, "it belongs to no session [E-WEB-NOT-LOGGED-IN]")
        fix = "log in, and answer again"
        return responses.problem(request, 401, _LOGGED_OUT, fix)
    if request.path in {"/list", "/events"}:
        return responses.problem(request, 401, _LOGGED_OUT)
    id_ = request.match_info.get("id", "")
    return responses.redirect_to(f"/login?call={id_}" if id_ else "/login")

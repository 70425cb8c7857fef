"""HTTP responses to a browser: pages, errors, redirects, cookies, security headers."""

from aiohttp import web

from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.state import STATE
from mcpwrap.core.text.sanitise import visible
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.linux.systemd.stderr_log import log_line

EXPIRED_FORM = "this form has expired: fill in the new one [E-WEB-FORM-EXPIRED]"
SESSION_COOKIE = "mcpwrap"
LOGIN_COOKIE = "mcpwrap-login"
# Only files of this server run, no cache keeps a page, and no other page may embed or reference it.
# With `no-referrer` a browser would send the forms of this page with `Origin: null`
# (https://fetch.spec.whatwg.org, "append a request Origin header").
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATUS_BY_CODE = {
    "gone": 410, "late": 410, "changed": 409, "busy": 429, "wrong": 502,
    "proof": 403, "not-you": 403,
}  # fmt: skip


def page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """Return a page of a template, with the values that every page has."""
    session = find_session(request)
    common: dict[str, object] = {
        "user": session.user if session else "",
        "token": session.csrf if session else "",
        "problem": "",
        "fix": "",
    }
    text = request.app[STATE].pages.render(template, common | values)
    return web.Response(text=text, status=status, content_type="text/html")


def problem(request: web.Request, status: int, text: str, fix: str = "") -> web.Response:
    """Return a page with a problem and its fix only."""
    return page(request, "problem.html", {"problem": text, "fix": fix}, status)


def note(request: web.Request, why: str) -> None:
    """Log that a form was not sent by this page. The gate does not receive it."""
    log_line(f"a form for {visible(request.path[:80])} was refused: {why}")


def refused(request: web.Request, error: McpwrapError) -> web.Response:
    """Return a page with the refusal of the gate, or why it cannot be reached."""
    return problem(request, status_of(error), error.named_problem, error.fix)


def status_of(error: McpwrapError) -> int:
    """Return the HTTP status of an error."""
    return _STATUS_BY_CODE[error.reason] if isinstance(error, ApprovalRefusedError) else 503


def redirect_to(path: str) -> web.Response:
    """Redirect the browser to another page of this server, by GET."""
    return web.Response(status=303, headers={"Location": path})


def find_session(request: web.Request) -> LoginSession | None:
    """Return the session that the cookie names."""
    state = request.app[STATE]
    return state.sessions.find(request.cookies.get(SESSION_COOKIE, ""), state.clock())


def set_cookie(response: web.Response, name: str, value: str) -> None:
    """Set a cookie for this host only, hidden from scripts, until the browser is closed.

    Not `Secure`: there is no TLS on the loopback, and not every browser accepts one without TLS.
    """
    response.set_cookie(name, value, path="/", httponly=True, samesite="Strict")

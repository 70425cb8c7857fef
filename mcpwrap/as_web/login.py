"""Handlers of login and logout. Only the gate can verify passwords."""

from aiohttp import web

from mcpwrap.as_web import forms, responses
from mcpwrap.as_web.forms import FormError, LoginForm
from mcpwrap.as_web.responses import LOGIN_COOKIE, SESSION_COOKIE
from mcpwrap.as_web.state import STATE
from mcpwrap.errors import McpwrapError


async def show(request: web.Request) -> web.Response:
    """`GET /login`."""
    return _page(request, request.query.get("call", ""))


async def log_in(request: web.Request) -> web.Response:
    """`POST /login`."""
    form = await read_form(request)
    cookie = request.cookies.get(LOGIN_COOKIE, "")
    if not cookie or not forms.is_ours(form, request.app[STATE].login_tokens.of(cookie)):
        call = form.get("call", "")
        return _page(request, call, responses.EXPIRED_FORM, status=403)
    try:
        credentials = forms.credentials(form)
    except FormError as error:
        return _page(request, form.get("call", ""), str(error), status=400)
    try:
        await request.app[STATE].gate.login(credentials.user, credentials.password)
    except McpwrapError as error:
        status = responses.status_of(error)
        return _page(request, credentials.call, error.named_problem, error.fix, status=status)
    return await _open_session(request, credentials)


async def _open_session(request: web.Request, credentials: LoginForm) -> web.Response:
    state = request.app[STATE]
    user, call = credentials.user, credentials.call
    if await state.viewer(user) is None:
        problem = "this machine has no such account [E-WEB-ACCOUNT]"
        return _page(request, call, problem, status=403)
    state.sessions.close(request.cookies.get(SESSION_COOKIE, ""))
    response = responses.redirect_to(f"/approval/{call}" if call else "/")
    # A new token for each login: one that an attacker planted before is useless.
    responses.set_cookie(response, SESSION_COOKIE, state.sessions.open(user, state.clock()))
    response.del_cookie(LOGIN_COOKIE, path="/", httponly=True, samesite="Strict")
    return response


async def log_out(request: web.Request) -> web.Response:
    """`POST /logout`."""
    session = responses.find_session(request)
    if session and not forms.is_ours(await read_form(request), session.csrf):
        return responses.problem(
            request, 403, "this form has expired [E-WEB-FORM-EXPIRED]", "reload the page"
        )
    request.app[STATE].sessions.close(request.cookies.get(SESSION_COOKIE, ""))
    response = responses.redirect_to("/login")
    response.del_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="Strict")
    return response


async def read_form(request: web.Request) -> dict[str, str]:
    """Return the fields of a form. A repeated field is refused, since it is ambiguous.

    Raises:
        web.HTTPBadRequest: the form cannot be read, or has a field twice.
    """
    try:
        fields = await request.post()
    except ValueError as error:  # not UTF-8, or too many fields
        raise web.HTTPBadRequest(reason="the form cannot be read [E-WEB-FORM-INVALID]") from error
    form = {name: value for name, value in fields.items() if isinstance(value, str)}
    if len(form) != len(fields):
        raise web.HTTPBadRequest(reason="the form has a field twice [E-WEB-FORM-INVALID]")
    return form


def _page(
    request: web.Request, call: str, problem: str = "", fix: str = "", *, status: int = 200
) -> web.Response:
    cookie = request.cookies.get(LOGIN_COOKIE) or request.app[STATE].login_tokens.new_cookie()
    token = request.app[STATE].login_tokens.of(cookie)
    call = call if forms.ID.fullmatch(call) else ""
    values: dict[str, object] = {"call": call, "token": token, "user": ""}
    values |= {"problem": problem, "fix": fix}
    response = responses.page(request, "login.html", values, status)
    responses.set_cookie(response, LOGIN_COOKIE, cookie)
    return response

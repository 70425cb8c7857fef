"""Handlers of login and logout. The gate alone knows passwords."""

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
        return _page(request, call, "this form is from before: fill in the new one", status=403)
    try:
        given = forms.credentials(form)
    except FormError as error:
        return _page(request, form.get("call", ""), str(error), status=400)
    try:
        await request.app[STATE].gate.login(given.user, given.password)
    except McpwrapError as error:
        status = responses.status_of(error)
        return _page(request, given.call, error.problem, error.fix, status=status)
    return await _let_in(request, given)


async def _let_in(request: web.Request, given: LoginForm) -> web.Response:
    state = request.app[STATE]
    if await state.viewer(given.user) is None:
        return _page(request, given.call, "there is no such account here", status=403)
    state.sessions.close(request.cookies.get(SESSION_COOKIE, ""))
    response = responses.redirect_to(f"/approval/{given.call}" if given.call else "/")
    # A token of its own for each login: one that somebody planted before is worth nothing.
    responses.set_cookie(response, SESSION_COOKIE, state.sessions.open(given.user, state.clock()))
    response.del_cookie(LOGIN_COOKIE, path="/", httponly=True, samesite="Strict")
    return response


async def log_out(request: web.Request) -> web.Response:
    """`POST /logout`."""
    session = responses.find_session(request)
    if session and not forms.is_ours(await read_form(request), session.csrf):
        return responses.problem(request, 403, "this form is from before", "load the page again")
    request.app[STATE].sessions.close(request.cookies.get(SESSION_COOKIE, ""))
    response = responses.redirect_to("/login")
    response.del_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="Strict")
    return response


async def read_form(request: web.Request) -> dict[str, str]:
    """Return the fields of a form. Of a field that came twice nobody knows which one was meant.

    Raises:
        web.HTTPBadRequest: it cannot be read, or not in one way only.
    """
    try:
        fields = await request.post()
    except ValueError as error:  # not UTF-8, or too many fields
        raise web.HTTPBadRequest(reason="the form cannot be read") from error
    form = {name: value for name, value in fields.items() if isinstance(value, str)}
    if len(form) != len(fields):
        raise web.HTTPBadRequest(reason="a field of the form is there twice")
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

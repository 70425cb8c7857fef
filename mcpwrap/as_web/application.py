"""Routes of the web page, and the checks that every request passes (middleware)."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from mcpwrap.as_web import event_stream, login, request_rules, responses
from mcpwrap.as_web.pages import approval_pages, group_pages, rule_pages
from mcpwrap.as_web.pages.behind_login import behind_login
from mcpwrap.as_web.request_rules import WebRequestHead
from mcpwrap.as_web.state import STATE, WebState
from mcpwrap.linux.systemd.stderr_log import log_line

MAX_BODY_BYTES = 16 * 1024
_ANSWER_S = 45.0  # to read the form and to query the gate, which takes 30 at most
_ID = "{id:[A-Za-z0-9_-]{1,64}}"
_KEY = "{key:[0-9a-f]{16}}"
Next = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build(state: WebState) -> web.Application:
    """Return the application with its routes and checks."""
    application = web.Application(
        middlewares=[_report_errors, _guard], client_max_size=MAX_BODY_BYTES
    )
    application[STATE] = state
    application.on_response_prepare.append(_add_headers)
    application.add_routes(
        [
            web.get("/login", login.show),
            web.post("/login", login.log_in),
            web.post("/logout", login.log_out),
            web.get("/", behind_login(approval_pages.show_list, is_use=True)),
            web.get("/list", behind_login(approval_pages.show_piece, is_use=False)),
            web.get("/events", behind_login(event_stream.stream, is_use=False), allow_head=False),
            web.get(f"/approval/{_ID}", behind_login(approval_pages.show_one, is_use=True)),
            web.post(f"/approval/{_ID}", behind_login(approval_pages.answer, is_use=True)),
            web.get(f"/approval/{_ID}/rule", behind_login(rule_pages.show, is_use=True)),
            web.post(f"/approval/{_ID}/rule", behind_login(rule_pages.describe, is_use=True)),
            web.get("/rules", behind_login(rule_pages.show_rules, is_use=True)),
            web.post(f"/rules/{_ID}", behind_login(rule_pages.revoke, is_use=True)),
            web.get(f"/group/{_KEY}", behind_login(group_pages.show, is_use=True)),
            web.post(f"/group/{_KEY}", behind_login(group_pages.answer, is_use=True)),
            web.get("/static/{name}", _static),
        ]
    )
    return application


async def _static(request: web.Request) -> web.Response:
    found = request.app[STATE].pages.static.get(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    return web.Response(body=found[0], content_type=found[1], charset="utf-8")


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(responses.HEADERS)
    response.headers.popall(hdrs.SERVER, None)


@web.middleware
async def _report_errors(request: web.Request, handler: Next) -> web.StreamResponse:
    """Return a page for every failure. The text of a bug goes to the journal only."""
    response = await _answer(request, handler)
    if not response.prepared:
        response.force_close()  # one request for each connection: see connections.py
    return response


async def _answer(request: web.Request, handler: Next) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        why = "there is no such page" if error.status == 404 else error.reason
        response = responses.problem(request, error.status, why)
        if hdrs.ALLOW in error.headers:
            response.headers[hdrs.ALLOW] = error.headers[hdrs.ALLOW]
        return response
    except TimeoutError:
        return responses.problem(request, 408, "the request took too long [E-WEB-TIMEOUT]")
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001 - one request must not end the others
        log_line(f"a bug in mcpwrap-web: {traceback.format_exc()}")
        why = "a bug in mcpwrap-web: its journal has the details [E-WEB-BUG]"
        return responses.problem(request, 500, why)


@web.middleware
async def _guard(request: web.Request, handler: Next) -> web.StreamResponse:
    if rejected := request_rules.judge(_head(request), request.app[STATE].hosts):
        if request.method == "POST":
            responses.note(request, rejected.why)
        response = responses.problem(request, rejected.status, rejected.why)
        if rejected.status == 405:
            response.headers[hdrs.ALLOW] = ", ".join(request_rules.METHODS)
        return response
    if request.path == "/events":
        return await handler(request)
    async with asyncio.timeout(_ANSWER_S):
        return await handler(request)


def _head(request: web.Request) -> WebRequestHead:
    def every(name: str) -> list[str]:
        return request.headers.getall(name, [])

    return WebRequestHead(
        method=request.method,
        target=request.raw_path,
        host=every(hdrs.HOST),
        origin=every(hdrs.ORIGIN),
        site=every("Sec-Fetch-Site"),
        mode=every("Sec-Fetch-Mode"),
        destination=every("Sec-Fetch-Dest"),
        content_type=every(hdrs.CONTENT_TYPE),
        content_encoding=every(hdrs.CONTENT_ENCODING),
    )

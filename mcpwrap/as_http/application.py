"""Router of HTTP requests: by endpoint and protocol version to handlers, errors to responses."""

import traceback

from aiohttp import HttpVersion11, hdrs, web

from mcpwrap.as_http import responses
from mcpwrap.as_http.gate.gate_session import EndedError
from mcpwrap.as_http.responses import refusal
from mcpwrap.as_http.state import ListenerState
from mcpwrap.as_http.transports import http_sse, request_body, stateless_http, streamable_http
from mcpwrap.as_http.transports.request_body import RejectedRequestError
from mcpwrap.core.http import request_rules
from mcpwrap.core.http.mcp_headers import MODERN, VERSION_HEADER
from mcpwrap.core.http.request_rules import AcceptedRequest, HttpEndpoint, RequestHead
from mcpwrap.linux.systemd.stderr_log import log_line


class Application:
    """Request handler of the listener. A bug in one request does not end the others."""

    def __init__(self, state: ListenerState) -> None:
        self._state = state

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, also after an error; only the journal gets the text of a bug."""
        try:
            response = await self._answer(request)
        except RejectedRequestError as error:
            response = error.response
        except EndedError:
            response = refusal(502, "the server has ended")
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - one request must not end the others
            log_line(f"a bug in mcpwrap-http: {traceback.format_exc()}")
            response = refusal(500, "a bug in mcpwrap-http: its journal has the details")
        if not response.prepared:
            response.headers[hdrs.SERVER] = responses.SERVER
            if not request.content.is_eof():
                response.force_close()  # the rest of the body is not read
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.version != HttpVersion11:  # others, down to 0.9, have other rules
            raise RejectedRequestError(refusal(400, "the only supported version is HTTP/1.1"))
        head = _head(request)
        judged = request_rules.judge(head, self._state.host)
        if not isinstance(judged, AcceptedRequest):
            response = refusal(judged.status, judged.why)
            if judged.allow:
                response.headers[hdrs.ALLOW] = ", ".join(judged.allow)
            raise RejectedRequestError(response)
        match judged.endpoint:
            case HttpEndpoint.OLD_STREAM:
                return await http_sse.stream(self._state, request)
            case HttpEndpoint.OLD_MESSAGES:
                posted = await self._posted(request)
                return await http_sse.post(self._state, head, judged.session, posted)
            case HttpEndpoint.ENDPOINT:
                return await self._at_endpoint(request, head)

    async def _at_endpoint(self, request: web.BaseRequest, head: RequestHead) -> web.StreamResponse:
        if head.method == "POST":
            posted = await self._posted(request)
            if stateless_http.is_modern(head, posted):
                return await stateless_http.post(self._state, request, head, posted)
            return await streamable_http.post(self._state, request, head, posted)
        if stateless_http.is_modern(head, None):
            raise RejectedRequestError(_no_such_method(head))
        if head.method == "GET":
            return await streamable_http.get(self._state, request, head)
        return await streamable_http.delete(self._state, head)

    async def _posted(self, request: web.BaseRequest) -> request_body.RequestBody:
        return await request_body.read(request, self._state.settings.limits.body_s)


def _no_such_method(head: RequestHead) -> web.Response:
    if head.every(VERSION_HEADER) != [MODERN]:
        return refusal(400, "this protocol version is not supported")
    response = refusal(405, f"MCP {MODERN} has only POST")
    response.headers[hdrs.ALLOW] = "POST"
    return response


def _head(request: web.BaseRequest) -> RequestHead:
    fields = tuple((str(name), value) for name, value in request.headers.items())
    return RequestHead(request.method, request.raw_path, fields)

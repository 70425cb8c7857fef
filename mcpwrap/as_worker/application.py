"""Router of HTTP requests: head, token, pool, and errors to statuses.

The interface is described in `core/wire/execution/execute_api.py`. `GET /healthz` needs no token,
and shows totals. `GET /metrics` shows the pool of its token, so no server learns of another.
"""

import re
import traceback

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web

from mcpwrap.as_worker import request_body, responses
from mcpwrap.as_worker.pools import QueueFullError, RunPool
from mcpwrap.as_worker.runs import RunProgress
from mcpwrap.as_worker.slot_client import SlotError
from mcpwrap.as_worker.state import WorkerState
from mcpwrap.core.wire.execution.execute_api import NDJSON, ExecuteRequest, ExecuteResult
from mcpwrap.core.wire.execution.worker_file import LISTENER_POOL
from mcpwrap.http_server.body_reader import BodyError
from mcpwrap.linux.systemd.stderr_log import log_line

METHOD_BY_PATH = {"/execute": "POST", "/healthz": "GET", "/metrics": "GET"}
_DRAINED_IN_S = 5  # `Retry-After` while draining: another worker may serve it by then
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_BEARER = re.compile(r"bearer +([\x21-\x7e]{1,512})", re.IGNORECASE)  # RFC 6750, 2.1


class _RefusedError(Exception):
    """Refusal of a request, with its response."""

    def __init__(self, status: int, why: str, *, retry_after_s: int = 0) -> None:
        super().__init__()
        self.response = responses.error(status, why, retry_after_s=retry_after_s)


class WorkerApplication:
    """Request handler of one socket. A bug in one request does not end the others.

    `host` is the name of the socket on loopback. On the socket for other machines it is "": there
    the certificate binds the name, and the token of the listener's pool is the only one accepted.
    """

    def __init__(self, state: WorkerState, host: str) -> None:
        self._state = state
        self._host = host

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, also after an error; only the journal gets the text of a bug."""
        try:
            response = await self._answer(request)
        except _RefusedError as error:
            response = error.response
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - one request must not end the others
            log_line(f"a bug in mcpwrap-worker: {traceback.format_exc()}")
            why = "a bug in mcpwrap-worker: its journal has the details"
            response = responses.error(500, why, executed=True)
        if not response.prepared:
            response.headers[hdrs.SERVER] = responses.SERVER
            if self._state.is_draining or not request.content.is_eof():
                response.force_close()  # the rest of the body is not read
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._expect_head(request)
        match request.raw_path:
            case "/execute":
                return await self._execute(request)
            case "/healthz":
                self._state.refresh()
                return responses.as_json(
                    self._state.health(), 503 if self._state.is_draining else 200
                )
            case _:
                pool, draining = self._pool(request), self._state.is_draining
                text = self._state.metrics.text_of(pool, is_draining=draining)
                return web.Response(body=text.encode(), headers={hdrs.CONTENT_TYPE: _PROMETHEUS})

    def _expect_head(self, request: web.BaseRequest) -> None:
        if request.version not in {HttpVersion10, HttpVersion11}:
            raise _RefusedError(400, "the supported versions are HTTP/1.0 and HTTP/1.1")
        if hdrs.ORIGIN in request.headers:
            raise _RefusedError(403, "a web page has sent this request")
        if self._host and request.headers.getall(hdrs.HOST, []) != [self._host]:
            raise _RefusedError(403, f"this is {self._host}, and was requested by another name")
        method = METHOD_BY_PATH.get(request.raw_path)
        if method is None:
            raise _RefusedError(404, f"this URL does not exist: {', '.join(METHOD_BY_PATH)} do")
        if request.method != method:
            refused = _RefusedError(405, f"this URL accepts only {method}")
            refused.response.headers[hdrs.ALLOW] = method
            raise refused

    def _pool(self, request: web.BaseRequest) -> RunPool:
        found = [_BEARER.fullmatch(one) for one in request.headers.getall(hdrs.AUTHORIZATION, [])]
        token = found[0][1] if len(found) == 1 and found[0] is not None else ""
        pool = self._state.pool_of(token)
        if not token or pool is None or not (self._host or pool.name == LISTENER_POOL):
            raise _RefusedError(401, "the token is missing, or is not the token of a pool")
        return pool

    async def _execute(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._state.is_draining:
            raise _RefusedError(503, "the worker is draining", retry_after_s=_DRAINED_IN_S)
        pool = self._pool(request)
        if self._state.is_stopped(pool.name):
            raise _RefusedError(503, "`mcpwrap panic` has stopped it", retry_after_s=_DRAINED_IN_S)
        try:
            with self._state.request(), pool.place(), self._state.bodies.share(pool.name) as share:
                body = await request_body.read(request, pool.limits, self._state.body_s, share)
                return await self._run(request, pool, body)
        except QueueFullError as error:
            why = f"all slots are in use, and {pool.queued} requests wait"
            raise self._rejected(
                pool, BodyError(429, why, retry_after_s=error.retry_after_s)
            ) from None
        except BodyError as error:
            raise self._rejected(pool, error) from error

    async def _run(
        self, request: web.BaseRequest, pool: RunPool, body: ExecuteRequest
    ) -> web.StreamResponse:
        async def work(progress: RunProgress) -> ExecuteResult:
            return await self._state.executor.execute(pool, body, progress)

        if _accepts_stream(request):
            return await responses.stream(request, self._state.spawn, work)
        try:
            response = responses.as_json(await work(RunProgress()))
        except SlotError as error:
            retry_after_s = _DRAINED_IN_S if error.status == 503 else 0
            response = responses.error(
                error.status, str(error), executed=error.executed, retry_after_s=retry_after_s
            )
        return await responses.send(request, response)

    def _rejected(self, pool: RunPool, error: BodyError) -> _RefusedError:
        self._state.metrics.of(pool.name).rejected_by_status[error.status] += 1
        return _RefusedError(error.status, str(error), retry_after_s=error.retry_after_s)


def _accepts_stream(request: web.BaseRequest) -> bool:
    kinds = ",".join(request.headers.getall(hdrs.ACCEPT, [])).split(",")
    return NDJSON in {kind.partition(";")[0].strip().lower() for kind in kinds}

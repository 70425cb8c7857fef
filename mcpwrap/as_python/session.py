"""MCP session on two descriptors: requests of both protocol eras, and calls side by side.

The official SDK is not used: importing it takes a second and 60 MB for each session.
"""

import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial

from mcpwrap import __version__
from mcpwrap.as_python.call_progress import CallCancelledError, CallInProgress, CallTicker
from mcpwrap.as_python.replies import ReplyCollector, ReplyWriter
from mcpwrap.as_python.resources import SessionResources
from mcpwrap.as_python.run_tool import RunTool
from mcpwrap.core.execution import server_protocol, tool, tool_result
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.core.protocol import jsonrpc, methods, server_revisions
from mcpwrap.core.protocol.framing import LineBuffer, LineTooLongError
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Batch,
    Decoded,
    Id,
    InvalidBatch,
    Malformed,
    Notification,
    Request,
    Sender,
)
from mcpwrap.core.protocol.server_revisions import McpRequestError
from mcpwrap.linux.systemd.stderr_log import log_line

MAX_CALLS = 16  # at a time
_MAX_LINE_BYTES = 32 * 1024**2  # a call with all files that one may have, in base64
_MAX_BATCH = 64
_READ_BYTES = 262_144
END_S = 1.5  # agents kill a server 2 s after they have closed its input
_Answer = Callable[[Mapping[str, Json], str], dict[str, Json]]


class PythonSession:
    """Session with one agent."""

    def __init__(
        self,
        run_tool: RunTool,
        described: Callable[[], RunEnvironment],
        writer: ReplyWriter,
        ticker: CallTicker,
    ) -> None:
        """`described` returns the environment of runs for the tool's description."""
        self._tool = run_tool
        self._described = described
        self._writer = writer
        self._ticker = ticker
        self._resources = SessionResources(run_tool.files)
        self._handshake: str | None = None  # revision that `initialize` has set
        self._call_by_id: dict[Id, CallInProgress] = {}
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()  # of the two
        self._runs = 0
        self._answer_by_method: Mapping[str, _Answer] = {
            methods.INITIALIZE: self._initialize,
            methods.DISCOVER: lambda _params, _revision: server_protocol.discover_result(),
            "ping": lambda _params, _revision: {},
            methods.TOOLS_LIST: self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }

    def serve(self, fd: int) -> str:
        """Serve until the agent closes the descriptor; return why the session broke, or ""."""
        buffer = LineBuffer(_MAX_LINE_BYTES)
        try:
            while chunk := os.read(fd, _READ_BYTES):
                for line in bytes(buffer.feed(chunk)).split(b"\n"):
                    if line.strip():
                        self._take(line)
        except LineTooLongError:
            return f"a line is over the limit of {_MAX_LINE_BYTES} bytes"
        finally:
            self._end()
        return ""

    def _end(self) -> None:
        """End all runs, and installations with their processes: nothing reads their results."""
        with self._lock:
            calls, threads = tuple(self._call_by_id.values()), tuple(self._threads)
        for call in calls:
            call.cancel()
        deadline_s = time.monotonic() + END_S
        for thread in threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _take(self, line: bytes) -> None:
        max_batch = _MAX_BATCH if self._handshake == methods.BATCHES_IN else 0
        match jsonrpc.decode(line, Sender.AGENT, max_batch):
            case Batch(items):
                expected = sum(map(_expects_reply, items))
                replies = ReplyCollector(self._writer, expected, is_batch=True)
                for item in items:
                    self._take_one(item, replies)
            case InvalidBatch():
                self._writer.write(
                    jsonrpc.error_response(None, INVALID_REQUEST, "a batch is not allowed here")
                )
            case Decoded() | Malformed() as item:
                self._take_one(item, ReplyCollector(self._writer, 1, is_batch=False))

    def _take_one(self, item: Decoded | Malformed, replies: ReplyCollector) -> None:
        if isinstance(item, Malformed):
            replies.add(jsonrpc.error_response(item.id, item.code, item.reason))
        elif isinstance(item.message, Request):
            self._take_request(item.message, replies)
        elif isinstance(item.message, Notification):
            self._take_notification(item.message)
        # A response answers nothing: this server sends no request.

    def _take_notification(self, notification: Notification) -> None:
        if notification.method == methods.CANCELLED:
            cancelled = jsonrpc.as_id(notification.params.get("requestId"))
            with self._lock:
                call = None if cancelled is None else self._call_by_id.get(cancelled)
            if call is not None:
                call.cancel()

    def _take_request(self, request: Request, replies: ReplyCollector) -> None:
        try:
            revision = server_revisions.revision_of(request, self._handshake)
            if request.method == methods.TOOLS_CALL:
                self._begin_call(request, revision, replies)
                return
            answer = self._answer_by_method.get(request.method)
            if answer is None:
                raise server_revisions.unknown_method(request.method)
            result = answer(request.params, revision)
        except McpRequestError as error:
            replies.add(jsonrpc.error_response(request.id, error.code, str(error), error.data))
            return
        replies.add(_result(request.id, result, revision))

    def _initialize(self, params: Mapping[str, Json], _revision: str) -> dict[str, Json]:
        self._handshake = server_revisions.negotiated(params)
        return server_protocol.initialize_result(self._handshake, __version__)

    def _list_tools(self, params: Mapping[str, Json], revision: str) -> dict[str, Json]:
        server_revisions.check_cursor(params)
        tools: Json = [tool.definition(self._described(), revision)]
        return server_protocol.cacheable({"tools": tools}, revision)

    def _list_resources(self, params: Mapping[str, Json], revision: str) -> dict[str, Json]:
        server_revisions.check_cursor(params)
        return self._resources.list_result(revision)

    @staticmethod
    def _list_templates(params: Mapping[str, Json], revision: str) -> dict[str, Json]:
        server_revisions.check_cursor(params)
        return server_protocol.cacheable({"resourceTemplates": []}, revision)

    def _read_resource(self, params: Mapping[str, Json], revision: str) -> dict[str, Json]:
        return self._resources.read_result(params.get("uri"), revision)

    def _begin_call(self, request: Request, revision: str, replies: ReplyCollector) -> None:
        """Begin a call in a thread of its own.

        Raises:
            McpRequestError: it names another tool, or has no valid params.
        """
        name = request.params.get("name")
        if name != tool.NAME:
            raise McpRequestError(INVALID_PARAMS, f"Unknown tool: {name}")
        given = request.params.get("arguments", {})
        if not isinstance(given, dict):
            raise McpRequestError(INVALID_PARAMS, "arguments must be an object")
        call = CallInProgress(_progress_token(request), self._notify_progress)
        with self._lock:
            if request.id in self._call_by_id:
                raise McpRequestError(INVALID_REQUEST, "a request with this id is in progress")
            is_full = len(self._call_by_id) >= MAX_CALLS
            if not is_full:
                self._call_by_id[request.id] = call
        if is_full:
            refused = tool_result.failure(
                f"{MAX_CALLS} calls of this session are in progress, so the code was not executed; "
                "wait for one of them"
            )
            replies.add(_result(request.id, refused, revision))
            return
        run = partial(self._call, request.id, given, call, revision, replies)
        thread = threading.Thread(target=run, name=f"call {request.id}", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _notify_progress(self, params: Json) -> None:
        self._writer.notify(methods.PROGRESS, params)

    def _call(
        self,
        request_id: Id,
        given: dict[str, Json],
        call: CallInProgress,
        revision: str,
        replies: ReplyCollector,
    ) -> None:
        self._ticker.add(call)
        reply: bytes | None = None
        try:
            result, out = self._tool.call(given, call, revision, is_later_call=self._runs > 0)
            self._runs += result["isError"] is False
            self._resources.add(out)
            reply = _result(request_id, result, revision)
        except CallCancelledError:
            pass
        except Exception as bug:  # noqa: BLE001 - the agent must get a response; its text may be the agent's
            traceback.print_tb(bug.__traceback__)
            log_line(f"mcpwrap-python: a bug in mcpwrap: {type(bug).__name__}")
            reply = jsonrpc.error_response(
                request_id, jsonrpc.INTERNAL_ERROR, "the Python server has a bug: see its log"
            )
        finally:
            call.finish()
            self._ticker.discard(call)
            with self._lock:
                del self._call_by_id[request_id]
            replies.add(None if call.is_cancelled else reply)
            with self._lock:
                self._threads.discard(threading.current_thread())


def _expects_reply(item: Decoded | Malformed) -> bool:
    return isinstance(item, Malformed) or isinstance(item.message, Request)


def _result(request_id: Id, result: dict[str, Json], revision: str) -> bytes:
    return jsonrpc.result_response(
        request_id, server_protocol.complete(result, revision, __version__)
    )


def _progress_token(request: Request) -> Id | None:
    meta = request.params.get("_meta")
    return jsonrpc.as_id(meta.get("progressToken")) if isinstance(meta, dict) else None

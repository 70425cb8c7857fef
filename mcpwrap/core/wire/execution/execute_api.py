"""HTTP interface of the worker: requests and replies of `POST /execute`, and the last job frame.

The reply is one JSON object, `ExecuteResult`. With `Accept: application/x-ndjson` it is a line for
each change of state and every second of the run, `Progress`, and at last `{"result": …}`.

    200  the code was executed, whatever its exit status
    400  the request is invalid: empty or too long code, a wrong type, an unknown field
    401  the token is missing or unknown
    408  the body was not complete in time
    413  the body is too long
    429  the queue is full; `Retry-After` has the seconds to wait
    500  the worker or the slot has failed
    503  the worker is draining, or the slot is closed while `apply` changes it; another worker may
         serve the request

A reply of 400 and above is `{"error": TEXT}`; the code was not executed, except for 500 with
`"executed": true`. Unknown fields of replies are ignored: a worker may be newer than the server.
"""

from typing import Annotated, Literal

import msgspec

from mcpwrap.core.wire.execution import job_frames

NDJSON = "application/x-ndjson"
TOKEN = "WORKER_RPC_TOKEN"  # noqa: S105 - the name of the secret
PACKAGES_NAME = r"\A(?:[0-9a-f]{64})?\Z"
# `exit` and `signal`: its first process has ended. `start`: no line of the code was executed. The
# others are limits of the run.
Ending = Literal["exit", "signal", "timeout", "memory", "output", "start"]


class ExecuteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request to execute code. Its sizes are checked against the limits of the pool."""

    code: str
    timeout: Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None = None  # seconds; None: the limit
    files: dict[str, str] = {}  # content in base64, by name, for /in
    packages: Annotated[str, msgspec.Meta(pattern=PACKAGES_NAME)] = ""


class OutFile(msgspec.Struct, frozen=True, kw_only=True):
    """File of /out. `data` is base64; None if the file was too long to be kept."""

    name: str
    size: int
    data: str | None = None


class ExecuteResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run."""

    stdout: str
    stderr: str
    exit_code: int  # 128+N is signal N, as in a shell
    error: str | None  # a limit that was reached, or a signal
    truncated: bool  # the middle of stdout or stderr is missing
    duration_ms: int
    killed: bool  # the run was ended by a limit
    value: str | None = None  # repr of the last expression
    files: tuple[OutFile, ...] = ()
    left_out: Annotated[int, msgspec.Meta(ge=0)] = 0  # entries of /out that `files` has not
    ending: Ending = "exit"
    peak_memory_bytes: int = 0  # 0 if the kernel does not report it
    cpu_ms: int = 0
    run: str = ""  # ID, as in the worker's journal
    timeout: int = 0  # seconds that were in force


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """State of a request that is queued or runs."""

    state: Literal["queued", "running"]
    elapsed_ms: int
    ahead: int = 0  # requests of the pool that are served first
    output: str = ""  # the end of what the run has written


class StreamLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Line of a reply in NDJSON: one of the three."""

    progress: Progress | None = None
    result: ExecuteResult | None = None
    error: "ExecuteError | None" = None


class ExecuteError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply of an error: the request had no result. `status` is for a line of a stream."""

    error: str
    executed: bool = False  # the code may have run; it must not be sent again
    status: int = 0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Reply of `GET /healthz`: 200 if `ok`, else 503. Totals of all pools."""

    status: Literal["ok", "draining"]
    slots: int
    running: int
    queued: int


class ListedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """File of /out that the supervisor has seen; its content, if kept, is in a frame of its own."""

    name: Annotated[str, msgspec.Meta(max_length=job_frames.MAX_FILE_NAME_BYTES)]
    size: Annotated[int, msgspec.Meta(ge=0)]


class JobEnd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of the last frame of a run: how it ended, and what it used."""

    ending: Ending
    status: Annotated[int, msgspec.Meta(ge=0, le=255)]  # exit status, or number of the signal
    duration_ms: Annotated[int, msgspec.Meta(ge=0)]
    cpu_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    peak_memory_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    files: Annotated[tuple[ListedFile, ...], msgspec.Meta(max_length=job_frames.MAX_FILES_OUT)] = ()
    left_out: Annotated[int, msgspec.Meta(ge=0)] = 0  # entries of /out that `files` has not
    why: Annotated[str, msgspec.Meta(max_length=1000)] = ""  # of `start`: what failed

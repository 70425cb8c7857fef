"""Start parameters of a session's processes, and the pipe by which they report failures."""

import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from mcpwrap.as_agent.run.sandbox.layers import Confinement, SandboxLayer
from mcpwrap.session.launch.spawn import Program

FORWARDED = (signal.SIGINT, signal.SIGTERM)  # to the server
RELOADING = signal.SIGHUP  # of the policy, by the relay
AWAITED = (*FORWARDED, RELOADING, signal.SIGCHLD)  # by relay and first process, which block them
_RECORD = struct.Struct("=Bi")
_MAX_RECORDS_BYTES = 4096


class Stage(IntEnum):
    """Stage of a start, for error reports. The first three are those of `SandboxLayer`."""

    NAMESPACES = 1
    LANDLOCK = 2
    SECCOMP = 3
    FORK = 4
    FOLDER = 5
    PROGRAM = 6
    FIRST_PROCESS = 7  # it was forked; the record has its pid in place of an error


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLaunch:
    """Parameters of one server's start."""

    program: Program
    closing: Confinement
    stdio: tuple[int, int, int]  # the server's 0, 1 and 2
    signals_blocked: frozenset[signal.Signals]  # by the agent; until the start AWAITED are too


class StageError(OSError):
    """Failed start of the server, with the stage and layer that failed."""

    def __init__(self, stage: Stage, error_number: int) -> None:
        super().__init__(error_number, os.strerror(error_number))
        self.stage = stage
        self.layer = SandboxLayer(stage) if stage <= Stage.SECCOMP else None


@dataclass(frozen=True, slots=True)
class StartReporter:
    """Write end of a pipe to the relay. It is closed when the server runs, by close-on-exec."""

    fd: int

    def say(self, stage: Stage, number: int) -> None:
        """Write a record: a stage, with an error number or a pid."""
        os.write(self.fd, _RECORD.pack(stage, number))

    @contextmanager
    def of(self, stage: Stage) -> Iterator[None]:
        """Report an OSError of this block, and end the process after it."""
        try:
            yield
        except OSError as error:
            self.say(stage, error.errno or 0)
            os._exit(1)


def read_report(fd: int) -> dict[Stage, int]:
    """Return all records, after their writers have ended or become the server."""
    records = b""
    while piece := os.read(fd, _MAX_RECORDS_BYTES):
        records += piece
    return {Stage(stage): number for stage, number in _RECORD.iter_unpack(records)}

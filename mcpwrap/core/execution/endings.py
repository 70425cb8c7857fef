"""Endings of a run: exit code and error text, from the supervisor's report and the limits.

An error names the limit, its value, its setting and an alternative, because an agent that does not
know the cause repeats the same call.
"""

from dataclasses import dataclass
from typing import Literal, assert_never

from mcpwrap.core.wire.execution.execute_api import Ending, JobEnd
from mcpwrap.core.wire.execution.worker_file import RunLimits

FLOOD_FACTOR = 16  # output of a run, as a multiple of what is kept, after which the run is ended
ReachedLimit = Literal["timeout", "memory", "output"]
_KIB, _MIB = 1024, 1024**2
_KILLED = 128 + 9  # exit code of a run that a limit has ended, as a shell reports SIGKILL
# Source: signal(7), the numbers of x86 and ARM.
_SIGNALS = (
    "", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
    "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT",
    "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU",
    "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
)  # fmt: skip
_NOTES = {
    "SIGSYS": ": it made a system call that is not allowed",
    "SIGXFSZ": ": it has written a file that is too long",
}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Ending of a run, as its result reports it."""

    ending: Ending
    exit_code: int
    error: str | None = None  # None: the run ended by itself, whatever its exit status
    killed: bool = False


def flood_bytes(limits: RunLimits) -> int:
    """Return the output of both streams together after which a run is ended."""
    return FLOOD_FACTOR * limits.output_bytes


def outcome_of(end: JobEnd, limits: RunLimits, timeout_s: int) -> RunOutcome:
    """Return the outcome that the supervisor has reported. `timeout_s` is the one in force."""
    match end.ending:
        case "exit":
            return RunOutcome("exit", end.status)
        case "signal":
            return RunOutcome(
                "signal", min(128 + end.status, 255), f"killed by {_signal(end.status)}"
            )
        case "start":
            return RunOutcome("start", 1, f"start: {end.why or 'the run could not be started'}")
        case "timeout" | "memory" | "output":
            return limit_reached(end.ending, limits, timeout_s)
        case _ as never:
            assert_never(never)


def limit_reached(ending: ReachedLimit, limits: RunLimits, timeout_s: int) -> RunOutcome:
    """Return the outcome of a run that was ended at this limit."""
    error = _reached(ending, limits, timeout_s)
    return RunOutcome(ending, _KILLED, error, killed=True)


def supervisor_lost(limits: RunLimits, timeout_s: int, elapsed_s: float) -> RunOutcome:
    """Return the outcome of a run whose frames have ended without the last one.

    Its code can send a signal to its supervisor, which has the same account; so can root, and the
    kernel. PID 1 ends the unit of a run that takes too long.
    """
    if elapsed_s >= timeout_s:
        return limit_reached("timeout", limits, timeout_s)
    why = "the run supervisor was killed, by the code or from outside the run"
    return RunOutcome("signal", _KILLED, why)


def slot_removed() -> RunOutcome:
    """Return the outcome of a run whose slot is not in the worker's configuration any more.

    It has fewer slots, the whole server was removed, or the file is damaged.
    """
    why = "the run slot was removed or stopped by the operator during the run"
    return RunOutcome("signal", _KILLED, why)


def size(count_bytes: int) -> str:
    """Return a size for a person: `512 MiB`, `96 KiB`, `1000 bytes`."""
    for unit_bytes, unit in ((_MIB, "MiB"), (_KIB, "KiB")):
        if count_bytes and count_bytes % unit_bytes == 0:
            return f"{count_bytes // unit_bytes} {unit}"
    return f"{count_bytes} bytes"


def _reached(ending: ReachedLimit, limits: RunLimits, timeout_s: int) -> str:
    match ending:
        case "timeout":
            return _timeout(limits, timeout_s)
        case "memory":
            return (
                f"memory: {size(limits.memory_bytes)} reached (runs.memory): read the file in "
                "chunks, or keep less in memory at a time"
            )
        case "output":
            return (
                f"output: {size(flood_bytes(limits))} reached ({FLOOD_FACTOR} times runs.output, "
                f"{size(limits.output_bytes)}): print less, or write it to a file in /out"
            )
        case _ as never:
            assert_never(never)


def _timeout(limits: RunLimits, timeout_s: int) -> str:
    if timeout_s < limits.seconds:
        setting = f"the argument `timeout`, at most {limits.seconds} by runs.seconds"
        return f"timeout: {timeout_s} s reached ({setting}): raise it, or do less in one call"
    advice = "do less in one call, or save what is done to /out and continue in another call"
    return f"timeout: {timeout_s} s reached (runs.seconds): {advice}"


def _signal(number: int) -> str:
    name = _SIGNALS[number] if 0 < number < len(_SIGNALS) else f"signal {number}"
    return name + _NOTES.get(name, "")

"""Journal line of each run: hash and length of its code, limits and ending; no code, no output."""

from dataclasses import dataclass
from hashlib import sha256

from mcpwrap.core.wire.execution.execute_api import ExecuteResult
from mcpwrap.linux.systemd.stderr_log import log_line

_WORDS = {False: "no", True: "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabel:
    """Identity of a run in the journal."""

    run: str
    pool: str
    code_sha256: str
    code_bytes: int
    timeout_s: int

    def __str__(self) -> str:
        return (
            f"run {self.run} of pool {self.pool}: code sha256:{self.code_sha256} "
            f"{self.code_bytes} bytes, timeout {self.timeout_s} s"
        )


def label_of(run: str, pool: str, code: str, timeout_s: int) -> RunLabel:
    """Return the label of a run."""
    text = code.encode()
    return RunLabel(
        run=run,
        pool=pool,
        code_sha256=sha256(text).hexdigest(),
        code_bytes=len(text),
        timeout_s=timeout_s,
    )


def log_result(label: RunLabel, result: ExecuteResult) -> None:
    """Log a run that has a result."""
    log_line(
        f"{label}, ending {result.ending}, exit code {result.exit_code}, "
        f"{result.duration_ms} ms, truncated {_WORDS[result.truncated]}, "
        f"killed {_WORDS[result.killed]}"
    )


def log_failure(label: RunLabel, why: str, *, executed: bool) -> None:
    """Log a run without a result; `executed` tells whether its code may have run."""
    log_line(f"{label}, failed: {why}; executed {_WORDS[executed]} [E-WORKER-SLOT]")


def log_cancelled(label: RunLabel) -> None:
    """Log a run whose caller has closed the connection."""
    log_line(f"{label}, ended by its caller")

"""Counters of the worker, and their text in the format of Prometheus, version 0.0.4.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/. Names of pools and endings
need no escapes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

from mcpwrap.as_worker.pools import RunPool
from mcpwrap.core.wire.execution.execute_api import Ending

ENDINGS = (*get_args(Ending), "failed", "cancelled")  # the last two have no result


@dataclass(slots=True)
class PoolCounters:
    """Counters of one pool since the start of the worker."""

    runs_by_ending: Counter[str] = field(default_factory=Counter)
    rejected_by_status: Counter[int] = field(default_factory=Counter)
    run_s: float = 0.0  # all runs together


class WorkerMetrics:
    """Counters by pool."""

    def __init__(self) -> None:
        self._by_pool: dict[str, PoolCounters] = {}

    def of(self, pool: str) -> PoolCounters:
        """Return the counters of a pool."""
        return self._by_pool.setdefault(pool, PoolCounters())

    def text_of(self, pool: RunPool, *, is_draining: bool) -> str:
        """Return the text for one pool; it ends with a newline."""
        return "".join(
            f"{line}\n" for line in _lines(pool, self.of(pool.name), is_draining=is_draining)
        )


def _lines(pool: RunPool, counters: PoolCounters, *, is_draining: bool) -> Iterator[str]:
    label = f'pool="{pool.name}"'
    yield from _family("draining", "gauge", "Whether new requests are refused.")
    yield f"mcpwrap_worker_draining {int(is_draining)}"
    for name, value, what in (
        ("slots", pool.limits.at_once, "Run slots."),
        ("running", pool.running, "Run slots in use."),
        ("queued", pool.queued, "Requests that wait for a slot."),
    ):
        yield from _family(name, "gauge", what)
        yield f"mcpwrap_worker_{name}{{{label}}} {value}"
    yield from _family("runs_total", "counter", "Runs by how they ended.")
    for ending in ENDINGS:
        count = counters.runs_by_ending[ending]
        yield f'mcpwrap_worker_runs_total{{{label},ending="{ending}"}} {count}'
    yield from _family("run_seconds_total", "counter", "Time of all runs.")
    yield f"mcpwrap_worker_run_seconds_total{{{label}}} {counters.run_s!r}"
    yield from _family("rejected_total", "counter", "Requests that were refused, by status.")
    for status, count in sorted(counters.rejected_by_status.items()):
        yield f'mcpwrap_worker_rejected_total{{{label},status="{status}"}} {count}'


def _family(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP mcpwrap_worker_{name} {what}"
    yield f"# TYPE mcpwrap_worker_{name} {kind}"

"""Worker's `STATUS=` line for systemd: for people to read, and for `mcpwrap status` to parse.

    ready: 3 of 6 slots run, 2 requests wait; python 2 run, 2 wait; worker 1 run, 0 wait

Pools without runs and requests are left out. systemd discards a notification of more than 4096
bytes, so a long list is cut: then the numbers of the listed pools do not add up to the totals, and
those of the others are not known. At its end is why other machines are not served, if the
configuration has a listener for them: `; other machines are refused: REASON`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_MAX_CHARS = 3000  # of one byte each
_MAX_REASON_BYTES = 500
_REFUSED = "; other machines are refused: "
_HEAD = re.compile(r"(ready|draining): ([0-9]+) of [0-9]+ slots run, ([0-9]+) requests wait")
_POOL = re.compile(r"([a-z0-9_-]+) ([0-9]+) run, ([0-9]+) wait")


@dataclass(frozen=True, slots=True)
class PoolRuns:
    """Numbers of runs, and of requests that wait for a slot."""

    running: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRuns:
    """Parsed status of a worker that is up. `by_pool` has the pools that the text lists."""

    is_draining: bool
    by_pool: Mapping[str, PoolRuns]
    lists_all: bool  # the pools that are not listed are idle
    listener_flaw: str = ""  # why other machines are refused

    def of(self, pool: str) -> PoolRuns | None:
        """Return the numbers of one pool; None if they are not known."""
        return self.by_pool.get(pool, PoolRuns(0, 0) if self.lists_all else None)


def text(
    by_pool: Mapping[str, PoolRuns], slots: int, *, is_draining: bool, listener_flaw: str = ""
) -> str:
    """Return the `STATUS=` of the worker (sd_notify(3))."""
    total = _total(by_pool)
    state = "draining" if is_draining else "ready"
    line = f"{state}: {total.running} of {slots} slots run, {total.queued} requests wait"
    for name, runs in sorted(by_pool.items()):
        if runs != PoolRuns(0, 0) and len(line) < _MAX_CHARS:
            line += f"; {name} {runs.running} run, {runs.queued} wait"
    reason = listener_flaw.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
    return line + (f"{_REFUSED}{reason}" if reason else "")


def parse(status_text: str) -> WorkerRuns | None:
    """Parse a `STATUS=`; None if it is another text, such as that of a worker that starts."""
    runs, _, listener_flaw = status_text.partition(_REFUSED)
    head, *rest = runs.split("; ")
    found, pools = _HEAD.fullmatch(head), [_POOL.fullmatch(part) for part in rest]
    if found is None:
        return None
    by_pool = {pool[1]: PoolRuns(int(pool[2]), int(pool[3])) for pool in pools if pool}
    total = PoolRuns(int(found[2]), int(found[3]))
    return WorkerRuns(
        is_draining=found[1] == "draining",
        by_pool=by_pool,
        lists_all=_total(by_pool) == total,
        listener_flaw=listener_flaw,
    )


def _total(by_pool: Mapping[str, PoolRuns]) -> PoolRuns:
    every = by_pool.values()
    return PoolRuns(sum(each.running for each in every), sum(each.queued for each in every))

"""Worker's `STATUS=` line: what `mcpwrap status` reads is what the worker wrote."""

import pytest

from mcpwrap.core.wire.execution.worker_status import PoolRuns, WorkerRuns, parse, text

IDLE = PoolRuns(0, 0)


def runs(*, lists_all: bool) -> WorkerRuns:
    return WorkerRuns(is_draining=False, by_pool={}, lists_all=lists_all)


@pytest.mark.parametrize("is_draining", [False, True])
@pytest.mark.parametrize(
    ("by_pool", "line"),
    [
        ({}, "0 of 6 slots run, 0 requests wait"),
        ({"python": IDLE}, "0 of 6 slots run, 0 requests wait"),
        (
            {"worker": PoolRuns(1, 0), "python": PoolRuns(2, 7), "idle": IDLE},
            "3 of 6 slots run, 7 requests wait; python 2 run, 7 wait; worker 1 run, 0 wait",
        ),
    ],
)
def test_a_text_is_parsed_to_the_same_numbers(
    by_pool: dict[str, PoolRuns], line: str, *, is_draining: bool
) -> None:
    written = text(by_pool, 6, is_draining=is_draining)
    assert written == f"{'draining' if is_draining else 'ready'}: {line}"
    found = parse(written)
    assert found is not None
    assert found.is_draining == is_draining
    assert {name: found.of(name) for name in by_pool} == by_pool


@pytest.mark.parametrize(("letter", "count_bytes"), [("x", 1), ("\u20ac", 3), ("\U0001f511", 4)])
def test_the_reason_why_other_machines_are_refused_is_kept(letter: str, count_bytes: int) -> None:
    by_pool = {f"pool-{n:03}": PoolRuns(1, 1) for n in range(900)}
    for pools in ({"python": PoolRuns(1, 0)}, by_pool):
        flaw = (begin := "one; python 7 run, 7 wait; ") + letter * 1000
        written = text(pools, 2, is_draining=False, listener_flaw=flaw)
        assert len(written.encode()) < 4096
        found = parse(written)
        assert found is not None
        kept = (500 - len(begin)) // count_bytes  # whole characters
        assert found.listener_flaw == begin + letter * kept
        assert found.of("python") in (None, PoolRuns(1, 0))


def test_a_long_list_is_cut_and_the_others_are_not_known() -> None:
    by_pool = {f"pool-{n:03}": PoolRuns(1, 1) for n in range(900)}
    written = text(by_pool, 1800, is_draining=False)
    assert len(written) < 4096  # PIPE_BUF: systemd takes no more
    found = parse(written)
    assert found is not None
    assert found.of("pool-000") == PoolRuns(1, 1)
    assert found.of("pool-899") is None
    assert not found.lists_all


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("", None),
        ("starting", None),
        ("ready: 1 of 2 sessions", None),  # a wrapper's
        # Totals alone: which pool has the run is not known.
        (
            "ready: 1 of 2 slots run, 0 requests wait",
            runs(lists_all=False),
        ),
        (
            "ready: 0 of 2 slots run, 0 requests wait",
            runs(lists_all=True),
        ),
        (
            "draining: 0 of 2 slots run, 0 requests wait; a note",
            WorkerRuns(is_draining=True, by_pool={}, lists_all=True),
        ),
    ],
)
def test_other_texts(line: str, parsed: WorkerRuns | None) -> None:
    assert parse(line) == parsed

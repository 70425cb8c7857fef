"""Root's lock, and the short wait while another process holds it."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from mcpwrap.as_root import lock
from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LOCK", str(tmp_path / "lock"))


def test_a_lock_held_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    with ExitStack() as other:
        other.enter_context(lock.in_turn(paths.LOCK))

        def wait(seconds: float) -> None:
            waited.append(seconds)
            other.close()

        monkeypatch.setattr(time, "sleep", wait)
        with lock.only_one():
            assert waited


def test_the_wait_for_a_held_lock_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_TIMEOUT_S", 0.1)
    with (
        lock.in_turn(paths.LOCK),
        pytest.raises(McpwrapError, match="is running; nothing was changed"),
        lock.only_one(),
    ):
        raise AssertionError("two hold it")


def test_if_free_does_not_wait() -> None:
    with lock.in_turn(paths.LOCK), lock.if_free(paths.LOCK) as is_free:
        assert not is_free
    with lock.if_free(paths.LOCK) as is_free, lock.if_free(paths.LOCK) as is_free_again:
        assert (is_free, is_free_again) == (True, False)


def test_no_lock_is_always_free() -> None:
    with lock.if_free("") as is_free:
        assert is_free

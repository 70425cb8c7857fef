"""Event log of the front: bounded, rate-limited; a failure to write it does not end the service."""

import asyncio
from pathlib import Path

import pytest

from mcpwrap.as_front import event_log
from mcpwrap.as_front.event_log import MAX_EVENTS_PER_S, EventLog, EventRateLimit
from mcpwrap.core.wire.sni_front_log import decode


def lines(path: Path) -> list[str]:
    return [decode(line).detail for line in path.read_bytes().splitlines()]


def test_the_file_can_be_read_by_its_group_and_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for n in range(2):
        EventLog(path).note("git", "not-tls", "", str(n))
    assert lines(path) == ["0", "1"]
    assert path.stat().st_mode & 0o7777 == 0o640


def test_a_full_file_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_FILE_BYTES", 300)
    path = tmp_path / "events.jsonl"
    writer = EventLog(path)
    for n in range(8):
        writer.note("git", "not-tls", "", str(n))
    assert lines(tmp_path / "events.jsonl.old") + lines(path) == ["3", "4", "5", "6", "7"]
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "events.jsonl.old"]


def test_a_failed_write_is_logged_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    writer = EventLog(tmp_path / "none" / "events.jsonl")
    for _ in range(3):
        writer.note("git", "not-tls")
    assert capfd.readouterr().err.count("events are not written: ") == 1
    (tmp_path / "none").mkdir()
    writer.reopen()
    writer.note("git", "not-tls", "", "now")
    assert lines(tmp_path / "none" / "events.jsonl") == ["now"]


def test_a_full_disk_is_logged_once_too(capfd: pytest.CaptureFixture[str]) -> None:
    writer = EventLog(Path("/dev/full"))
    for _ in range(3):
        writer.note("git", "not-tls")
    assert capfd.readouterr().err == (
        "events are not written: [Errno 28] No space left on device [E-FRONT-EVENTS]\n"
    )


def test_a_link_is_not_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "other")
    EventLog(tmp_path / "events.jsonl").note("git", "not-tls")
    assert "events are not written" in capfd.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_server_that_goes_leaves_its_count(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    async def flood() -> None:
        writer = EventLog(path)
        for n in range(25):
            writer.note("git", "not-tls", "", str(n))
        writer.forget("git")
        writer.forget("git")

    asyncio.run(flood())
    assert lines(path) == [*map(str, range(20)), "5 more"]


def test_so_many_a_second_are_admitted_wherever_the_second_begins() -> None:
    quota = EventRateLimit()
    admitted = [quota.admits(10.0 + n * 0.01) for n in range(30)]
    assert admitted == [True] * MAX_EVENTS_PER_S + [False] * 10
    assert not quota.admits(10.99)
    assert quota.admits(11.0)  # the first event is a second ago, the second is not
    assert not quota.admits(11.0)


def test_events_left_out_are_counted_once() -> None:
    quota = EventRateLimit()
    assert all(quota.admits(10.0) for _ in range(MAX_EVENTS_PER_S))
    firsts = [(quota.admits(10.0), quota.is_first_left_out()) for _ in range(3)]
    assert firsts == [(False, True), (False, False), (False, False)]
    assert (quota.take_left_out(), quota.take_left_out()) == (3, 0)
    assert not quota.admits(10.0)
    assert quota.is_first_left_out()


def test_a_name_is_new_once_a_minute() -> None:
    quota = EventRateLimit()
    assert quota.is_new_name("a", 100.0)
    assert not quota.is_new_name("a", 159.0)
    assert quota.is_new_name("b", 159.0)
    assert quota.is_new_name("a", 160.0)


def test_the_memory_for_names_is_bounded() -> None:
    quota = EventRateLimit()
    assert all(quota.is_new_name(str(n), 100.0) for n in range(5000))
    assert len(quota._names) == 1200

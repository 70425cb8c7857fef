"""Chained file that can no longer grow, as on a full disk, and that can grow again."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.session.audit_log.chained_file import ChainedFile

KEY = bytes(range(32))


def opened(path: Path) -> ChainedFile:
    return ChainedFile(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), Chain(KEY))


def in_child(story: Callable[[], None]) -> None:
    """Run a test in a process of its own, because it sets a resource limit."""
    if (pid := os.fork()) == 0:
        status = 1
        try:
            story()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def let_files_grow_to(size: int) -> None:
    """Source: RLIMIT_FSIZE of setrlimit(2); Python ignores the signal, so write(2) fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def records_of(text: bytes) -> list[bytes]:
    """Return the lines that the chain accepts as its next record."""
    chain = Chain(KEY)
    return [line for line in text.splitlines(keepends=True) if chain.accepts(line)]


def test_records_are_lines_of_one_chain(tmp_path: Path) -> None:
    file = opened(tmp_path / "x")
    assert file.append(b'{"n":0}')
    assert file.append(b'{"n":1}')
    text = (tmp_path / "x").read_bytes()
    assert [line[:7] for line in records_of(text)] == [b'{"n":0,', b'{"n":1,']
    assert (file.size, file.torn, file.chain.count) == (len(text), 0, 2)


@pytest.mark.parametrize("room", [0, 1, 7, 30, 48])
def test_a_truncated_line_is_not_a_record_and_the_next_line_is(tmp_path: Path, room: int) -> None:
    """The disk has room for `room` bytes of the second line: with 48, for all but its newline."""
    path = tmp_path / "x"

    def story() -> None:
        file = opened(path)
        assert file.append(b'{"n":0}')
        before, mac = file.size, file.chain.mac
        let_files_grow_to(before + room)
        for _ in range(3):
            assert not file.append(b'{"n":1}')
            assert (file.torn, file.chain.count, file.chain.mac) == (room, 1, mac)
        let_files_grow_to(1 << 20)
        assert file.append(b'{"n":1,"torn":%d}' % file.torn)
        assert file.append(b'{"n":2}')
        assert (file.torn, file.chain.count, file.size) == (0, 3, path.stat().st_size)

    in_child(story)
    text = path.read_bytes()
    first, second, third = records_of(text)
    gap = text[len(first) : text.index(second)]
    if room:
        assert gap.endswith(b"!\n")
        assert len(gap) - 2 == room
        assert second.startswith(b'{"n":1,"torn":%d,' % room)
    else:
        assert gap == b""  # no byte was written
    assert text.endswith(second + third)


def test_several_truncated_lines_are_counted_together(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def story() -> None:
        file = opened(path)
        for room in (5, 5 + 1, 5 + 2, 5 + 20):  # in `!`, after it, and in the line after that
            let_files_grow_to(room)
            assert not file.append(b'{"n":0}')
            assert file.torn == room
        let_files_grow_to(1 << 20)
        assert file.append(b'{"n":0,"torn":%d}' % file.torn)

    in_child(story)
    text = path.read_bytes()
    (record,) = records_of(text)
    assert text[25:] == b"!\n" + record
    assert record.startswith(b'{"n":0,"torn":25,')


def test_it_continues_in_another_file(tmp_path: Path) -> None:
    file = opened(tmp_path / "1")
    assert file.append(b'{"n":0}')
    fd = os.open(tmp_path / "2", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    file.go_on_in(fd)
    assert file.size == 0
    assert file.append(b'{"n":1}')
    both = [(tmp_path / name).read_bytes() for name in "12"]
    assert records_of(b"".join(both)) == both

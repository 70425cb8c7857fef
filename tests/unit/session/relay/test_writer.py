"""Two threads that write to one descriptor, with a slow reader."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpwrap.session.relay.writer import MAX_PUT, MessageWriter

BIG = b"x" * 1_000_000 + b"\n"


def nothing() -> None:
    """Ignore the write error."""


def read_to_end(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def test_a_put_does_not_block_while_another_thread_writes() -> None:
    reader, writer = os.pipe()
    sink = MessageWriter(writer, nothing)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(sink.write, BIG)
        assert os.read(reader, 1) == b"x"  # it has written a part, and the pipe is full
        for n in range(MAX_PUT):
            sink.put(b"%d\n" % n)
        assert not writing.done()
        text = pool.submit(read_to_end, reader)
        writing.result()
        sink.close()
        lines = text.result().splitlines()
    assert lines[0] == BIG[1:-1]
    assert lines[1:] == [b"%d" % n for n in range(MAX_PUT)]  # complete, in order, and none lost


def test_a_put_blocks_over_the_limit() -> None:
    reader, writer = os.pipe()
    sink = MessageWriter(writer, nothing)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(sink.write, BIG)
        assert os.read(reader, 1) == b"x"
        went = threading.Semaphore(0)

        def flood() -> None:
            for _ in range(MAX_PUT + 1):
                sink.put(b"refused\n")
                went.release()

        flooding = pool.submit(flood)
        for _ in range(MAX_PUT):
            went.acquire()
        assert not went.acquire(timeout=0.1)  # the last one blocks until the reader reads
        text = pool.submit(read_to_end, reader)
        flooding.result()
        writing.result()
        sink.close()
        assert text.result().count(b"refused\n") == MAX_PUT + 1


@pytest.mark.parametrize("how", ["write", "put"])
def test_a_closed_reader_is_reported_once(how: str) -> None:
    reader, writer = os.pipe()
    told = []
    sink = MessageWriter(writer, lambda: told.append("broken"))
    os.close(reader)
    for _ in range(3):
        getattr(sink, how)(b"x\n")
    sink.close()
    sink.write(b"after the end\n")
    assert told == ["broken"]

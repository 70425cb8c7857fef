"""Writer of frames: it never blocks, and loses nothing."""

import os

import pytest

from mcpwrap.as_job.frame_writer import FrameWriter
from mcpwrap.core.wire.execution import job_frames

LONG = b"x" * 1024**2  # more than a pipe holds


def test_a_frame_is_written_at_once() -> None:
    read_fd, write_fd = os.pipe()
    frames = FrameWriter(write_fd)
    frames.put(job_frames.STDOUT, b"hello")
    assert not frames.is_pending()
    assert os.read(read_fd, 100) == job_frames.frame(job_frames.STDOUT, b"hello")


def test_a_frame_waits_for_a_slow_worker() -> None:
    read_fd, write_fd = os.pipe()
    frames = FrameWriter(write_fd)
    frames.put(job_frames.FILE, LONG)
    received = bytearray()
    while frames.is_pending():
        received += os.read(read_fd, 2**20)
        frames.write()
    os.close(write_fd)
    while rest := os.read(read_fd, 2**20):
        received += rest
    assert bytes(received) == job_frames.frame(job_frames.FILE, LONG)


def test_a_worker_that_has_gone_is_an_error() -> None:
    read_fd, write_fd = os.pipe()
    frames = FrameWriter(write_fd)
    frames.put(job_frames.FILE, LONG)
    os.close(read_fd)
    with pytest.raises(BrokenPipeError):
        frames.flush()

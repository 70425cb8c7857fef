"""Sealed memfd, passed to another process."""

import os

import pytest

from mcpwrap.linux.unix_socket import memfd


@pytest.mark.parametrize(
    "data", [b"", b"text", os.urandom(3 << 20)], ids=["empty", "text", "random"]
)
def test_it_is_read_whole_and_cannot_be_changed(data: bytes) -> None:
    fd = memfd.sealed("test", data)
    try:
        assert memfd.read_all(fd) == memfd.read_all(fd) == data
        with pytest.raises(PermissionError):
            os.pwrite(fd, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(fd, 1 << 23)
    finally:
        os.close(fd)

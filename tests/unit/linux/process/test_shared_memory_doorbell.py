"""Doorbell flag in shared memory: the other process sees it once."""

import os

from mcpwrap.linux.process.shared_memory import DoorbellFlag


def test_a_flag_is_seen_once_by_the_other_process() -> None:
    bell = DoorbellFlag()
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    if (pid := os.fork()) == 0:
        before = bell.test_and_clear()
        os.write(to_parent, b"?")
        os.read(from_parent, 1)
        after = bell.test_and_clear(), bell.test_and_clear()
        os._exit(0 if (before, after) == (False, (True, False)) else 1)
    os.read(from_child, 1)
    bell.raise_flag()
    os.write(to_child, b"!")
    assert os.waitpid(pid, 0)[1] == 0
    assert not bell.test_and_clear()  # the other process has cleared it
    for fd in (from_child, to_parent, from_parent, to_child):
        os.close(fd)
    bell.close()

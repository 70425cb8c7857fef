"""User namespaces of ID-mapped mounts: agent's and wrapper's ids swapped (mount_setattr(2))."""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

_NEW_USER_NAMESPACE = 0x10000000
_IDS = 2**32 - 1  # number of ids: the last 32-bit value is not an id (user_namespaces(7))

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Swap:
    """Pair of ids that are mapped to each other."""

    agent: int
    wrapper: int

    def text(self) -> str:
        """Return the map in the form of uid_map: all other ids are mapped to themselves."""
        low, high = sorted((self.agent, self.wrapper))
        lines = [
            (0, 0, low),
            (low, high, 1),
            (low + 1, low + 1, high - low - 1),
            (high, low, 1),
            (high + 1, high + 1, _IDS - high - 1),
        ]
        return "".join(f"{inside} {out} {count}\n" for inside, out, count in lines if count)


def namespace(uids: Swap, gids: Swap) -> int:
    """Return a descriptor of a user namespace with these maps. No process is left in it.

    Raises:
        OSError: the kernel cannot create one, or root may not map these ids.
    """
    ready_fd, say_ready_fd = os.pipe2(os.O_CLOEXEC)
    wait_fd, release_fd = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(release_fd)
        _be_the_namespace(say_ready_fd, wait_fd)
    try:
        os.close(say_ready_fd)
        error_number = int.from_bytes(os.read(ready_fd, 4))
        if error_number:
            raise OSError(error_number, os.strerror(error_number))
        Path(f"/proc/{pid}/uid_map").write_text(uids.text(), encoding="ascii")
        Path(f"/proc/{pid}/gid_map").write_text(gids.text(), encoding="ascii")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready_fd, wait_fd, release_fd):
            os.close(fd)
        os.waitpid(pid, 0)


def _be_the_namespace(say_ready_fd: int, wait_fd: int) -> None:
    """Hold the namespace open in the child until the parent has it; never returns."""
    failed = _libc.unshare(_NEW_USER_NAMESPACE) != 0
    os.write(say_ready_fd, (ctypes.get_errno() if failed else 0).to_bytes(4))
    os.read(wait_fd, 1)  # until the parent has a descriptor of the namespace
    os._exit(0)

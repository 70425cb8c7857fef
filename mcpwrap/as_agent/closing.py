"""RUNS AS THE AGENT: what is taken from a server, layer by layer, before it starts."""

from dataclasses import dataclass
from enum import Enum, IntEnum

from mcpwrap.linux import landlock, namespaces, seccomp, server_filter, setuid_filter
from mcpwrap.linux.landlock import Tcp
from mcpwrap.linux.namespaces import Kind

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_APART = Kind.USER | Kind.MOUNTS | Kind.PROCESSES | Kind.IPC


class Layer(IntEnum):
    """What closes it in. Each stands on its own where another is not to be had."""

    NAMESPACES = 1
    LANDLOCK = 2
    SECCOMP = 3


SHOWN = {
    Layer.NAMESPACES: "user namespaces",
    Layer.LANDLOCK: "Landlock",
    Layer.SECCOMP: "seccomp",
}
WITHOUT = {
    Layer.NAMESPACES: "it can change modes of your files, and see which programs you run",
    Layer.LANDLOCK: "it can read your files, and tell other programs of yours to end",
    Layer.SECCOMP: "it can speak to services of this machine, try more of the kernel, and make "
    "programs that run as you whoever starts them",
}


class Network(Enum):
    """What a server reaches."""

    NOTHING = "nothing"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How far one server is closed in."""

    to_read: tuple[str, ...]
    to_write: tuple[str, ...]
    network: Network
    layers: frozenset[Layer] = frozenset(Layer)

    @property
    def is_apart(self) -> bool:
        """Say whether its processes are a world of their own, which ends with the first of them."""
        return Layer.NAMESPACES in self.layers

    def part(self) -> None:
        """Enter the namespaces: the next child is the first process in them."""
        if self.is_apart:
            more = Kind.NETWORK if self.network is Network.NOTHING else Kind(0)
            namespaces.part(_APART | more)

    def fix_files(self) -> None:
        """Make of all files in the namespace read-only what is not to be written."""
        if self.is_apart:
            namespaces.write_only_to(self.to_write)  # a device is none of the file system's

    def shut_files(self) -> None:
        """Take away the other files, for good."""
        if Layer.LANDLOCK in self.layers:
            tcp = Tcp.REFUSED if self.network is Network.NOTHING else Tcp.ALLOWED
            landlock.leave(self.to_read, (*_DEVICES, *self.to_write), tcp)

    def shut_calls(self) -> None:
        """Take away system calls, for good."""
        if Layer.SECCOMP not in self.layers:
            return
        is_whole = landlock.version() >= landlock.KEEPS_FILES_WHOLE_SINCE_ABI
        if self.network is Network.NOTHING:
            sockets = server_filter.without_network()
        else:
            sockets = server_filter.with_network()
        server_filter.enter(sockets, [] if is_whole else server_filter.without_truncation())
        seccomp.refuse_sockets()
        setuid_filter.enter()

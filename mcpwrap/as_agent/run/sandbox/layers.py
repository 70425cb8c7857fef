"""Sandbox of a `mcpwrap run` server: namespaces, Landlock, seccomp, applied before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from mcpwrap.linux.isolation import landlock, namespaces
from mcpwrap.linux.isolation.landlock import Tcp
from mcpwrap.linux.isolation.namespaces import NamespaceFlag, VisibleFiles
from mcpwrap.linux.seccomp import no_setuid, run_server, wrapped_server

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_DEVICE_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
_APART = NamespaceFlag.USER | NamespaceFlag.MOUNTS | NamespaceFlag.PROCESSES | NamespaceFlag.IPC


class SandboxLayer(IntEnum):
    """Sandbox layer. Each one works without the others."""

    NAMESPACES = 1
    LANDLOCK = 2
    SECCOMP = 3


SHOWN = {
    SandboxLayer.NAMESPACES: "user namespaces",
    SandboxLayer.LANDLOCK: "Landlock",
    SandboxLayer.SECCOMP: "seccomp",
}
_WITHOUT = {
    SandboxLayer.NAMESPACES: "the server can change modes of your files, watch their names, sizes "
    "and times, and see which programs you run",
    SandboxLayer.LANDLOCK: "only mounts protect your files from the server",
    SandboxLayer.SECCOMP: "the server can connect to services of this machine, attack more of the "
    "kernel, and make setuid programs that run as you for every account",
}
_WITH_NEITHER = "the server can read and change your files, and end your other programs"


def without(layer: SandboxLayer, others: frozenset[SandboxLayer]) -> str:
    """Return the effect of a missing layer on a server that has these others."""
    if layer is SandboxLayer.LANDLOCK and SandboxLayer.NAMESPACES not in others:
        return _WITH_NEITHER
    return _WITHOUT[layer]


class Network(Enum):
    """Network access of a server: none, or all that the agent has."""

    NOTHING = "nothing"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Sandbox of one server: visible files, links, working folder, network and layers."""

    to_read: tuple[str, ...]
    to_write: tuple[str, ...]
    links: Mapping[str, str]  # target by path: other names of these files
    cwd: str
    network: Network
    layers: frozenset[SandboxLayer] = frozenset(SandboxLayer)

    @property
    def is_apart(self) -> bool:
        """Return whether the server has a PID namespace, which ends with its first process."""
        return SandboxLayer.NAMESPACES in self.layers

    def part(self) -> None:
        """Enter the namespaces; the caller's next child is the first process in them."""
        if self.is_apart:
            more = NamespaceFlag.NETWORK if self.network is Network.NOTHING else NamespaceFlag(0)
            namespaces.part(_APART | more)

    def fix_files(self) -> None:
        """Show only these files in the mount namespace, those of `to_read` read-only."""
        if self.is_apart:
            namespaces.show_only(
                VisibleFiles(
                    to_read=(*_DEVICES, *self.to_read),  # writing to a device changes no file
                    to_write=self.to_write,
                    links={**_DEVICE_LINKS, **self.links},
                    cwd=self.cwd,
                )
            )

    def shut_files(self) -> None:
        """Refuse access to all other files by Landlock, for good."""
        if SandboxLayer.LANDLOCK in self.layers:
            tcp = Tcp.REFUSED if self.network is Network.NOTHING else Tcp.ALLOWED
            landlock.leave(self.to_read, (*_DEVICES, *self.to_write), tcp)

    def shut_calls(self) -> None:
        """Install the seccomp filters, for good."""
        if SandboxLayer.SECCOMP not in self.layers:
            return
        is_whole = landlock.version() >= landlock.KEEPS_FILES_WHOLE_SINCE_ABI
        if self.network is Network.NOTHING:
            sockets = run_server.without_network()
        else:
            sockets = run_server.with_network()
        run_server.enter(sockets, [] if is_whole else run_server.without_truncation())
        wrapped_server.refuse_sockets()
        no_setuid.enter()

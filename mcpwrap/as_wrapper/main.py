"""Entry point of `mcpwrap@NAME.service`: limits, workspaces and secrets, then the supervisor."""

import os
import pwd
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_wrapper.disk_usage import PersistentFolder
from mcpwrap.as_wrapper.session import WrapperContext
from mcpwrap.as_wrapper.supervisor import SecretSource, Supervisor, refuse
from mcpwrap.as_wrapper.workspace_mounts import WorkspaceMounts
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import ServerSpec, decode_spec
from mcpwrap.linux.isolation import cgroup, prctl
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import listening_socket
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing

GATE_ACCOUNT = "mcpwrap-gate"
# A tmpfs for each session that only this service sees; its drop-in mounts them.
RUNTIME = Path("/run/mcpwrap/rt")


def main() -> int:
    """Serve sessions until systemd stops us. What goes wrong before READY=1 fails the start."""
    environ = dict(os.environ)  # noqa: TID251 - a main()
    prctl.forbid_dumps()
    prctl.adopt_orphans()
    # With workspaces systemd takes us for up, and `mcpwrap doctor` may send this, before `serve`.
    signal_fd.block_signal(signal.SIGUSR1)
    credentials = Path(environ["CREDENTIALS_DIRECTORY"])
    spec = decode_spec((credentials / "spec").read_bytes())
    me = pwd.getpwuid(os.geteuid())
    if me.pw_name != f"mcpw-{spec.name}":
        log_line(f"I am {me.pw_name}, and was given the server of {spec.name}")
        return 1
    around = _context(spec, me.pw_name, environ)
    listener, notifier = listening_socket(environ), Notifier()
    try:
        if around.view:
            notifier.ready("waits for its workspaces")  # root mounts them when it hears this
            around.view.await_root()
        secrets = _secrets(spec, environ)
    except ValueError as error:
        log_line(str(error))
        notifier.status(f"cannot start: {error}")
        _turn_away(listener, f"{spec.name} cannot start: {error}")
        return 1
    Supervisor(around, secrets, listener, notifier).serve()
    return 0


def _secrets(spec: ServerSpec, environ: Mapping[str, str]) -> SecretSource | None:
    """Return the secrets that the server declares, opened; ValueError if they do not open."""
    if not spec.secrets:
        return None
    from mcpwrap.as_wrapper import secrets  # noqa: PLC0415 - most wrappers never load libsodium

    credential = Path(environ["CREDENTIALS_DIRECTORY"], "capability")
    opened = secrets.Secrets(spec.name, spec.secrets, environ["INVOCATION_ID"], credential)
    opened.load()
    return opened


def _context(spec: ServerSpec, account: str, environ: Mapping[str, str]) -> WrapperContext:
    """Move into a leaf of our own, which leaves the tree to the sessions, and look around."""
    tree = cgroup.own()
    leaf = cgroup.Leaf(tree, "supervisor")
    leaf.make()
    leaf.enter()
    limits = cgroup.CgroupLimits(
        memory_bytes=spec.memory_bytes, tasks=spec.tasks, cpu_percent=spec.cpu_percent
    )
    return WrapperContext(
        spec=spec,
        account=account,
        gate_uid=pwd.getpwnam(GATE_ACCOUNT).pw_uid,
        runtime=RUNTIME / spec.name,
        state=Path(environ["STATE_DIRECTORY"]) if spec.state else None,
        logins=Path(environ["STATE_DIRECTORY"]) if spec.has_oauth() else None,
        tree=tree,
        limits=limits if cgroup.delegate(tree) else None,
        view=WorkspaceMounts(spec.workspaces) if spec.workspaces else None,
        lasting=tuple(_lasting(spec, environ)),
    )


def _lasting(spec: ServerSpec, environ: Mapping[str, str]) -> Iterator[PersistentFolder]:
    """Yield the folders that systemd has made for it (systemd.exec(5), StateDirectory=)."""
    if folder := environ.get("STATE_DIRECTORY"):
        yield PersistentFolder("state", Path(folder), spec.state_bytes)
    if folder := environ.get("CACHE_DIRECTORY"):
        yield PersistentFolder("cache", Path(folder), spec.cache_bytes)


def _turn_away(listener: socket.socket, why: str) -> None:
    """Tell everybody who waits, so that the agent knows why as well as the journal does."""
    listener.settimeout(0)
    with suppress(OSError):  # nobody waits any more
        while True:
            connection, _ = listener.accept()
            connection.settimeout(session_socket.HANDSHAKE_S)
            # What is left unread when a socket is closed would overtake the answer.
            _, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
            fd_passing.close_all(fds)
            refuse(connection, session_socket.Exit.UNAVAILABLE, why)

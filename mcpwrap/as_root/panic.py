"""RUNS AS ROOT: stops sessions at once, and keeps new ones out until somebody says so.

It waits for no other program of root's: an `apply` that hangs must not be in its way.
"""

from pathlib import Path

from mcpwrap.as_root.lock import in_turn
from mcpwrap.core import panic
from mcpwrap.core.panic import Panic
from mcpwrap.errors import UsageError
from mcpwrap.linux import files, observe
from mcpwrap.linux.systemd import SYSTEMCTL, run
from mcpwrap.plan import paths


def begin(names: list[str]) -> None:
    """Let nobody in to these servers, or to any if none is named; then end their sessions.

    Raises:
        McpwrapError: there is no such server; or systemd failed, and nobody is let in all the same.
    """
    concerned = _known(names)
    with in_turn(paths.PANIC_LOCK):
        _keep(_now().with_names(names))
    units = [unit for name in concerned for unit in _units(name)]
    if units:
        run(SYSTEMCTL, "stop", "--", *units)


def end(names: list[str]) -> None:
    """Let agents in again.

    Raises:
        McpwrapError: there is no such server, or all are stopped and one is named.
    """
    concerned = _known(names)
    with in_turn(paths.PANIC_LOCK):
        now = _now()
        if names and now.everything:
            raise UsageError(
                "all servers are stopped", where="mcpwrap resume", fix="`sudo mcpwrap resume`"
            )
        _keep(now.without_names(names))
    sockets = [paths.socket_unit(name) for name in concerned]
    if sockets:
        run(SYSTEMCTL, "start", "--", *sockets)


def _known(names: list[str]) -> list[str]:
    known = sorted(observe.server_names())
    for name in names:
        if name not in known:
            raise UsageError(f"no server {name!r}", where="mcpwrap", fix="`mcpwrap status`")
    return names or known


def _now() -> Panic:
    try:
        return panic.decode(Path(paths.PANIC).read_bytes())
    except FileNotFoundError:
        return Panic()


def _keep(now: Panic) -> None:
    if now == Panic():
        files.remove(paths.PANIC)
    else:
        files.replace(paths.PANIC, panic.encode(now))


def _units(name: str) -> tuple[str, str]:
    return paths.socket_unit(name), paths.service_unit(name)

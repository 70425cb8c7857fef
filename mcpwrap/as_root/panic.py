"""`mcpwrap panic`, `mcpwrap resume`: emergency stop of sessions, kept until it is lifted.

It waits for no other program of root's: an `apply` that hangs must not be in its way. Nor may a
full disk: what fails is reported when all the rest has been done.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_root.lock import in_turn
from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire import panic_file
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.errors import McpwrapError, UsageError, file_error, nothing_changed
from mcpwrap.linux import root_files
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, run
from mcpwrap.machine import observer
from mcpwrap.plan import paths

# As in mcpwrap-watch: an agent that tries again meanwhile would take the stop back.
_STOP = (SYSTEMCTL, "stop", "--job-mode=replace-irreversibly", "--")
_ALL = ("mcpwrap@*.socket", "mcpwrap@*.service")


def begin(names: list[str]) -> None:
    """Let nobody in to these servers, or to any if none is named, and end their sessions.

    The order is first kept in memory, for the gate, then carried out, and then kept on the disk.

    Raises:
        McpwrapError: there is no such server; or something failed, after all else was done.
    """
    _expect_known(names)
    unordered, unstopped, unkept = (
        _failure(do, names) for do in (_order_now, _stop, _keep_on_disk)
    )
    failures = [each for each in (unstopped, unkept and unordered, unkept) if each]
    if not failures:
        return
    ended = "SESSIONS MAY GO ON" if unstopped else "sessions are ended"
    until = "`mcpwrap resume`" if not unkept else "the next boot, and not longer"
    kept = "nobody is kept out" if unkept and unordered else f"nobody is let in until {until}"
    problems = "; ".join(f"{each.where}: {each.problem}" for each in failures)
    raise McpwrapError(
        f"{ended}, {kept}: {problems}",
        where="mcpwrap panic",
        fix=f"{failures[-1].fix}; then `sudo {' '.join(['mcpwrap panic', *names])}` again",
    )


def end(names: list[str]) -> None:
    """Let agents in again.

    Raises:
        McpwrapError: there is no such server, or all are stopped and one is named; or the order
            cannot be taken back, and nothing was changed.
    """
    known = sorted(observer.server_names())
    _expect_known(names)
    with in_turn(paths.PANIC_LOCK):
        with nothing_changed():
            now = _read(paths.PANIC_NOW)
            before = now.merged(_read(paths.PANIC))
            if names and before.everything:
                raise UsageError(
                    "all servers are stopped", where="mcpwrap resume", fix="`sudo mcpwrap resume`"
                )
            after = before.without_names(names)
            # What is in memory keeps everybody out as long as the disk says something else.
            _write(paths.PANIC, after)
        _take_back_now(now, after)
        with suppress(OSError):
            Path(paths.PANIC_RESERVE).touch(mode=0o644)
    sockets = [paths.socket_unit(name) for name in names or known]
    if sockets:
        run(SYSTEMCTL, "start", "--", *sockets)


def _take_back_now(before: Panic, after: Panic) -> None:
    """Take the order of this boot back. Its lock is not held while the disk is waited for.

    Raises:
        McpwrapError: it stands: it cannot be written, or somebody has given another meanwhile.
    """
    try:
        with in_turn(paths.PANIC_NOW_LOCK):
            if _read(paths.PANIC_NOW) != before:
                raise McpwrapError(
                    "`mcpwrap panic` was given meanwhile, and nobody is let in",
                    where="mcpwrap resume",
                    fix="the same command again, if agents are to be let in",
                )
            _write(paths.PANIC_NOW, after)
    except OSError as error:
        raise file_error(error, "nobody is let in until the next boot") from error


def _expect_known(names: list[str]) -> None:
    """Refuse a name that is a mistake. Where nobody can tell, what could be one is taken."""
    for name in names:
        known = [name] if is_server_name(name) else []
        with suppress(OSError, McpwrapError):
            known = observer.server_names()
        if name not in known:
            raise UsageError(f"no server {name!r}", where="mcpwrap", fix="`mcpwrap status`")


def _failure(do: Callable[[list[str]], None], names: list[str]) -> McpwrapError | None:
    try:
        do(names)
    except McpwrapError as error:
        return error
    except OSError as error:
        return file_error(error)
    return None


def _order_now(names: list[str]) -> None:
    """Keep the order for this boot. It looks at nothing on the disk, which may be slow."""
    with in_turn(paths.PANIC_NOW_LOCK):
        _write(paths.PANIC_NOW, _read(paths.PANIC_NOW).with_names(names))


def _stop(names: list[str]) -> None:
    """Stop all that is loaded, whatever the registry has, unless some are named."""
    units = [unit for name in names for unit in _units(name)]
    run(*_STOP, *(units or _ALL))


def _keep_on_disk(names: list[str]) -> None:
    with in_turn(paths.PANIC_LOCK):
        try:
            order = _read(paths.PANIC).with_names(names)
        except OSError:  # as the gate takes one that it cannot read
            order = Panic(everything=True)
        with suppress(OSError):
            order = order.merged(_read(paths.PANIC_NOW))
        try:
            _write(paths.PANIC, order)
        except OSError:
            if not order.everything:
                raise
            _make_empty()


def _make_empty() -> None:
    """Leave an empty file, which stops everything: a full ext4 or btrfs has room for that.

    XFS has not, but renames one that is there; tmpfiles.d makes it anew at the next boot.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(paths.PANIC, flags, 0o644)
    except OSError:
        Path(paths.PANIC_RESERVE).rename(paths.PANIC)
        fd = os.open(paths.PANIC, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read(path: str) -> Panic:
    try:
        return panic_file.decode(Path(path).read_bytes())
    except FileNotFoundError:
        return Panic()


def _write(path: str, order: Panic) -> None:
    if order == Panic():
        root_files.remove(path)
    else:
        root_files.replace(path, panic_file.encode(order))


def _units(name: str) -> tuple[str, str]:
    return paths.socket_unit(name), paths.service_unit(name)

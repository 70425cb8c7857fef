"""`mcpwrap panic`, `mcpwrap resume`: emergency stop of sessions, in force until it is lifted.

It waits for none of root's other programs: an `apply` that hangs must not delay it. Nor may a full
disk: failures are reported after everything else has been done.
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
from mcpwrap.machine import observer, worker
from mcpwrap.plan import next_version, paths

# Irreversibly, as in mcpwrap-watch: a retry of an agent would cancel the stop job.
_STOP = (SYSTEMCTL, "stop", "--job-mode=replace-irreversibly", "--")
_ALL = (
    "mcpwrap@*.socket", "mcpwrap@*.service",
    # The runs of this machine's sessions end with these; those of other machines would not.
    "mcpwrap-worker.*", "mcpwrap-job@*.socket", "mcpwrap-job@*.service",
    # Nothing is lost: a person can look at the version again.
    next_version.UNIT,
)  # fmt: skip


def begin(names: list[str]) -> None:
    """Refuse new sessions of these servers, or of all if none is named, and end the open ones.

    The order is first written to memory, for the gate, then carried out, then written to the disk.

    Raises:
        McpwrapError: there is no such server; or a part failed, after all others were done.
    """
    _expect_known(names)
    unordered, unstopped, unsaved = (
        _failure(do, names) for do in (_order_now, _stop, _save_on_disk)
    )
    failures = [each for each in (unstopped, unsaved and unordered, unsaved) if each]
    if not failures:
        return
    ended = "SESSIONS MAY GO ON" if unstopped else "sessions are ended"
    until = "`mcpwrap resume`" if not unsaved else "the next boot, and not longer"
    refused = "are NOT refused" if unsaved and unordered else f"are refused until {until}"
    problems = "; ".join(f"{each.where}: {each.problem}" for each in failures)
    raise McpwrapError(
        f"{ended}, new ones {refused}: {problems}",
        where="mcpwrap panic",
        fix=f"{failures[-1].fix}; then `sudo {' '.join(['mcpwrap panic', *names])}` again",
        code="E-PANIC-INCOMPLETE",
    )


def end(names: list[str]) -> None:
    """Lift the emergency stop: agents can open sessions again.

    Raises:
        McpwrapError: there is no such server, or all are stopped and one is named; or the order
            cannot be withdrawn, and nothing was changed.
    """
    known = sorted(observer.server_names())
    _expect_known(names)
    with in_turn(paths.PANIC_LOCK):
        with nothing_changed():
            now = _read(paths.PANIC_NOW)
            before = now.merged(_read(paths.PANIC))
            if names and before.everything:
                raise UsageError(
                    "all servers are stopped, not single ones; nothing was changed",
                    where="mcpwrap resume",
                    fix="`sudo mcpwrap resume`, without a name",
                    code="E-PANIC-ALL-STOPPED",
                )
            after = before.without_names(names)
            # The order in memory refuses all sessions as long as it and the file on disk differ.
            _write(paths.PANIC, after)
        _withdraw_now(now, after)
        with suppress(OSError):
            Path(paths.PANIC_RESERVE).touch(mode=0o644)
    sockets = [paths.socket_unit(name) for name in names or known]
    sockets += [] if names else _sockets_of_runs()
    if sockets:
        run(SYSTEMCTL, "start", "--", *sockets)


def expect_not_stopped(name: str) -> None:
    """Refuse a server that is stopped.

    Raises:
        McpwrapError: it is, until the stop is lifted.
    """
    if any(_read(path).stops(name) for path in (paths.PANIC_NOW, paths.PANIC)):
        raise McpwrapError(
            "it is stopped in an emergency",
            where=f"server {name}",
            fix="`sudo mcpwrap resume`",
            code="E-SESSION-PANIC",
        )


def _sockets_of_runs() -> list[str]:
    """Return the sockets of run slots and worker. Without their file, `apply` opens them."""
    with suppress(OSError, McpwrapError):
        by_pool = worker.slot_sockets(worker.configuration())
        slots = [unit for units in by_pool.values() for unit in units]
        return [*slots, paths.WORKER_UNIT] if slots else []
    return []


def _withdraw_now(before: Panic, after: Panic) -> None:
    """Withdraw the order of this boot. Its lock is not held during the wait for the disk.

    Raises:
        McpwrapError: the order stands: its file cannot be written, or a new order was given.
    """
    try:
        with in_turn(paths.PANIC_NOW_LOCK):
            if _read(paths.PANIC_NOW) != before:
                raise McpwrapError(
                    "`mcpwrap panic` was run meanwhile, and sessions are still refused",
                    where="mcpwrap resume",
                    fix="run the same command again, if sessions shall be admitted",
                    code="E-PANIC-REPEATED",
                )
            _write(paths.PANIC_NOW, after)
    except OSError as error:
        raise file_error(error, "sessions are refused until the next boot") from error


def _expect_known(names: list[str]) -> None:
    """Refuse an unknown name. If the registry cannot be read, accept any valid name."""
    for name in names:
        known = [name] if is_server_name(name) else []
        with suppress(OSError, McpwrapError):
            known = observer.server_names()
        if name not in known:
            raise UsageError(
                f"no server {name!r}; nothing was changed",
                where="mcpwrap",
                fix="`mcpwrap status` lists the servers",
                code="E-USAGE-NO-SERVER",
            )


def _failure(do: Callable[[list[str]], None], names: list[str]) -> McpwrapError | None:
    try:
        do(names)
    except McpwrapError as error:
        return error
    except OSError as error:
        return file_error(error)
    return None


def _order_now(names: list[str]) -> None:
    """Write the order for this boot. It reads nothing from the disk, which may be slow."""
    with in_turn(paths.PANIC_NOW_LOCK):
        _write(paths.PANIC_NOW, _read(paths.PANIC_NOW).with_names(names))


def _stop(names: list[str]) -> None:
    """Stop the named servers; without names all loaded units, whether in the registry or not."""
    units = [unit for name in names for unit in _units(name)]
    run(*_STOP, *([*units, next_version.UNIT] if units else _ALL))


def _save_on_disk(names: list[str]) -> None:
    with in_turn(paths.PANIC_LOCK):
        try:
            order = _read(paths.PANIC).with_names(names)
        except OSError:  # the gate also takes an unreadable file for a stop of everything
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
    """Leave an empty file, which stops everything. A full ext4 or btrfs has room for that.

    A full XFS has not, but can rename an existing file, which tmpfiles.d makes again at the next
    boot.
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

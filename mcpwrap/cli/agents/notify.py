"""`mcpwrap clients --notify`: show unwrapped servers on the desktop, once each."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner, found
from mcpwrap.config.agent_files.wrap_status import AppliedServers, wrap_status_of
from mcpwrap.core.notify.desktop import drift_notification
from mcpwrap.core.notify.drift import DriftItem, ReportedByPath, news
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import desktop_notify, root_files

_MODE = 0o600
_FOLDER_MODE = 0o700


class _DriftState(msgspec.Struct, frozen=True):
    """Content of the state file: the marks of reported items, by the path of the file."""

    told: dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class DriftNotifySettings:
    """State file with the marks of reported items, and desktop program."""

    file: Path
    program: str = desktop_notify.NOTIFY_SEND


def notify_settings(environ: Mapping[str, str]) -> DriftNotifySettings:
    """Return the settings for this environment. Source: XDG Base Directory Specification."""
    state = environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local/state"
    return DriftNotifySettings(folder / "mcpwrap/told.json")


def run(who: FileOwner, by: AppliedServers, settings: DriftNotifySettings) -> None:
    """Report all new items in one notification, then check once more: files may have changed.

    Raises:
        McpwrapError: the notification cannot be shown, or the state not stored; the items then
            count as not reported.
    """
    desktop_notify.expect(settings.program)
    with _locked(settings.file):
        if _report_new(list(drift_items(who, by)), settings):
            _report_new(list(drift_items(who, by)), settings)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Create the folder, and hold its lock: one process reports at a time."""
    try:
        file.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        fd = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _state_error(file.parent, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def drift_items(who: FileOwner, by: AppliedServers) -> Iterator[DriftItem]:
    """Yield each server in an account's files, and each file that was not read."""
    for one in found(who):
        yield from _of_file(one, by)


def _of_file(one: DiscoveredFile, by: AppliedServers) -> Iterator[DriftItem]:
    agents, path = tuple(agent.id for agent in one.agents), one_line(str(one.path))
    if one.problem:
        yield DriftItem(agents, path, "not read")
    for listed in one.listed:
        state = wrap_status_of(listed, by).state
        brought = (*agents, one.plugin.id) if one.plugin else ()
        yield DriftItem(agents, path, state, (*listed.at, *brought, listed.entry.name))


def _report_new(seen: list[DriftItem], settings: DriftNotifySettings) -> bool:
    """Report new items, and return whether there were any.

    The state is stored first. If it were stored after the notification and could not be written,
    each change of a file would report all items again.
    """
    before = _read(settings.file)
    found = news(seen, before)
    if found.told != before:
        _store(settings.file, found.told)
    if not found.new:
        return False
    try:
        desktop_notify.show(drift_notification(found.new), settings.program)
    except BaseException:
        _store(settings.file, before)
        raise
    return True


def _read(file: Path) -> ReportedByPath:
    """Return the stored state; an empty dict if it is unreadable, so that all is reported again."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=_DriftState).told
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _store(file: Path, told: ReportedByPath) -> None:
    text = msgspec.json.encode(_DriftState(dict(told)), order="sorted").decode()
    try:
        root_files.replace(str(file), f"{text}\n", mode=_MODE)
    except OSError as error:
        raise _state_error(file, error) from error


def _state_error(path: Path, error: OSError) -> McpwrapError:
    return McpwrapError(
        f"cannot be written: {error.strerror}; no notification was shown",
        where=str(path),
        fix="let this account write there: the file records which servers were reported",
        code="E-NOTIFY-STATE-FILE",
    )

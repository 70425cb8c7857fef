"""Files of the clients that were asked by elicitation: of one user, or of each account at the gate.

An agent chooses the name of its client, so the gate keeps those of each account for itself: an
agent of one account changes nothing for another.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mcpwrap.core.approval import client_forms, rule_file
from mcpwrap.core.approval.client_forms import ClientForms, ClientIdentity, FormAnswer
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.approvals import rule_files

_MAX_FILE_BYTES = 256 * 1024


class ClientFormsFile:
    """Clients by how they answered approval forms. Runs of one user share a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known = ClientForms(read(path))

    def may_draw(self, client: ClientIdentity) -> bool:
        """Return whether a client is to be asked by a form."""
        return self.known.may_draw(client, time.time())

    def take(self, client: ClientIdentity, answer: FormAnswer) -> None:
        """Remember an answer, and write it if it tells something new.

        The disk is not waited for: what a power cut takes away is measured again.
        """
        if not self.known.take(client, answer, round(time.time())):
            return
        try:
            with _locked(self._path.parent):  # of a user's runs: they have one file
                others = ClientForms([*read(self._path), *self.known.records()])
                content = client_forms.encode(others.records())
                rule_files.replace(self._path, content, is_synced=False)
        except OSError as error:  # the client is measured again
            log_line(f"{self._path}: cannot be written: {error.strerror}")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder (flock(2)).

    Raises:
        OSError: there is no such folder.
    """
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder_fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder_fd)


def gate_path(uid: int) -> Path:
    """Return the gate's file for the clients of an account."""
    return Path(rule_file.FOLDER) / f"{rule_file.CLIENT_FORMS}{uid}"


def gate_paths() -> Iterator[tuple[int, Path]]:
    """Yield the gate's files, with the UIDs of their accounts."""
    for path in sorted(Path(rule_file.FOLDER).glob(f"{rule_file.CLIENT_FORMS}*")):
        digits = path.name.removeprefix(rule_file.CLIENT_FORMS)
        if digits.isdecimal():
            yield int(digits), path


def read(path: Path) -> list[client_forms.FormRecord]:
    """Return what is known; without a file, or if it is damaged, each client is measured.

    Root reads files of the gate by this: it follows no link and waits for no writer.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            return client_forms.decode(file.read(_MAX_FILE_BYTES))
    except (OSError, msgspec.MsgspecError):
        return []

"""Account of the person for whom root sets a machine up, and programs started under it.

Such a program has no terminal: root's questions are asked at that one, and what runs under an
account of agents could answer them (ioctl_tty(2), TIOCSTI).
"""

import os
import pwd
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.names import is_person
from mcpwrap.errors import McpwrapError, UsageError

_WHERE = "mcpwrap init"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHELL_S = 10.0  # for start-up files of a shell; nvm takes about one
MAX_OUTPUT_BYTES = 2**20  # far more than a person reads; of the variables, half of ARG_MAX
READ_BYTES = 65_536
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class PersonAccount:
    """Account of a person, from NSS."""

    account: str
    uid: int
    gid: int
    home: str
    shell: str

    @property
    def groups(self) -> frozenset[int]:
        """Return the groups that the account has from its next login on."""
        return frozenset(os.getgrouplist(self.account, self.gid))


def person_of(account: str) -> PersonAccount:
    """Return the account of this name.

    Raises:
        UsageError: no account is named, or it is not that of a person.
    """
    if account in {"", "root"}:
        raise UsageError(
            "whose agents are these? The command line names no account, and no account but root"
            " called sudo; nothing was changed",
            where=_WHERE,
            fix="name the account that runs the agents: `mcpwrap init --for USER`",
            code="E-INIT-NO-PERSON",
        )
    found = _found(account)
    if isinstance(found, PersonAccount):
        return found
    raise UsageError(
        f"{account!r} cannot be set up: {found}; nothing was changed",
        where=_WHERE,
        fix="name the account of the person who runs the agents: `mcpwrap init --for USER`",
        code="E-INIT-ACCOUNT",
    )


def other_person(account: str, who: PersonAccount) -> PersonAccount:
    """Return the account of this name, which is to approve calls of `who`.

    Raises:
        UsageError: it is not that of another person.
    """
    found = _found(account)
    if isinstance(found, PersonAccount) and found.uid == who.uid:
        found = "an account's own calls need its password, also where it is a member of the group"
    if isinstance(found, PersonAccount):
        return found
    raise UsageError(
        f"{account!r} cannot approve calls of {who.account}: {found}; it was not added",
        where=_WHERE,
        fix=f"run `sudo {again(who)}`, and name another account of a person, or set a password",
        code="E-INIT-APPROVER",
    )


def again(who: PersonAccount) -> str:
    """Return the command line of another run for this account."""
    return f"mcpwrap init --for {who.account}"


def _found(account: str) -> PersonAccount | str:
    """Return the account of a person, or why there is none."""
    try:
        entry = pwd.getpwnam(account)
    except (KeyError, ValueError):  # ValueError: with a NUL in it
        return "there is no such account"
    uid = entry.pw_uid
    if not is_person(uid):
        return "it is a system account, or that of a server"
    return PersonAccount(entry.pw_name, uid, entry.pw_gid, entry.pw_dir, entry.pw_shell)


def login_environ(who: PersonAccount) -> dict[str, str]:
    """Return the variables of the person's shell: agents find their files and programs by them.

    nvm, mise and others set PATH in files that an interactive shell alone reads. Where the shell
    does not print its variables in time, or prints too much, they are few and fixed.
    """
    plain = {
        "HOME": who.home,
        "USER": who.account,
        "LOGNAME": who.account,
        "SHELL": who.shell,
        "PATH": f"{who.home}/.local/bin:{_PATH}",
        "LANG": "C.UTF-8",
    }
    mark = secrets.token_hex(16)  # the files may print something themselves
    argv = [who.shell, "-i", "-l", "-c", f"echo; echo {mark}; exec /usr/bin/env -0"]
    try:
        with started(who, argv, plain, stderr=subprocess.DEVNULL) as child:
            text = output_of(child, who.shell, _SHELL_S)
    except (OSError, McpwrapError):
        return plain
    _, found, after = text.partition(f"\n{mark}\n".encode())
    if not found or child.returncode != 0:
        return plain
    return plain | dict(_variables(after)) | {"HOME": who.home}


def _variables(text: bytes) -> Iterator[tuple[str, str]]:
    for one in text.decode(errors="surrogateescape").split("\0"):
        name, is_one, value = one.partition("=")
        if name and is_one:
            yield name, value


@contextmanager
def started(
    who: PersonAccount,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    stderr: int = subprocess.STDOUT,
    pass_fds: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program under the person's account; its output is a pipe. Ended with the block.

    It is in a session of its own, so it has no terminal. Its process group is ended with it: the
    block does not reap it, as the group's number could be another's from then on. A daemon that
    has left the group goes on.
    """
    is_root = os.geteuid() == 0
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=who.home if Path(who.home).is_dir() else "/",
        env=dict(environ),
        pass_fds=pass_fds,
        start_new_session=True,
        umask=0o022,
        user=who.uid if is_root else None,
        group=who.gid if is_root else None,
        extra_groups=sorted(who.groups) if is_root else None,
    )
    try:
        yield child
    finally:
        _end(child)


def output_of(child: subprocess.Popen[bytes], command: str, within_s: float) -> bytes:
    """Return all output of a program that was `started`, when it has ended.

    Raises:
        McpwrapError: it takes longer, or prints more than `MAX_OUTPUT_BYTES`.
    """
    assert child.stdout is not None  # noqa: S101 - `started` makes it a pipe
    text_fd, text, until = child.stdout.fileno(), bytearray(), time.monotonic() + within_s
    while _is_readable(text_fd, until):
        if some := os.read(text_fd, READ_BYTES):
            text += some
            expect_short(command, len(text))
        elif has_ended(child, until - time.monotonic()):
            return bytes(text)
        else:
            break
    raise too_slow(command, within_s)


def expect_short(command: str, count: int) -> None:
    """Refuse an output of so many bytes if it is too long.

    Raises:
        McpwrapError: it is longer than `MAX_OUTPUT_BYTES`.
    """
    if count > MAX_OUTPUT_BYTES:
        raise _ended_early(command, f"it printed more than {MAX_OUTPUT_BYTES} bytes")


def too_slow(command: str, within_s: float) -> McpwrapError:
    """Return the error for a program that has not ended in time."""
    return _ended_early(command, f"it had not ended after {within_s:g} s")


def _ended_early(command: str, why: str) -> McpwrapError:
    return McpwrapError(
        f"was ended: {why}",
        where=command,
        fix="run it under that account, fix what it reports, and run `sudo mcpwrap init` again",
        code="E-INIT-PROGRAM",
    )


def has_ended(child: subprocess.Popen[bytes], within_s: float) -> bool:
    """Wait for the end of a program, and do not reap it; return whether it has ended."""
    pid_fd = os.pidfd_open(child.pid)
    try:
        return _is_readable(pid_fd, time.monotonic() + within_s)
    finally:
        os.close(pid_fd)


def _is_readable(fd: int, until: float) -> bool:
    return bool(select.select([fd], [], [], max(0.0, until - time.monotonic()))[0])


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        has_ended(child, _END_S)
    child.wait()
    if child.stdout:
        child.stdout.close()

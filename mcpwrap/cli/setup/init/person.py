"""Account of the person for whom root sets a machine up, and programs started under it.

Such a program has no terminal: root's questions are asked at that one, and what runs under an
account of agents could answer them (ioctl_tty(2), TIOCSTI).
"""

import os
import pwd
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.names import FIRST_UID, LAST_UID
from mcpwrap.errors import UsageError

_WHERE = "mcpwrap init"
_FIRST_PERSON_UID = 1000  # SYS_UID_MAX is 999: useradd(8), and `man 5 login.defs`
_NOBODY_UID = 65534
_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHELL_S = 10.0  # for start-up files of a shell; nvm takes about one
_MAX_ENVIRON_BYTES = 2**20
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
    try:
        entry = pwd.getpwnam(account)
    except (KeyError, ValueError):  # ValueError: with a NUL in it
        raise _not_a_person(account, "there is no such account") from None
    uid = entry.pw_uid
    if uid < _FIRST_PERSON_UID or uid == _NOBODY_UID or FIRST_UID <= uid <= LAST_UID:
        raise _not_a_person(account, "it is a system account, or that of a server")
    return PersonAccount(entry.pw_name, uid, entry.pw_gid, entry.pw_dir, entry.pw_shell)


def _not_a_person(account: str, why: str) -> UsageError:
    return UsageError(
        f"{account!r} cannot be set up: {why}; nothing was changed",
        where=_WHERE,
        fix="name the account of the person who runs the agents: `mcpwrap init --for USER`",
        code="E-INIT-ACCOUNT",
    )


def login_environ(who: PersonAccount) -> dict[str, str]:
    """Return the variables of the person's shell: agents find their files and programs by them.

    nvm, mise and others set PATH in files that an interactive shell alone reads. Where the shell
    does not print its variables in time, they are few and fixed.
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
            text, _ = child.communicate(timeout=_SHELL_S)
    except (OSError, subprocess.SubprocessError):
        return plain
    _, found, after = text[:_MAX_ENVIRON_BYTES].partition(f"\n{mark}\n".encode())
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

    It is in a session of its own, so it has no terminal, and all of its session is ended.
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


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            break
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_END_S)
    if child.stdout:
        child.stdout.close()

"""`mcpwrap approvals passwd`: set or remove a password for approvals (Argon2id)."""

import pwd

import msgspec
from nacl.pwhash import argon2id

from mcpwrap.as_root.lock import in_turn
from mcpwrap.core.names import FIRST_UID, LAST_UID
from mcpwrap.core.wire import approver_passwords
from mcpwrap.core.wire.approval_socket import MAX_PASSWORD_BYTES
from mcpwrap.core.wire.approver_passwords import Approver, Approvers
from mcpwrap.errors import McpwrapError, UsageError, nothing_changed
from mcpwrap.linux import accounts, root_files, tty
from mcpwrap.plan import paths

MIN_CHARS = 8
_WHERE = "mcpwrap approvals passwd"
_FIRST_PERSON_UID = 1000  # SYS_UID_MAX is 999: useradd(8), and `man 5 login.defs`
_NOBODY_UID = 65534


def set_one(user: str, password: bytes) -> None:
    """Let this password prove that it is the account's person who answers.

    Raises:
        UsageError: it is nobody's account, or not a password.
    """
    uid = expect_person(user)
    _expect_usable(password)
    one = Approver(uid=uid, hash=_hash_of(password))
    with in_turn(paths.APPROVERS_LOCK):
        now = _now()
        _keep(Approvers(by_user={**now.by_user, user: one}))
    tty.say(f"{user} can approve with this password, from now on")


def remove(user: str) -> None:
    """Let nobody approve by the account's password any more; it may be gone already.

    Raises:
        UsageError: it has none.
    """
    with in_turn(paths.APPROVERS_LOCK):
        now = _now()
        if user not in now.by_user:
            raise UsageError(
                f"{user} has no password; nothing was changed",
                where=_WHERE,
                fix=f"{', '.join(sorted(now.by_user)) or 'nobody'} has one",
            )
        _keep(Approvers(by_user={name: one for name, one in now.by_user.items() if name != user}))
    tty.say(f"{user} cannot approve with a password any more")


def typed() -> bytes:
    """Return a password that was typed twice.

    Raises:
        UsageError: there is no terminal, or it was not the same.
    """
    first = tty.read_hidden(f"New password to approve with, {MIN_CHARS} characters or more: ")
    _expect_usable(first.encode())
    if tty.read_hidden("Once more: ") != first:
        raise UsageError(
            "these are two different ones; nothing was changed", where=_WHERE, fix="try again"
        )
    return first.encode()


def expect_person(user: str) -> int:
    """Return the UID of an account of a person's.

    Raises:
        UsageError: it is none.
    """
    try:
        uid = pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):  # ValueError: with a NUL in it
        raise _nobody(user, "there is no such account") from None
    if FIRST_UID <= uid <= LAST_UID:
        raise _nobody(user, "it is the account of a server")
    if uid < _FIRST_PERSON_UID or uid == _NOBODY_UID or not user.isascii():
        raise _nobody(user, "it is an account of the system's, and no person's")
    return uid


def _expect_usable(password: bytes) -> None:
    try:
        chars = len(password.decode())
    except UnicodeDecodeError:
        raise _unusable("it is not UTF-8") from None
    if b"\n" in password or b"\r" in password or b"\0" in password:
        raise _unusable("it is of more than one line")
    if chars < MIN_CHARS:
        raise _unusable(f"it has under {MIN_CHARS} characters")
    if len(password) > MAX_PASSWORD_BYTES:
        raise _unusable(f"it has over {MAX_PASSWORD_BYTES} bytes")


def _hash_of(password: bytes) -> str:
    limits = {"opslimit": argon2id.OPSLIMIT_INTERACTIVE, "memlimit": argon2id.MEMLIMIT_INTERACTIVE}
    return argon2id.str(password, **limits).decode("ascii")


def _now() -> Approvers:
    try:
        return approver_passwords.decode(root_files.read_roots_own(paths.APPROVERS))
    except FileNotFoundError:
        return Approvers()
    except msgspec.MsgspecError as error:
        raise McpwrapError(
            f"cannot be understood: {error}; nothing was changed",
            where=paths.APPROVERS,
            fix="remove the file, and set each password anew",
        ) from error


def _keep(now: Approvers) -> None:
    gid = accounts.gid_of("mcpwrap-gate")
    if gid is None:
        raise McpwrapError(
            "there is no group mcpwrap-gate; nothing was changed",
            where=_WHERE,
            fix="`sudo systemd-sysusers`, or install the package anew",
        )
    # Of all others not even the hashes are to be seen: they could be tried elsewhere.
    with nothing_changed():
        root_files.replace(paths.APPROVERS, approver_passwords.encode(now), mode=0o640, gid=gid)


def _nobody(user: str, why: str) -> UsageError:
    return UsageError(
        f"{user!r} cannot approve: {why}; nothing was changed",
        where=_WHERE,
        fix="name the account of a person: `sudo mcpwrap approvals passwd USER`",
    )


def _unusable(why: str) -> UsageError:
    return UsageError(
        f"this cannot be a password: {why}; nothing was changed", where=_WHERE, fix="choose another"
    )

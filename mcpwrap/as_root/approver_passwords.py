"""`mcpwrap approvals passwd`: set or remove a password for approvals (Argon2id)."""

import pwd

import msgspec
from nacl.pwhash import argon2id

from mcpwrap.as_root.lock import in_turn
from mcpwrap.core.names import FIRST_UID, LAST_UID, is_person
from mcpwrap.core.wire import approver_passwords
from mcpwrap.core.wire.approval_socket import MAX_PASSWORD_BYTES
from mcpwrap.core.wire.approver_passwords import Approver, Approvers
from mcpwrap.errors import McpwrapError, UsageError, nothing_changed
from mcpwrap.linux import accounts, root_files, tty
from mcpwrap.plan import paths

MIN_CHARS = 8
_MAX_TRIES = 3  # as passwd(1)
_WHERE = "mcpwrap approvals passwd"


class _PasswordError(UsageError):
    """Password that cannot be used; the person is asked for another one."""


def set_one(user: str, password: bytes) -> None:
    """Set the password with which this account's person proves an approval decision.

    Raises:
        UsageError: it is not the account of a person, or the password cannot be used.
    """
    uid = expect_person(user)
    _expect_usable(password)
    one = Approver(uid=uid, hash=_hash_of(password))
    with in_turn(paths.APPROVERS_LOCK):
        now = _now()
        _write(Approvers(by_user={**now.by_user, user: one}))
    tty.say(f"{user} can approve with this password from now on")


def remove(user: str) -> None:
    """Remove the account's password for approvals. The account itself may be gone already.

    Raises:
        UsageError: the account has no password.
    """
    with in_turn(paths.APPROVERS_LOCK):
        now = _now()
        if user not in now.by_user:
            raise UsageError(
                f"{user} has no password; nothing was changed",
                where=_WHERE,
                fix=f"name an account that has one: {', '.join(sorted(now.by_user)) or 'none has'}",
                code="E-PASSWORD-NOT-SET",
            )
        _write(Approvers(by_user={name: one for name, one in now.by_user.items() if name != user}))
    tty.say(f"{user} cannot approve with a password any more")


def typed() -> bytes:
    """Return a password that was typed twice. After a slip it is asked for again.

    Raises:
        UsageError: there is no terminal, or no password of three can be used.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return _typed_once()
        except _PasswordError as error:
            tty.fail(error)
    return _typed_once()


def _typed_once() -> bytes:
    first = tty.read_hidden(f"New password to approve with, {MIN_CHARS} characters or more: ")
    _expect_usable(first.encode())
    if tty.read_hidden("Once more: ") != first:
        raise _PasswordError(
            "the two passwords do not match; nothing was changed",
            where=_WHERE,
            fix="type the same password twice",
            code="E-PASSWORD-MISMATCH",
        )
    return first.encode()


def expect_person(user: str) -> int:
    """Return the UID of a person's account.

    Raises:
        UsageError: it is not the account of a person.
    """
    try:
        uid = pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):  # ValueError: with a NUL in it
        raise _not_a_person(user, "there is no such account") from None
    if FIRST_UID <= uid <= LAST_UID:
        raise _not_a_person(user, "it is the account of a server")
    if not is_person(uid) or not user.isascii():
        raise _not_a_person(user, "it is a system account, not the account of a person")
    return uid


def _expect_usable(password: bytes) -> None:
    try:
        chars = len(password.decode())
    except UnicodeDecodeError:
        raise _unusable("it is not UTF-8") from None
    if b"\n" in password or b"\r" in password or b"\0" in password:
        raise _unusable("it has more than one line, or a NUL")
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
            f"is damaged: {error}; nothing was changed",
            where=paths.APPROVERS,
            fix="remove the file, and set each password again",
            code="E-PASSWORD-FILE-DAMAGED",
        ) from error


def _write(now: Approvers) -> None:
    gid = accounts.gid_of("mcpwrap-gate")
    if gid is None:
        raise McpwrapError(
            "there is no group mcpwrap-gate; nothing was changed",
            where=_WHERE,
            fix="run `sudo systemd-sysusers`, or reinstall the package",
            code="E-PASSWORD-NO-GATE-GROUP",
        )
    # No other account may read even the hashes: they could be attacked offline.
    with nothing_changed():
        root_files.replace(paths.APPROVERS, approver_passwords.encode(now), mode=0o640, gid=gid)


def _not_a_person(user: str, why: str) -> UsageError:
    return UsageError(
        f"{user!r} cannot approve: {why}; nothing was changed",
        where=_WHERE,
        fix="name the account of a person: `sudo mcpwrap approvals passwd USER`",
        code="E-PASSWORD-ACCOUNT",
    )


def _unusable(why: str) -> _PasswordError:
    return _PasswordError(
        f"this password cannot be used: {why}; nothing was changed",
        where=_WHERE,
        fix="choose another one",
        code="E-PASSWORD-UNUSABLE",
    )

"""Password check in a process of its own, and the limit on wrong passwords."""

import os
import pwd
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nacl.pwhash import argon2id

from mcpwrap.as_gate.approvals import authentication
from mcpwrap.as_gate.approvals.authentication import (
    FAILURES_WITHIN_S,
    MAX_AT_ONCE,
    MAX_FAILURES,
    MAX_OF_UID,
    Authenticator,
    AuthResult,
    account_of,
    by_password,
)
from mcpwrap.core.approval.authorization import ApproverIdentity
from mcpwrap.core.wire.approver_passwords import Approver, Approvers, encode
from tests.shared import pace

ME = account_of(os.getuid())
RIGHT = b"correct \x00 horse \xff"
HASH = argon2id.str(RIGHT, argon2id.OPSLIMIT_MIN, argon2id.MEMLIMIT_MIN).decode()


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(authentication, "APPROVERS", tmp_path / "approvers.json")
    known = {
        ME: Approver(uid=os.getuid(), hash=HASH),
        "nobody": Approver(
            uid=os.getuid(), hash=HASH
        ),  # an earlier account of the name had the password
        "no-such": Approver(uid=7, hash=HASH),
        "broken": Approver(uid=7, hash="$argon2id$"),
    }
    (tmp_path / "approvers.json").write_text(encode(Approvers(by_user=known)))
    return tmp_path / "approvers.json"


def open_fds() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


@pytest.fixture
def checks() -> Iterator[Authenticator]:
    made = Authenticator()
    yield made
    made.end_all()
    for fd, job in made._jobs.items():
        os.close(fd)
        os.waitpid(job.pid, 0)


def test_the_right_password() -> None:
    account = pwd.getpwuid(os.getuid())
    proven = by_password(ME, RIGHT)
    groups = frozenset(os.getgrouplist(ME, account.pw_gid))
    assert proven.who == ApproverIdentity(os.getuid(), groups)


@pytest.mark.parametrize(
    ("user", "password", "why"),
    [
        (ME, RIGHT + b"x", "wrong password"),
        (ME, b"", "wrong password"),
        ("", RIGHT, "wrong password"),
        ("broken", RIGHT, "wrong password"),
        ("unknown", RIGHT, "wrong password"),
        ("no-such", RIGHT, "the account does not exist any more"),
        ("nobody", RIGHT, "the password is of an earlier account of that name"),
    ],
)
def test_a_password_is_refused(user: str, password: bytes, why: str) -> None:
    assert by_password(user, password) == AuthResult(why=why)


def test_without_the_file_no_account_has_a_password(path: Path) -> None:
    path.unlink()
    assert by_password(ME, RIGHT) == AuthResult(why="wrong password")


def ended(
    checks: Authenticator, check: Callable[[], AuthResult], key: tuple[int, str] = (1, "x")
) -> AuthResult:
    """Return the result of a check."""
    came: list[AuthResult] = []
    fd = checks.start(key, check, came.append)
    assert checks.has(fd)
    pid = checks._jobs[fd].pid
    assert select.select([fd], [], [], pace.WAIT_S)[0]
    checks.finish(fd, time.monotonic())
    os.waitpid(pid, 0)
    assert not checks.has(fd)
    return came[0]


def test_a_check_is_a_process_without_the_monitors_descriptors(checks: Authenticator) -> None:
    inherited = os.memfd_create("of the monitor")

    def check() -> AuthResult:
        return AuthResult(uid=5, gids=(os.getpid(),), why=" ".join(sorted(open_fds(), key=int)))

    proven = ended(checks, check)
    os.close(inherited)
    assert proven.uid == 5
    assert proven.gids != (os.getpid(),)
    assert proven.why == "0 1 2 3 4"  # 4 is the descriptor of the listing itself


def test_a_failed_check_authenticates_no_account_and_logs_its_traceback(
    checks: Authenticator,
    capfd: pytest.CaptureFixture[str],
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.__stderr__)  # the tests' standard error is closed there
    path.write_text("{")
    proven = ended(checks, lambda: by_password(ME, RIGHT))
    assert proven == AuthResult(why="the check failed: see the journal of mcpwrap-gate")
    assert "DecodeError" in capfd.readouterr().err


def test_a_killed_check_authenticates_no_account(checks: Authenticator) -> None:
    def check() -> AuthResult:
        os.kill(os.getpid(), 9)
        return AuthResult(uid=0)

    assert ended(checks, check).uid == -1


def test_wrong_proofs_are_limited(checks: Authenticator) -> None:
    now_s = time.monotonic()
    for _ in range(MAX_FAILURES):
        assert checks.why_not(1, "x", now_s) == ""
        ended(checks, lambda: AuthResult(why="wrong password"))
    assert checks.why_not(1, "x", time.monotonic()).startswith("5 wrong proofs: retry in ")
    assert checks.why_not(1, "y", now_s) == checks.why_not(2, "x", now_s) == ""
    assert checks.why_not(1, "x", time.monotonic() + FAILURES_WITHIN_S) == ""


def test_a_right_proof_resets_the_count(checks: Authenticator) -> None:
    for each in [AuthResult()] * (MAX_FAILURES - 1) + [AuthResult(uid=1)] + [AuthResult()]:
        ended(checks, lambda each=each: each)  # type: ignore[misc]
    assert checks.why_not(1, "x", time.monotonic()) == ""


def test_many_failures_do_not_displace_one(
    checks: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_MAX_KNOWN", 2)
    for user in ("x", "y"):
        ended(checks, AuthResult, (1, user))
    now_s = time.monotonic()
    assert checks.why_not(1, "z", now_s) == "too many wrong proofs"
    assert checks.why_not(1, "z", now_s + FAILURES_WITHIN_S) == ""


def asleep() -> AuthResult:
    time.sleep(60)
    return AuthResult()


def test_the_checks_of_one_account_are_limited(checks: Authenticator) -> None:
    for _ in range(MAX_OF_UID):
        assert checks.why_not(1, "x", 0.0) == ""
        checks.start((1, "x"), asleep, print)
    assert checks.why_not(1, "y", 0.0) == "too many proofs are being checked"
    for uid in range(2, 2 + MAX_AT_ONCE - MAX_OF_UID):
        assert checks.why_not(uid, "", 0.0) == ""
        checks.start((uid, ""), asleep, print)
    assert checks.why_not(99, "", 0.0) == "too many proofs are being checked"


def test_a_failed_fork_leaves_no_descriptor_open(
    checks: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    before = open_fds()
    with pytest.raises(OSError, match="temporarily"):
        checks.start((1, "x"), AuthResult, print)
    assert open_fds() == before


def test_an_account_may_have_no_name() -> None:
    assert account_of(2**31 - 7) == ""
    assert account_of(0) == "root"

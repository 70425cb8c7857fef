"""Landlock rules: denied paths stay denied, in children too; other access is unchanged."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.linux.isolation import landlock, prctl

pytestmark = pytest.mark.skipif(
    landlock.version() == 0 and "CI" not in os.environ, reason="this kernel has no Landlock"
)


def in_child(check: Callable[[], bool]) -> bool:
    """Return the result of `check` in a child process, which it may restrict for good."""
    pid = os.fork()
    if pid == 0:
        answer = 2
        try:
            answer = 0 if check() else 1
        finally:
            os._exit(answer)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status != 2
    return status == 0


def may(path: Path) -> bool:
    try:
        path.read_text()
    except PermissionError:
        return False
    return True


@pytest.mark.parametrize(
    ("file", "is_open"),
    [
        ("shut/file", False),
        ("shut/deep/file", False),
        ("shut/own/file", True),  # an open path below a shut one
        ("shutter/file", True),  # another path with the same beginning
        ("file", True),
    ],
)
def test_what_is_shut_and_what_stays_open(tmp_path: Path, file: str, is_open: bool) -> None:  # noqa: FBT001
    for name in ("shut/file", "shut/deep/file", "shut/own/file", "shutter/file", "file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    def check() -> bool:
        assert may(tmp_path / file)
        shut, opened = frozenset({f"{tmp_path}/shut"}), frozenset({f"{tmp_path}/shut/own"})
        landlock.restrict(landlock.ruleset_without(shut, opened))
        return may(tmp_path / file)

    assert in_child(check) == is_open


def test_paths_that_do_not_exist_are_no_error(tmp_path: Path) -> None:
    def check() -> bool:
        shut, opened = frozenset({f"{tmp_path}/no/such"}), frozenset({f"{tmp_path}/nor/this"})
        landlock.restrict(landlock.ruleset_without(shut, opened))
        return may(Path("/etc/passwd"))

    assert in_child(check)


def test_the_parent_gets_no_signal_of_a_shut_child() -> None:
    if landlock.version() < 6:
        pytest.skip("signals are shut since Linux 6.12")

    def check() -> bool:
        landlock.restrict(landlock.ruleset_without(frozenset(), frozenset()))
        try:
            os.kill(os.getppid(), 0)
        except PermissionError:
            return True
        return False

    assert in_child(check)


@pytest.mark.parametrize(
    ("file", "may_read", "may_write"),
    [
        ("read/file", True, False),
        ("write/file", True, True),
        ("write/deep/file", True, True),
        ("file", False, False),
        ("readable/file", False, False),  # another path with the same beginning
    ],
)
def test_only_what_is_left_is_there(
    tmp_path: Path,
    file: str,
    may_read: bool,  # noqa: FBT001
    may_write: bool,  # noqa: FBT001
) -> None:
    for name in ("read/file", "write/file", "write/deep/file", "file", "readable/file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    def check() -> bool:
        prctl.gain_nothing()
        landlock.leave([f"{tmp_path}/read"], [f"{tmp_path}/write"], landlock.Tcp.REFUSED)
        return (may(tmp_path / file), may_add_to(tmp_path / file)) == (may_read, may_write)

    assert in_child(check)


def may_add_to(path: Path) -> bool:
    try:
        with path.open("a") as file:
            file.write("x")
    except PermissionError:
        return False
    return True


@pytest.mark.parametrize("tcp", landlock.Tcp)
def test_tcp_is_refused_or_not(tcp: landlock.Tcp) -> None:
    if landlock.version() < 4:
        pytest.skip("Landlock judges TCP since Linux 6.7")

    def check() -> bool:
        prctl.gain_nothing()
        landlock.leave([], [], tcp)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", 0))
            except PermissionError:
                return tcp is landlock.Tcp.REFUSED
        return tcp is landlock.Tcp.ALLOWED

    assert in_child(check)

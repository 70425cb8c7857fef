"""Watchdog of Squid: notifications for a Squid that answers, hangs, or does not run."""

import os
import queue
import resource
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.as_squid import main
from mcpwrap.linux.systemd.sd_notify import Notifier

WAIT_S = 30.0
ANSWER = b"HTTP/1.1 403 Forbidden\r\n\r\n"


class Told(Notifier):
    """Stand-in notifier that queues each watchdog notification, and blocks after the test."""

    def __init__(self) -> None:
        self.words: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.is_over = False

    def alive(self) -> None:
        if self.is_over:
            threading.Event().wait()
        self.words.put(None)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """Send requests without a pause."""
    monkeypatch.setattr(main, "_ASK_EVERY_S", 0.001)
    told = Told()
    yield told
    told.is_over = True


@pytest.fixture
def squid() -> Iterator[socket.socket]:
    """Listen in the place of Squid."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        yield listener


def ask(told: Told, address: tuple[str, int], is_full: Callable[[], bool] = lambda: False) -> None:
    threading.Thread(target=main.report, args=(address, told, is_full), daemon=True).start()


def test_one_connection_has_many_requests(told: Told, squid: socket.socket) -> None:
    ask(told, squid.getsockname())
    connection, _ = squid.accept()
    with connection:
        for _ in range(3):
            assert connection.recv(4096).startswith(b"GET http://health.invalid/ ")
            assert told.words.empty()  # no notification while it waits
            connection.sendall(ANSWER)
            told.words.get(timeout=WAIT_S)


def test_a_closed_connection_is_replaced(told: Told, squid: socket.socket) -> None:
    ask(told, squid.getsockname())
    for _ in range(3):
        connection, _ = squid.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(ANSWER)
            told.words.get(timeout=WAIT_S)


def test_a_missing_listener_does_not_count_as_a_hang(told: Told, squid: socket.socket) -> None:
    address = squid.getsockname()
    squid.close()
    ask(told, address)
    for _ in range(3):
        told.words.get(timeout=WAIT_S)


def test_used_up_descriptors_do_not_count_as_a_hang(told: Told, squid: socket.socket) -> None:
    """It accepts no connection, but serves the open ones; a Squid that hangs does neither."""
    full: queue.SimpleQueue[bool] = queue.SimpleQueue()
    ask(told, squid.getsockname(), full.get)  # not answered after the test
    for _ in range(3):
        full.put(item=False)
    while not full.empty():  # read during the wait for a response
        pass
    assert told.words.empty()
    full.put(item=True)
    told.words.get(timeout=WAIT_S)


def test_descriptors_of_the_process_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a test before, a descriptor may be closed meanwhile, so the limits are not those beside it.
    held = [os.memfd_create("held") for _ in range(40)]
    used = len(list(Path("/proc/self/fd").iterdir()))
    for limit, is_full in ((used - 30, True), (used + 30, False)):
        limits = (limit + main._RESERVED_FDS, 0)
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        assert main.has_no_descriptors_left(os.getpid()) == is_full
    for fd in held:
        os.close(fd)


@pytest.mark.parametrize("has_folder", [False, True])
def test_the_helper_that_the_configuration_names_makes_its_folder_once(
    tmp_path: Path, *, has_folder: bool
) -> None:
    helper, folder, calls = tmp_path / "certgen", tmp_path / "certificates", tmp_path / "calls"
    helper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nmkdir {folder}\n')
    helper.chmod(0o755)
    if has_folder:
        folder.mkdir()
    text = f"http_port 1\nsslcrtd_program {helper} -s {folder} -M 4MB\nsslcrtd_children 5\n"
    main.make_certificate_folder(text)
    main.make_certificate_folder(text)
    assert folder.is_dir()
    assert calls.exists() is not has_folder
    if not has_folder:
        assert calls.read_text() == f"-c -s {folder} -M 4MB\n"


def test_an_instance_that_opens_no_tls_needs_no_helper() -> None:
    main.make_certificate_folder("# sslcrtd_program /none -s /none -M 4MB\nhttp_port 1\n")


def test_a_helper_that_fails_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        main.make_certificate_folder(f"sslcrtd_program /bin/false -s {tmp_path}/none -M 4MB\n")

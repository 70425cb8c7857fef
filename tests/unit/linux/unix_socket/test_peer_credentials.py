"""Peer credentials, as the kernel reports them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX, 5).connect(sys.argv[1])"


def ourselves(pid: int) -> Peer:
    return Peer(pid, os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))


def test_both_ends_of_a_pair_are_ourselves() -> None:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert (
            peer_credentials.credentials_of(ours)
            == peer_credentials.credentials_of(theirs)
            == ourselves(os.getpid())
        )


def test_the_process_that_connected_is_the_peer_even_after_its_end(tmp_path: Path) -> None:
    path = str(tmp_path / "gate.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        with subprocess.Popen([sys.executable, "-c", CONNECT, path]) as agent:
            assert agent.wait() == 0
        connection, _ = listener.accept()
        with connection:
            assert peer_credentials.credentials_of(connection) == ourselves(agent.pid)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("0::/system.slice/system-mcpwrap\\x2dhttp.slice/mcpwrap-http@n.1.service\n",
         "mcpwrap-http@n.1.service"),
        ("2:cpu:/x.service\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service"),
        ("1:name=systemd:/a.service\n0::/b.service\n", "a.service"),
        ("2:cpu:/a.service\n", ""),
        ("0::/a.service/name=systemd:/b\n", "b"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_process_is_in_the_unit_that_systemd_put_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, unit: str
) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(text)
    monkeypatch.setattr(peer_credentials, "Path", lambda path: tmp_path / path.removeprefix("/"))
    assert peer_credentials.unit_of(7) == unit
    assert peer_credentials.unit_of(8) == ""


def test_the_umask_of_a_process_is_known_while_it_runs() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, umask=0o027
    ) as agent:
        pidfd = os.pidfd_open(agent.pid)
        try:
            assert peer_credentials.umask_of(agent.pid, pidfd) == 0o027
            agent.communicate(b"\n")
            # Its PID may belong to another process by now, whose umask is not the agent's.
            assert peer_credentials.umask_of(os.getpid(), pidfd) is None
            assert peer_credentials.umask_of(agent.pid, pidfd) is None
        finally:
            os.close(pidfd)

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


HTTP = "/system.slice/system-mcpwrap\\x2dhttp.slice/mcpwrap-http@n.1.service"
LISTENER = "mcpwrap-http@n.1.service"
# As /proc/PID/cgroup has it: where there is cgroup v2 alone; where v1 is beside it; and in a
# container of the latter whose systemd knows v2 alone.
ON_V2 = "0::{}\n"
ON_V1 = "9:name=systemd:{}\n8:pids:{}\n7:blkio:/\n1:cpu:/\n0::{}\n"
UNIFIED_ON_V1 = "9:name=systemd:/\n8:pids:/\n7:blkio:/\n1:cpu:/\n0::{}\n"


@pytest.mark.parametrize(
    ("text", "service", "within"),
    [
        (ON_V2.format(HTTP), LISTENER, ""),
        (ON_V1.format(HTTP, HTTP, HTTP), LISTENER, ""),
        (ON_V1.format(HTTP, HTTP, "/"), LISTENER, ""),  # systemd put no process into that of v2
        (UNIFIED_ON_V1.format(HTTP), LISTENER, ""),
        (UNIFIED_ON_V1.format("/init.scope"), "", ""),
        (ON_V1.format("/a.slice/a.service", "/", "/a.slice/b.service"), "", ""),  # they disagree
        # Only the outermost name is one that PID 1 has given.
        (ON_V2.format(f"/user.slice/user@1000.service{HTTP}"), "user@1000.service", HTTP[1:]),
        (ON_V2.format(f"{HTTP}/supervisor"), LISTENER, "supervisor"),
        ("2:cpu:/a.slice/a.service\n", "", ""),  # that of another controller
        (ON_V2.format("/a.slice/a.service/name=systemd:/b"), "a.service", "name=systemd:/b"),
        (ON_V2.format("/a.service"), "", ""),
        (ON_V2.format("/../.."), "", ""),  # of another container
        ("", "", ""),
    ],
)
def test_a_process_is_in_the_service_that_systemd_put_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, service: str, within: str
) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(text)
    monkeypatch.setattr(peer_credentials, "Path", lambda path: tmp_path / path.removeprefix("/"))
    assert peer_credentials.service_of(7) == (service, within)
    assert peer_credentials.service_of(8) == ("", "")


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

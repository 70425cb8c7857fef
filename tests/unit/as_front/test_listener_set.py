"""Listeners of the front: they follow root's file, and a reload leaves unchanged ones alone."""

import signal
import socket
import subprocess
import sys

import pytest

from mcpwrap.as_front.endpoint import MAX_CONNECTIONS
from tests.unit.as_front.conftest import MakeWorld
from tests.unit.as_front.world import DNS, PROXY, TLS, World, rest_of
from tests.unit.core.hellos import real

HOST = "api.example.com"
HELLO = real(HOST)


def test_a_reload_leaves_connections_of_other_servers_alone(world: World) -> None:
    assert world.start("git", "web") == "ready: 2 servers, 0 connections"
    stays = world.spliced("git", world.squid("git"), HELLO, HOST)
    ends = world.spliced("web", world.squid("web"), HELLO, HOST)
    gone = world.address_by_server["web"]
    world.configure("git", "new")
    assert world.signal() == "ready: 2 servers, 1 connections"
    for end in ends:
        assert rest_of(end) == b""
    for port in (TLS, DNS):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((gone, port))
    world.connect("new")
    near, far = stays
    near.sendall(b"still here")
    assert far.recv(99) == b"still here"


def test_a_server_may_get_the_address_of_another(world: World) -> None:
    world.start("git")
    address = world.address_by_server["git"]
    connection = world.connect("git")
    world.address_by_server = {"new": address}
    world.configure("new")
    world.signal()
    assert rest_of(connection) == b""
    with world.connect("new") as plain:
        plain.sendall(b"GET")
        assert rest_of(plain) == b""
    assert world.events(bool)[-1].server == "new"


@pytest.mark.parametrize("text", [None, "", '{"format": 2}', '{"by_server": {"x": "10.0.0.1"}}'])
def test_a_file_that_cannot_be_read_changes_nothing(
    make_world: MakeWorld, text: str | None
) -> None:
    world = make_world()
    world.start("git")
    near, far = world.spliced("git", world.squid("git"), HELLO, HOST)
    if text is None:
        world.configuration.unlink()
    else:
        world.configuration.write_text(text)
    status = world.signal()
    assert status.startswith("ready: 1 servers, 1 connections; ")
    assert "cannot be read, the old configuration stays" in status
    assert world.journal.read_text().startswith(str(world.configuration))
    far.sendall(b"still here")
    assert near.recv(99) == b"still here"
    world.configure("git")
    assert world.signal() == "ready: 1 servers, 1 connections"


def test_a_front_without_its_file_serves_no_address(make_world: MakeWorld) -> None:
    world = make_world()
    assert world.start().startswith("ready: 0 servers, 0 connections; ")
    assert "No such file" in world.journal.read_text()
    world.configure("git")
    assert world.signal() == "ready: 1 servers, 0 connections"


@pytest.mark.parametrize("port", [TLS, DNS])
def test_an_address_in_use_is_taken_once_it_is_free(make_world: MakeWorld, port: int) -> None:
    world = make_world()
    world.configure("git", "web")
    address = world.address_by_server["web"]
    with socket.create_server((address, port)):
        reason = "Address already in use [E-FRONT-LISTEN]"
        problem = f"web: cannot listen on {address}: {reason}"
        assert world.start("git", "web") == f"ready: 1 servers, 0 connections; {problem}"
        assert world.signal() == f"ready: 1 servers, 0 connections; {problem}"
        world.connect("git")
    assert world.signal().startswith("ready: 2 servers")
    assert world.journal.read_text() == problem + "\n"  # once


def test_too_many_connections_of_a_server_do_not_block_others(world: World) -> None:
    world.start("git", "web")
    squid = world.squid("web")
    held = [world.connect("git", port) for port in [TLS, DNS] * (MAX_CONNECTIONS // 2)]
    while f" {MAX_CONNECTIONS} connections" not in world.signal(signal.SIGUSR1):
        pass  # two listeners: one may accept its last after the other has refused its first
    beyond = world.connect("git")
    assert rest_of(beyond) == b""
    assert world.only_event() == ("git", "too-many", "", "256 connections at a time")
    world.spliced("web", squid, HELLO, HOST)
    held[0].sendall(b"G")  # not TLS, so it is closed and frees a connection
    assert rest_of(held[0]) == b""
    world.squid("git")
    again = world.connect("git")
    again.sendall(b"G")
    assert rest_of(again) == b""
    assert [e.event for e in world.events(lambda events: len(events) == 3)][1:] == ["not-tls"] * 2


def test_events_go_on_in_a_new_file(world: World) -> None:
    world.start("git")
    for number in (signal.SIGUSR1, signal.SIGHUP):
        world.events_file.rename(world.events_file.with_suffix(".old"))
        world.signal(number)
        with world.connect("git") as plain:
            plain.sendall(b"G")
            assert rest_of(plain) == b""
        assert world.only_event()[1] == "not-tls"


RELOAD = f"""
import sys
from pathlib import Path
from mcpwrap.as_front import reload
from mcpwrap.as_front.endpoint import Ports

reload._TIMEOUT_S = float(sys.argv[3])
ports = Ports(dns={DNS}, tls={TLS}, proxy={PROXY})
sys.exit(reload.reload(int(sys.argv[1]), Path(sys.argv[2]), ports))
"""


def reload(world: World, patience_s: float) -> subprocess.CompletedProcess[str]:
    assert world.process
    arguments = [str(world.process.pid), str(world.configuration), str(patience_s)]
    command = [sys.executable, "-c", RELOAD, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_reload_program_returns_when_all_is_open(world: World) -> None:
    world.start("git")
    world.configure("git", *(f"s{n}" for n in range(50)))
    done = reload(world, 20)
    assert (done.returncode, done.stderr) == (0, "")
    for server in world.address_by_server:
        world.connect(server)


def test_the_reload_program_reports_errors(make_world: MakeWorld) -> None:
    world = make_world()
    world.start("git")
    world.configure("git", "web")
    with socket.socket() as taken:
        taken.bind((world.address_by_server["web"], TLS))
        done = reload(world, 0.1)
    assert done.returncode == 1
    assert done.stderr.startswith(f"not listening on {world.address_by_server['web']}:{DNS}, ")
    world.told("STATUS=")
    world.configuration.write_text("{")
    done = reload(world, 20)
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr

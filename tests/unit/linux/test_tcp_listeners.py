"""Listening ports: found by address, with the socket's owner."""

import os
import socket

from mcpwrap.linux import tcp_listeners


def inode(of: socket.socket) -> int:
    return os.fstat(of.fileno()).st_ino


def test_a_listening_socket_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        assert tcp_listeners.inodes(port) == {"127.0.0.1": inode(one)}
        with socket.create_server(("127.77.1.2", port)) as other:
            expected = {"127.0.0.1": inode(one), "127.77.1.2": inode(other)}
            assert tcp_listeners.inodes(port) == expected
        assert tcp_listeners.inodes(port) == {"127.0.0.1": inode(one)}


def test_a_port_that_is_only_bound_or_connected_is_not() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert tcp_listeners.inodes(bound.getsockname()[1]) == {}
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_connection(one.getsockname()) as other,
    ):
        assert tcp_listeners.inodes(one.getsockname()[1]) == {"127.0.0.1": inode(one)}
        assert tcp_listeners.inodes(other.getsockname()[1]) == {}

"""Handoff between `wrap` and `init`: the two ends of one socket."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpwrap.cli.common import root_handoff
from mcpwrap.cli.common.root_handoff import (
    AcceptRequest,
    ConfirmRequest,
    HandoffRequest,
    RootHandoff,
    handoff_of,
)

SHA = "5f" * 32
PATH = "/home/alice/.local/state/mcpwrap/proposal-5f.toml"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, its = socket.socketpair()
    with ours, its:
        yield ours, its


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"MCPWRAP_INIT_FD": ""}, None),
        ({"MCPWRAP_INIT_FD": "-1"}, None),
        ({"MCPWRAP_INIT_FD": "7"}, RootHandoff(7)),
    ],
)
def test_the_variable_names_the_socket(
    environ: dict[str, str], expected: RootHandoff | None
) -> None:
    assert handoff_of(environ) == expected


def received(ours: socket.socket, *, is_yes: bool) -> HandoffRequest | None:
    request = root_handoff.receive(ours)
    root_handoff.reply(ours, is_yes=is_yes)
    return request


@pytest.mark.parametrize("is_yes", [True, False])
@pytest.mark.parametrize("secrets", [b"{}", b'{"a": {"K": "\xc3\xa9\\u0000"}}', b"x\0y" * 100_000])
def test_both_ends_agree(
    ends: tuple[socket.socket, socket.socket], secrets: bytes, *, is_yes: bool
) -> None:
    ours, its = ends
    handoff = RootHandoff(its.fileno())
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(handoff.is_confirmed)
        assert received(ours, is_yes=is_yes) == ConfirmRequest()
        assert asked.result() == is_yes
        asked = pool.submit(handoff.is_accepted, SHA, PATH, secrets)
        assert received(ours, is_yes=is_yes) == AcceptRequest(SHA, PATH, secrets)
        assert asked.result() == is_yes


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4) + content


PROPOSED = f"{SHA}\0{PATH}\0".encode()


@pytest.mark.parametrize(
    ("sent", "is_request"),
    [
        (frame(b"c", b""), True),
        (frame(b"a", PROPOSED), True),
        (b"", False),  # it has ended
        (frame(b"c", b"x"), False),
        (frame(b"x", b""), False),
        (frame(b"a", b""), False),
        (frame(b"a", PROPOSED.replace(b"5f", b"5F")), False),
        (frame(b"a", f"{SHA}\0--by=root\0".encode()), False),  # would be an option
        (frame(b"a", f"{SHA}\0{PATH}".encode()), False),
        (b"a" + (2**32 - 1).to_bytes(4) + b"x", False),
        (frame(b"a", PROPOSED)[:40], False),  # it ended in the middle
    ],
)
def test_what_is_not_a_request_is_none(
    ends: tuple[socket.socket, socket.socket], sent: bytes, *, is_request: bool
) -> None:
    ours, its = ends
    its.sendall(sent)
    its.shutdown(socket.SHUT_WR)
    assert (root_handoff.receive(ours) is not None) == is_request


def test_without_init_each_reply_is_no(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, its = ends
    ours.close()
    assert not RootHandoff(its.fileno()).is_confirmed()
    assert not RootHandoff(its.fileno()).is_accepted(SHA, PATH, b"{}")
    root_handoff.reply(its, is_yes=True)  # nor does the other end fail


def test_a_request_that_is_not_finished_does_not_wait_for_ever(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, its = ends
    ours.settimeout(0.01)
    its.sendall(frame(b"a", PROPOSED)[:40])
    with pytest.raises(TimeoutError):
        root_handoff.receive(ours)

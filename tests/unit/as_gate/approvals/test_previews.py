"""Previews in the monitor: taken from the session that asked, shown beside its question."""

import os

from msgspec.structs import replace

from mcpwrap.as_gate.ipc import approval_packets
from mcpwrap.as_gate.ipc.approval_packets import PreviewRead
from mcpwrap.core.approval.views.preview import MAX_PREVIEW_BYTES, Preview, decode
from mcpwrap.core.gate.ports import AwaitingApproval
from mcpwrap.core.wire.approval_socket import DocumentReply, ShowRequest
from mcpwrap.linux.unix_socket import memfd
from tests.unit.as_gate.approving_world import World

PREVIEW = Preview(tool="read", text="old", compare="text")


def test_a_preview_is_shown_with_its_question(world: World) -> None:
    session, bob = world.session(), world.approver()
    waits = session.ask(1)
    assert isinstance(waits, AwaitingApproval)
    assert not bob.listed()[0].has_preview
    world.while_serving(lambda: session.asking.show(1, PREVIEW))
    world.serve()
    assert bob.listed()[0].has_preview
    assert bob.says(ShowRequest(waits.id)) == [
        DocumentReply(id=waits.id, digest=waits.shown, has_preview=True)
    ]
    document, preview = map(memfd.read_all, bob.fds)
    for fd in bob.fds:
        os.close(fd)
    bob.fds.clear()
    assert b"drop" in document
    read = decode(preview)
    assert read.at > 0
    assert replace(read, at=0.0) == PREVIEW


def test_a_preview_of_a_call_that_is_decided_is_dropped(world: World) -> None:
    session, bob = world.session(), world.approver()
    session.ask(1)
    world.while_serving(lambda: session.asking.withdraw(1, will_resume=False))
    world.while_serving(lambda: session.asking.show(1, PREVIEW))
    world.serve()
    assert bob.listed() == []


def test_the_packet_is_read_as_it_is_written() -> None:
    assert approval_packets.decode(approval_packets.encode(PreviewRead(7))) == PreviewRead(7)


def test_a_preview_has_a_limit() -> None:
    assert MAX_PREVIEW_BYTES == 512 * 1024

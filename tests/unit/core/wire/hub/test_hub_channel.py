import pytest

from mcpwrap.core.names import MAX_NAME_CHARS
from mcpwrap.core.wire.hub import hub_channel
from mcpwrap.core.wire.hub.hub_channel import (
    MAX_PACKET_BYTES,
    FromHub,
    HubChannelError,
    JournalLine,
    NoSession,
    OpenSession,
    SessionOpening,
    ToHub,
)


@pytest.mark.parametrize("packet", [OpenSession("git"), JournalLine("Loaded 2 tools, größer")])
def test_a_packet_of_the_hub(packet: FromHub) -> None:
    assert hub_channel.decode_from_hub(hub_channel.encode(packet)) == packet


@pytest.mark.parametrize(
    "packet", [SessionOpening("git"), NoSession("git", "the gate is\0gone"), NoSession("git", "")]
)
def test_a_packet_of_the_supervisor(packet: ToHub) -> None:
    assert hub_channel.decode_to_hub(hub_channel.encode(packet)) == packet


@pytest.mark.parametrize(
    "packet",
    [
        OpenSession("g" * MAX_NAME_CHARS),
        JournalLine("\U0001f600" * 5000),
        NoSession("g" * MAX_NAME_CHARS, "\U0001f600" * 5000),
    ],
)
def test_a_packet_is_received_whole(packet: FromHub | ToHub) -> None:
    assert len(hub_channel.encode(packet)) <= MAX_PACKET_BYTES


@pytest.mark.parametrize("packet", [b"", b"X", b"o", b"\xff", b"Fgit"])
def test_another_packet_of_a_hub_is_malformed(packet: bytes) -> None:
    with pytest.raises(HubChannelError):
        hub_channel.decode_from_hub(packet)


@pytest.mark.parametrize("packet", [b"", b"X", b"Ogit", b"L"])
def test_another_packet_of_a_supervisor_is_malformed(packet: bytes) -> None:
    with pytest.raises(HubChannelError):
        hub_channel.decode_to_hub(packet)


def test_text_that_is_not_utf_8_is_replaced() -> None:
    assert hub_channel.decode_from_hub(b"O\xff") == OpenSession("\ufffd")
    assert hub_channel.decode_to_hub(b"!git\0\xff") == NoSession("git", "\ufffd")

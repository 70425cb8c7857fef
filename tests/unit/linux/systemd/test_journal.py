"""Journal entries: a value cannot forge a field."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.linux.systemd import journal
from mcpwrap.linux.systemd.journal import Journal


@contextmanager
def connected() -> Iterator[Journal]:
    ours = Journal()
    try:
        yield ours
    finally:
        ours._socket.close()


@contextmanager
def journald() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(journal._SOCKET)
        listening.settimeout(0)
        yield listening


@pytest.fixture(autouse=True)
def _path_of_journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_SOCKET", str(tmp_path / "socket"))


def fields_of(packet: bytes) -> list[tuple[bytes, bytes]]:
    """Read an entry as journald does. Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL."""
    fields = []
    while packet:
        line, _, rest = packet.partition(b"\n")
        if b"=" in line:
            name, _, value = line.partition(b"=")
        else:
            size = int.from_bytes(rest[:8], "little")
            name, value, rest = line, rest[8 : 8 + size], rest[8 + size :]
            assert rest[:1] == b"\n"
            rest = rest[1:]
        fields.append((name, value))
        packet = rest
    return fields


OURS = [(b"MESSAGE", b"hello"), (b"PRIORITY", b"6"), (b"SYSLOG_IDENTIFIER", b"mcpwrap-gate")]


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "",
        "a\nMESSAGE_ID=1",
        "\nPRIORITY=0\n",
        "PRIORITY=0",
        "x\nPRIORITY\n\x01\0\0\0\0\0\0\0000\n",  # in the native protocol's form
        "é\0",
        "x" * 9999,
    ],
)
def test_a_value_makes_no_field(value: str) -> None:
    with journald() as listening, connected() as ours:
        ours.write("hello", MCPWRAP_TOOL=value)
        fields = fields_of(listening.recv(1 << 16))
    assert fields == [*OURS, (b"MCPWRAP_TOOL", value.encode())]


@given(st.text())
def test_no_text_makes_a_field(text: str) -> None:
    field = journal._field("MCPWRAP_TOOL", text)
    assert fields_of(field) == [(b"MCPWRAP_TOOL", text.encode(errors="replace"))]


def test_without_a_journal_nothing_is_written() -> None:
    with connected() as ours:
        ours.write("hello")


def test_a_journal_that_does_not_read_blocks_no_writer() -> None:
    with journald() as listening, connected() as ours:
        for _ in range(10_000):  # more than a socket holds
            ours.write("hello")
        assert fields_of(listening.recv(1 << 16)) == OURS

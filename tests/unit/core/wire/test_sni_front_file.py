"""Root's file for the front, and the front's event lines."""

import msgspec
import pytest

from mcpwrap.core.wire import sni_front_log
from mcpwrap.core.wire.server_files import encode
from mcpwrap.core.wire.sni_front_file import Front, decode_front
from mcpwrap.core.wire.sni_front_log import FrontEvent

FRONT = Front(by_server={"git": "127.77.0.1", "web": "127.77.78.31"})


@pytest.mark.parametrize("front", [Front(), FRONT])
def test_the_file_is_read_as_it_was_written(front: Front) -> None:
    assert decode_front(encode(front).encode()) == front


def test_the_file_is_as_documented() -> None:
    assert decode_front(b'{"format":1,"by_server":{"git":"127.77.0.1"}}').by_server == {
        "git": "127.77.0.1"
    }


NO_FRONT = [
    b"",
    b"[]",
    b"\xff",
    b'{"by_server":{"\xff":"127.77.0.1"}}',
    b'{"format":2,"by_server":{}}',
    b'{"format":"1"}',
    b'{"by_server":[]}',
    b'{"by_server":{},"more":1}',
    b'{"by_server":{"git":1}}',
    b'{"by_server":{"Git":"127.77.0.1"}}',
    b'{"by_server":{"../x":"127.77.0.1"}}',
    b'{"by_server":{"git":"127.0.0.1"}}',
    b'{"by_server":{"git":"0.0.0.0"}}',
    b'{"by_server":{"git":"127.77.0.01"}}',  # the same address to some parsers only
    b'{"by_server":{"git":"127.77.1"}}',
    b'{"by_server":{"git":"::1"}}',
    b'{"by_server":{"git":""}}',
    b'{"by_server":{"git":"127.77.0.1","web":"127.77.0.1"}}',
]


@pytest.mark.parametrize("text", NO_FRONT)
def test_another_file_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_front(text)


EVENT = FrontEvent(t=1.5, server="git", event="refused", host="a.example", detail="403 Forbidden")


def test_an_event_is_one_line_and_read_as_it_was_written() -> None:
    line = sni_front_log.encode(EVENT)
    assert line == (
        b'{"t":1.5,"server":"git","event":"refused","host":"a.example","detail":"403 Forbidden"}\n'
    )
    assert sni_front_log.decode(line) == EVENT


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"t":1.5,"server":"gi',
        b'{"t":1.5,"server":"\xff","event":"asked"}',
        b'{"t":1.5,"server":"git","event":"other"}',
        b'{"t":1.5,"server":"git","event":"asked","more":1}',
    ],
)
def test_another_line_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        sni_front_log.decode(line)

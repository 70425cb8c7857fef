"""Root's file of a listener, and its address."""

import msgspec
import pytest

from mcpwrap.core.wire.listener_file import LAST, Listener, address_at, decode, url
from mcpwrap.core.wire.server_files import encode


@pytest.mark.parametrize(
    ("number", "address"),
    [
        (1, "127.78.0.1"),
        (255, "127.78.0.255"),
        (256, "127.78.1.0"),
        (258, "127.78.1.2"),
        (LAST, "127.78.255.254"),
    ],
)
def test_each_number_has_an_address(number: int, address: str) -> None:
    assert address_at(number) == address


def test_the_url_of_a_listener() -> None:
    assert url("127.78.1.2") == "http://127.78.1.2:52100/"


def test_the_file_is_read_as_it_was_written() -> None:
    listener = Listener(server="git", uid=1000, address="127.78.0.1", is_remote=True)
    assert decode(encode(listener).encode()) == listener


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"server":"\xff","uid":1,"address":"127.78.0.1","is_remote":true}',
        b'{"server":"git","uid":"1","address":"127.78.0.1","is_remote":true}',
        b'{"server":"git","uid":1,"address":"127.78.0.1"}',
        b'{"server":"git","uid":1,"address":"127.78.0.1","is_remote":true,"x":1}',
    ],
)
def test_another_file_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(text)

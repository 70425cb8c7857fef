"""Root's file for the webhook: parsed strictly."""

import msgspec
import pytest

from mcpwrap.core.wire.webhook_file import Webhook, decode


def test_it_is_read_as_it_was_written() -> None:
    assert decode(b'{"url":"https://hook.example/a"}') == Webhook(url="https://hook.example/a")


@pytest.mark.parametrize("text", [b"", b"{}", b'{"url":5}', b'{"url":"x","uri":"y"}', b'"x"'])
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(text)

import msgspec
import pytest

from mcpwrap.core.protocol import raw_message
from mcpwrap.core.protocol.raw_message import NotAMessageError, RawMessage


@pytest.mark.parametrize(
    ("line", "messages"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', [RawMessage(id=1, method="ping")]),
        (
            b'{"method":"x","params":{ "a" : 1.50 }}',
            [RawMessage(method="x", params=msgspec.Raw(b'{ "a" : 1.50 }'))],
        ),
        (b'{"id":"1","result":null}', [RawMessage(id="1", result=msgspec.Raw(b"null"))]),
        (b'{"id":0,"error":{}}', [RawMessage(id=0, error=msgspec.Raw(b"{}"))]),
        (b'[{"method":"x"},{"method":"y"}]', [RawMessage(method="x"), RawMessage(method="y")]),
        (b" [] ", []),
    ],
)
def test_messages_of_a_line(line: bytes, messages: list[RawMessage]) -> None:
    assert raw_message.decode(line) == messages


@pytest.mark.parametrize(
    "line",
    [
        b"", b"Starting...", b"7", b"null", b'"x"', b"{}", b'{"id":1}', b'{"result":1}',
        b'{"id":1,"result":1,"error":{}}', b'{"id":1.5,"result":1}', b'{"id":true,"result":1}',
        b'{"id":[],"method":"x"}', b'{"id":null,"result":1}', b'{"method":7}', b'{"method":"x"',
        b'[{"method":"x"},7]', b'[{"id":1}]', b'{"method":"\xff"}', b'{"id":' + b"9" * 5000 + b"}",
        b'{"method":"x","params":' + b"[" * 100_000, b"[" * 100_000,
    ],
)  # fmt: skip
def test_another_line_is_not_a_message(line: bytes) -> None:
    with pytest.raises(NotAMessageError):
        raw_message.decode(line)


@pytest.mark.parametrize(
    "text", [b"", b"7", b"{", b"[1]", b'{"a":', b'"\xff"', b"[" * 100_000, b'{"a":\xff}']
)
def test_text_of_another_form_has_no_fields_and_no_elements(text: bytes) -> None:
    fields = raw_message.fields_of(text)
    assert raw_message.text_at(fields, "a") == ""
    assert raw_message.id_at(fields, "a") is None
    assert raw_message.fields_at(fields, "a") == {}
    if text != b"[1]":
        assert raw_message.elements_of(msgspec.Raw(text)) == []


@pytest.mark.parametrize("text", [b"", b"{", b"[1", b'"\xff"', b'"\\ud800"', b"[" * 100_000])
def test_text_that_is_no_json_has_no_value(text: bytes) -> None:
    assert raw_message.value_of(text) is None


def test_values_pass_byte_for_byte() -> None:
    text = rb'{"z":1.50,"a":[1E+2,12345678901234567890123,"\u00e9\/"],"m":{}}'
    fields = raw_message.fields_of(text)
    assert list(fields) == ["z", "a", "m"]
    assert bytes(raw_message.encoded(fields)) == text
    assert (
        raw_message.result(1, msgspec.Raw(text)) == b'{"jsonrpc":"2.0","id":1,"result":%s}\n' % text
    )


def test_an_error_may_have_data() -> None:
    assert raw_message.failure(1, -1, "a", {"b": 1}) == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"a","data":{"b":1}}}\n'
    )

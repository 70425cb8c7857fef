"""A line is one message, an array of them, or refused with a reason and, if possible, its id."""

import pytest

from mcpwrap.core.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BATCH,
    PARSE_ERROR,
    Batch,
    Decoded,
    Failure,
    Id,
    InvalidBatch,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    Sender,
    decode,
)

AGENT, SERVER = Sender.AGENT, Sender.SERVER
BIGGEST = 2**53 - 1

MESSAGES: list[tuple[bytes, Message]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping", {})),
    (b'{"jsonrpc":"2.0","id":0,"method":"ping","params":{}}', Request(0, "ping", {})),
    (b'{"jsonrpc":"2.0","id":-0,"method":"ping"}', Request(0, "ping", {})),
    (b'{"jsonrpc":"2.0","id":"","method":"ping"}', Request("", "ping", {})),
    (b'{"jsonrpc":"2.0","id":"1","method":"ping"}', Request("1", "ping", {})),
    (b'{"jsonrpc":"2.0","id":%d,"method":"a"}' % BIGGEST, Request(BIGGEST, "a", {})),
    (b'{"jsonrpc":"2.0","id":%d,"method":"a"}' % -BIGGEST, Request(-BIGGEST, "a", {})),
    (b'{"jsonrpc":"2.0","id":"%s","method":"a"}' % (b"x" * 256), Request("x" * 256, "a", {})),
    (
        rb'{"jsonrpc":"2.0","id":1,"\u006dethod":"tools\/call","params":{"a":[1.0]}}',
        Request(1, "tools/call", {"a": [1.0]}),
    ),
    (b'{"jsonrpc":"2.0","method":"a"}', Notification("a", {})),
    (b'{"jsonrpc":"2.0","method":"a","params":{"b":1}}', Notification("a", {"b": 1})),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', Result(1, None)),
    (b'{"result":{"a":1},"id":"x","jsonrpc":"2.0"}', Result("x", {"a": 1})),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":[]}}',
        Failure(1, {"code": -1, "message": "m", "data": []}),
    ),
]


@pytest.mark.parametrize("sender", Sender)
@pytest.mark.parametrize(("line", "message"), MESSAGES)
def test_a_message_is_read(line: bytes, message: Message, sender: Sender) -> None:
    decoded = decode(line + b"\n", sender, MAX_BATCH)
    assert isinstance(decoded, Decoded)
    assert decoded.message == message
    if isinstance(decoded.message, Request):
        assert isinstance(message, Request)
        assert type(decoded.message.id) is type(message.id)


NO_JSON = "not JSON in UTF-8 that all parsers read alike"
TOO_DEEP = "nested deeper than 64"
NO_ID = "an id must be an integer or a printable string of at most 256 characters"
NO_KIND = "its keys are not those of a request, notification, result or error"
NO_VERSION = '"jsonrpc" is not "2.0"'
DEEP = b"[" * 100_000
# With the id of the error response: J02 to J17 of the threats.
FROM_AGENT: list[tuple[bytes, int, str, Id | None]] = [
    (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"b"}',
        INVALID_REQUEST,
        "a key is repeated",
        1,
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[{"y":1,"y":1}]}}',
        INVALID_REQUEST,
        "a key is repeated",
        1,
    ),
    (b'{"jsonrpc":"2.0","id":null,"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":1e2,"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":-0.0,"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":1e400,"method":"a"}', PARSE_ERROR, NO_JSON, None),
    (b'{"jsonrpc":"2.0","id":%d,"method":"a"}' % 2**53, INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":-%d,"method":"a"}' % 2**53, INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":[],"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"a"}', INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":"%s","method":"a"}' % (b"x" * 257), INVALID_REQUEST, NO_ID, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":' + DEEP, INVALID_REQUEST, TOO_DEEP, None),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":' + b"[" * 63 + b"]" * 63 + b"}}",
        INVALID_REQUEST,
        TOO_DEEP,
        1,
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":%s}}' % (b"1" * 5000),
        PARSE_ERROR,
        NO_JSON,
        None,
    ),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":NaN}}', PARSE_ERROR, NO_JSON, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":-Infinity}}', PARSE_ERROR, NO_JSON, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1e999}}', PARSE_ERROR, NO_JSON, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":"\xff"}}', PARSE_ERROR, NO_JSON, 1),
    (rb'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":"\ud800"}}', PARSE_ERROR, NO_JSON, 1),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"a"}', PARSE_ERROR, NO_JSON, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"a"}'.encode("utf-16"), PARSE_ERROR, NO_JSON, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"a\0"}', PARSE_ERROR, NO_JSON, None),
    (b"Content-Length: 30\r", PARSE_ERROR, NO_JSON, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"a"}', INVALID_REQUEST, NO_VERSION, 1),
    (b'{"jsonrpc":2.0,"id":1,"method":"a"}', INVALID_REQUEST, NO_VERSION, 1),
    (b'{"id":1,"method":"a"}', INVALID_REQUEST, NO_VERSION, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":["a"]}', INVALID_REQUEST, "a method must be a string", 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","extra":1}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0","id":1,"Method":"a"}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","Params":{}}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","result":{}}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0"}', INVALID_REQUEST, NO_KIND, None),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":[]}',
        INVALID_PARAMS,
        "params must be an object",
        1,
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":null}',
        INVALID_PARAMS,
        "params must be an object",
        1,
    ),
    (
        b'{"jsonrpc":"2.0","method":"a","params":"x"}',
        INVALID_PARAMS,
        "params must be an object",
        None,
    ),
    # A response of the agent: its id is the server's, and no request of the agent ends by it.
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', INVALID_REQUEST, NO_KIND, None),
    (b'{"jsonrpc":"2.0","result":{}}', INVALID_REQUEST, NO_KIND, None),
    (b"7", INVALID_REQUEST, "a message must be an object", None),
    (b'"a"', INVALID_REQUEST, "a message must be an object", None),
    (b"null", INVALID_REQUEST, "a message must be an object", None),
]


@pytest.mark.parametrize(("line", "code", "reason", "found"), FROM_AGENT)
def test_an_agents_line_is_refused(line: bytes, code: int, reason: str, found: Id | None) -> None:
    assert decode(line, AGENT, MAX_BATCH) == Malformed(code, reason, found)


FROM_SERVER: list[tuple[bytes, int, str, Id | None]] = [
    (b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}', INVALID_REQUEST, "a key is repeated", 1),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, NO_KIND, 1),
    (b'{"id":1,"result":{}}', INVALID_REQUEST, NO_VERSION, 1),
    (b'{"jsonrpc":"2.0","id":1,"error":7}', INVALID_REQUEST, "an error must be an object", 1),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"m"}}',
        INVALID_REQUEST,
        "an error must have an integer as its code, and a message",
        1,
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}',
        INVALID_REQUEST,
        "an error must have an integer as its code, and a message",
        1,
    ),
    (b'{"jsonrpc":"2.0","id":1,"result":NaN}', PARSE_ERROR, NO_JSON, 1),
    (
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 64 + b"]" * 64 + b"}",
        INVALID_REQUEST,
        TOO_DEEP,
        1,
    ),
    # A request of the server: its id is not the agent's.
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":[]}',
        INVALID_PARAMS,
        "params must be an object",
        None,
    ),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","x":NaN}', PARSE_ERROR, NO_JSON, None),
    (b'{"jsonrpc":"2.0","id":1.0,"result":{}}', INVALID_REQUEST, NO_ID, None),
    (b"Listening on port 80", PARSE_ERROR, NO_JSON, None),
]


@pytest.mark.parametrize(("line", "code", "reason", "found"), FROM_SERVER)
def test_a_servers_line_is_refused(line: bytes, code: int, reason: str, found: Id | None) -> None:
    assert decode(line, SERVER, MAX_BATCH) == Malformed(code, reason, found)


def test_a_servers_keys_collapse_further_down() -> None:
    line = b'{"jsonrpc": "2.0", "id": 1, "result": {"a": 1, "a": 2}}'
    expected = Decoded(Result(1, {"a": 2}), b'{"jsonrpc":"2.0","id":1,"result":{"a":2}}')
    assert decode(line, SERVER, MAX_BATCH) == expected


def test_the_elements_of_an_array_are_read_one_by_one() -> None:
    line = b'[{"jsonrpc":"2.0", "method":"a"}, 7, {"jsonrpc":"2.0","id":1,"Method":"a"}]'
    assert decode(line, AGENT, MAX_BATCH) == Batch(
        (
            Decoded(Notification("a", {}), b'{"jsonrpc":"2.0","method":"a"}'),
            Malformed(INVALID_REQUEST, "a message must be an object"),
            Malformed(INVALID_REQUEST, NO_KIND, 1),
        )
    )


@pytest.mark.parametrize(
    ("line", "max_batch", "answers"),
    [
        (b"[]", 2, ()),
        (b"[7,7,7]", 2, ()),
        (b' [{"jsonrpc":"2.0","id":1,"result":{}}]', 0, (1,)),
        (b'[{"id":"x"},{"id":[]},{"id":3,"method":"ping"},7]', 2, ("x",)),
    ],
)
def test_an_array_that_may_not_be_is_not_looked_into(
    line: bytes, max_batch: int, answers: tuple[Id, ...]
) -> None:
    assert decode(line, SERVER, max_batch) == InvalidBatch(answers)
    assert decode(line, AGENT, max_batch) == InvalidBatch(())


def test_an_agents_array_is_not_even_read_where_there_are_none() -> None:
    assert decode(b"\t [[],[],", AGENT, 0) == InvalidBatch(())


def test_one_key_twice_refuses_a_whole_array() -> None:
    line = b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"a","method":"b"}]'
    for sender in Sender:
        assert decode(line, sender, MAX_BATCH) == Malformed(INVALID_REQUEST, "a key is repeated")


def test_what_goes_on_is_encoded_again() -> None:
    line = (
        b'{ "method":"\\u0061" ,\r"jsonrpc":"2.0","params":{"n":12345678901234567890123,"f":1E2}}\n'
    )
    decoded = decode(line, AGENT, MAX_BATCH)
    assert isinstance(decoded, Decoded)
    assert decoded.json == (
        b'{"method":"a","jsonrpc":"2.0","params":{"n":12345678901234567890123,"f":100.0}}'
    )

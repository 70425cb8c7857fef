"""Answer of the proposal reader: it is read as it was sent, and any other is refused."""

import pytest

from mcpwrap.core.wire.proposal_answer import ProposalAnswer, decode, encode

ONE = ProposalAnswer(text_by_name={"a": '[mcp_servers.a]\ncommand = "\\u202E"\n'})


@pytest.mark.parametrize("reading", [ONE, ProposalAnswer(wrong="é\x1b"), ProposalAnswer()])
def test_an_answer_is_read_as_it_was_sent(reading: ProposalAnswer) -> None:
    assert decode(encode(reading)) == reading


@pytest.mark.parametrize(
    "untrusted",
    [b"", b"\xff", b"{}x", b"[]", b'{"other": 1}', b'{"wrong": 1}', b'{"text_by_name": {"a": 1}}'],
)
def test_another_answer_is_refused(untrusted: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(untrusted)

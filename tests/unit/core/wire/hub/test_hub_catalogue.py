import msgspec
import pytest

from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import Catalogue, CatalogueMember, Definitions

TOOL = msgspec.Raw(rb'{"name":"a","x":1.50,"t":"\u00e9"}')


def test_definitions_pass_byte_for_byte() -> None:
    known = Definitions(capabilities=msgspec.Raw(b'{"tools":{}}'), instructions="i", tools=(TOOL,))
    catalogue = Catalogue(
        members=(
            CatalogueMember(name="git", definitions=known),
            CatalogueMember(name="new"),
            CatalogueMember(name="off", refusal="panic"),
        )
    )
    content = hub_catalogue.encode(catalogue)
    assert bytes(TOOL) in content
    assert hub_catalogue.decode(content) == catalogue
    assert hub_catalogue.decode_definitions(msgspec.json.encode(known)) == known


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{}", b"[]", b'{"members":[{}]}', b'{"members":[],"more":1}', b"\xff",
        b'{"members":[{"name":"a","definitions":{"tools":{}}}]}', b"[" * 100_000,
        b'{"members":[{"name":"a","definitions":{"other":1}}]}', b'{"members":[{"name":"\xff"}]}',
    ],
)  # fmt: skip
def test_other_content_is_malformed(content: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        hub_catalogue.decode(content)
    with pytest.raises(msgspec.MsgspecError):
        hub_catalogue.decode_definitions(b"[" + content)

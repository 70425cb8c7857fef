"""Order of a hub's list: the same in each session, whichever member was known or ready first."""

import msgspec
import pytest

from mcpwrap.core.hub.message_hub import MessageHub
from mcpwrap.core.hub.state.actions import Action, LineToAgent, LineToMember
from mcpwrap.core.protocol import raw_message
from mcpwrap.core.wire.hub.hub_catalogue import Catalogue, CatalogueMember, Definitions
from mcpwrap.core.wire.server_files import HubMemberSpec, HubSpec

NAMES = ("docs", "git", "zoo")
TOOLS_EACH, PAGE = 100, 30
SPEC = HubSpec(members=tuple(HubMemberSpec(name=name, namespace=name) for name in NAMES))
KNOWN = Definitions(
    capabilities=msgspec.Raw(b'{"tools":{}}'),
    tools=tuple(
        msgspec.Raw(b'{"name":"t%d","inputSchema":{"type":"object"}}' % (number * 37 % TOOLS_EACH))
        for number in range(TOOLS_EACH)
    ),
)


class HubDriver:
    """Agent and members of one session of a hub."""

    def __init__(self, known: tuple[str, ...]) -> None:
        catalogue = Catalogue(
            members=tuple(
                CatalogueMember(name=name, definitions=KNOWN if name in known else None)
                for name in NAMES
            )
        )
        self.hub = MessageHub("tools", "1", SPEC, catalogue)
        self.hub.at(1000.0)
        self.lists: list[bytes] = []
        self.pages = 0

    def ask(self, method: str, params: str = "{}") -> None:
        line = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'
        self.carry_out(self.hub.from_agent(line.encode()))

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, LineToAgent) and b'"tools":[' in action.line:
                self.lists.append(action.line)
            elif isinstance(action, LineToMember):
                self._answer(action)

    def _answer(self, action: LineToMember) -> None:
        (message,) = raw_message.decode(action.line)
        found: dict[str, object] = {
            "protocolVersion": "2025-11-25",
            "capabilities": KNOWN.capabilities,
        }
        if message.method == "tools/list":
            self.pages += 1
            first = int(raw_message.text_at(raw_message.fields_of(message.params), "cursor") or 0)
            found = {"tools": KNOWN.tools[first : first + PAGE]}
            if first + PAGE < TOOLS_EACH:
                found["nextCursor"] = str(first + PAGE)
        if message.id is not None:
            line = raw_message.result(message.id, found)
            self.carry_out(self.hub.from_member(action.member, line))


def listed(known: tuple[str, ...], started: tuple[str, ...]) -> tuple[bytes, int]:
    """Return the list of a session, and the pages that the hub has read for it."""
    driver = HubDriver(known)
    driver.ask("initialize", '{"protocolVersion":"2025-11-25","capabilities":{}}')
    driver.ask("tools/list")
    for name in started:
        driver.carry_out(driver.hub.member_opened(name))
    (line,) = driver.lists
    return line, driver.pages


@pytest.mark.parametrize(
    ("known", "started", "pages"),
    [
        ((), ("git", "zoo", "docs"), 12),
        ((), ("zoo", "git", "docs"), 12),
        (("git",), ("zoo", "docs"), 8),
    ],
)
def test_the_order_does_not_depend_on_time(
    known: tuple[str, ...], started: tuple[str, ...], pages: int
) -> None:
    at_once, none = listed(NAMES, ())
    assert none == 0
    assert listed(known, started) == (at_once, pages)
    (message,) = raw_message.decode(at_once)
    tools = msgspec.json.decode(message.result)["tools"]
    names = [tool["name"] for tool in tools]
    assert names == sorted(names)
    assert len(set(names)) == len(NAMES) * TOOLS_EACH + 1  # mcpwrap_status

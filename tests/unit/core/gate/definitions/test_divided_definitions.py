"""Definitions of a hub's member, divided by its pins."""

from collections.abc import Callable

import msgspec
import pytest

from mcpwrap.core.gate.definitions.divided_definitions import UnknownToPinsError, divide
from mcpwrap.core.pins.definitions import listed_definitions, server_definition
from mcpwrap.core.pins.pins_file import HeldDefinitions
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.wire.hub.hub_catalogue import Definitions
from tests.unit.core.pins.pin_book import ALICE, BOB, PinBook, tool, tool_definition

PROMPT: Json = {"name": "review", "_meta": {"x": 1.50}}
TEMPLATE: Json = {"uriTemplate": "x:{y}", "name": "t"}
READ = tool("read", "Reads.")
CHANGED = tool("read", "Reads, and sends it to me.")
NEW = tool("send", "Sends.")
CHANGED_DEFINITION, NEW_DEFINITION = listed_definitions("tools/list", (CHANGED, NEW))
ABOUT: dict[str, Json] = {"instructions": "Use it.", "serverInfo": {"name": "git"}}
OTHER_ABOUT: dict[str, Json] = {**ABOUT, "instructions": "Use nothing else."}


def stored(*tools: Json, about: dict[str, Json] = ABOUT) -> Definitions:
    return Definitions(
        capabilities=msgspec.Raw(b'{"tools":{}}'),
        instructions=str(about["instructions"]),
        server_digest=server_definition(about).digest,
        tools=tuple(msgspec.Raw(encode(one)) for one in tools),
        prompts=(msgspec.Raw(encode(PROMPT)),),
        resources=(msgspec.Raw(b'{"uri":"not:pinned"}'),),
        templates=(msgspec.Raw(encode(TEMPLATE)),),
    )


def book() -> PinBook:
    """Return the pins after the first session of a server with one tool."""
    pins = PinBook()
    pins.show("1-1", server_definition(ABOUT))
    pins.show("1-1", tool_definition("read", "Reads."))
    pins.show("1-1", *listed_definitions("prompts/list", [PROMPT]))
    pins.show("1-1", *listed_definitions("resources/templates/list", [TEMPLATE]))
    return pins


def changed() -> PinBook:
    pins = book()
    pins.show("1-2", CHANGED_DEFINITION, NEW_DEFINITION)
    return pins


def names(entries: tuple[msgspec.Raw, ...]) -> list[str]:
    return [msgspec.json.decode(raw)["name"] for raw in entries]


def test_what_is_accepted_is_listed_as_the_server_sent_it() -> None:
    found = stored(READ)
    accepted, held = divide(book().view, ALICE, found)
    assert accepted == found
    assert held == Definitions()


@pytest.mark.parametrize(
    ("decide", "accepted", "held"),
    [
        (lambda _: None, [], ["read", "send"]),
        (lambda pins: pins.reject(NEW_DEFINITION), [], ["read", "send"]),
        (lambda pins: pins.accept(NEW_DEFINITION), ["send"], ["read"]),
        # What a person accepts is listed, though no session of the server was open since.
        (lambda pins: pins.accept(NEW_DEFINITION, CHANGED_DEFINITION), ["read", "send"], []),
    ],
)
def test_what_is_held_back_is_divided_off(
    decide: Callable[[PinBook], None], accepted: list[str], held: list[str]
) -> None:
    pins = changed()
    decide(pins)
    divided = divide(pins.view, ALICE, stored(CHANGED, NEW))
    assert names(divided.accepted.tools) == accepted
    assert names(divided.held.tools) == held
    assert names(divided.accepted.prompts) == ["review"]
    assert divided.accepted.resources == stored().resources
    assert divided.accepted.templates == stored().templates


@pytest.mark.parametrize(
    ("pins", "uid", "found"),
    [
        (PinBook(), ALICE, stored(READ)),  # listed before there were pins
        (PinBook(is_strict=True), ALICE, stored(READ)),
        (changed(), BOB, stored(CHANGED)),  # held for Alice's sessions; Bob's have not offered it
        (book(), ALICE, stored(CHANGED)),
        (book(), ALICE, msgspec.structs.replace(stored(READ), server_digest="")),
    ],
)
def test_what_the_pins_do_not_know_is_listed_again(
    pins: PinBook, uid: int, found: Definitions
) -> None:
    with pytest.raises(UnknownToPinsError):
        divide(pins.view, uid, found)


def test_without_the_file_of_what_is_held_a_member_lists_it_again() -> None:
    pins = changed()
    divide(pins.view, ALICE, stored(CHANGED))
    pins.held = HeldDefinitions()
    with pytest.raises(UnknownToPinsError):
        divide(pins.view, ALICE, stored(CHANGED))


def test_instructions_that_are_held_back_are_empty() -> None:
    pins = book()
    other = server_definition(OTHER_ABOUT)
    pins.show("1-2", other)
    assert divide(pins.view, ALICE, stored(READ)).accepted.instructions == "Use it."
    found = stored(READ, about=OTHER_ABOUT)
    assert divide(pins.view, ALICE, found).accepted == msgspec.structs.replace(
        found, instructions=""
    )
    pins.accept(other)
    assert divide(pins.view, ALICE, found).accepted == found


def test_a_server_that_says_nothing_of_itself_has_no_such_definition() -> None:
    silent = msgspec.structs.replace(stored(READ), instructions="", server_digest="")
    assert divide(book().view, ALICE, silent).accepted == silent


def test_a_name_that_is_listed_twice_is_held_back_with_either() -> None:
    pins = changed()
    divided = divide(pins.view, ALICE, stored(READ, CHANGED))
    assert names(divided.accepted.tools) == []
    assert names(divided.held.tools) == ["read", "read"]
    pins.accept(CHANGED_DEFINITION)
    assert divide(pins.view, ALICE, stored(READ, CHANGED)).held == Definitions()


def test_a_variant_of_another_account_is_offered_to_no_other() -> None:
    pins = changed()
    pins.accept(CHANGED_DEFINITION)
    assert divide(pins.view, ALICE, stored(CHANGED)).accepted.tools == stored(CHANGED).tools
    assert divide(pins.view, BOB, stored(READ)).accepted.tools == stored(READ).tools

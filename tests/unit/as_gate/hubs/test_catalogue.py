"""Catalogue of a hub's session: members with what they listed last, or with a refusal."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.hubs import catalogue, definitions_store
from mcpwrap.as_gate.pins import files
from mcpwrap.as_gate.state import emergency_stop
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.pins import pins_file
from mcpwrap.core.pins.definitions import Definition, listed_definitions, server_definition
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import CatalogueMember, Definitions
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.machine import policy_files
from tests.unit.as_gate.hub_world import ADMISSIONS, ALICE, BOB, GUESTS
from tests.unit.core.pins.pin_book import PinBook

POLICY = "version: 1\nrules: [{name: r, server: git, tool: drop, action: hide}]"
READ, DROP = msgspec.Raw(b'{"name":"read"}'), msgspec.Raw(b'{"name":"drop"}')
CHANGED: Json = {"name": "read", "title": "x"}
NEW: Json = {"name": "new"}
ABOUT = server_definition({"serverInfo": {}})
LISTED = listed_definitions("tools/list", [{"name": "read"}, {"name": "drop"}])


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give Alice definitions of all servers, which are accepted, and the machine a policy."""
    for name in ("definitions", "servers", "etc", "pins"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(definitions_store, "FOLDER", tmp_path / "definitions")
    monkeypatch.setattr(files, "FOLDER", tmp_path / "pins")
    monkeypatch.setattr(emergency_stop, "SERVERS", tmp_path / "servers")
    monkeypatch.setattr(emergency_stop, "PANIC", (tmp_path / "panic.json",))
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "etc/policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "etc/policy.d"))
    (tmp_path / "etc/policy.yaml").write_text(POLICY)
    (tmp_path / "definitions" / str(ALICE)).mkdir()
    for name in ADMISSIONS.by_server:
        store(name, READ, DROP)
        write(name, accepted_book())
    return tmp_path


def store(name: str, *tools: msgspec.Raw) -> None:
    """Store what a server has listed for Alice."""
    found = Definitions(tools=tools, server_digest=ABOUT.digest)
    path = definitions_store.FOLDER / str(ALICE) / f"{name}.json"
    path.write_bytes(hub_catalogue.encode_definitions(found))


def accepted_book() -> PinBook:
    pins = PinBook()
    pins.show("1-1", ABOUT)
    pins.show("1-1", *LISTED)
    return pins


def write(name: str, pins: PinBook) -> None:
    """Write the files with the pins of a server."""
    (files.FOLDER / f"{name}.json").write_bytes(pins_file.encode(pins.pins))
    (files.FOLDER / f"{name}.held.json").write_bytes(pins_file.encode(pins.held))


def members(
    uid: int = ALICE,
    gids: tuple[int, ...] = (),
    door: Door = "stub",
    admissions: AccessList = ADMISSIONS,
) -> dict[str, CatalogueMember]:
    policies = Policies()
    policies.reload()
    agent = AgentIdentity(Peer(1, uid, frozenset(gids)), door, via="3-1", hub="tools")
    fd = catalogue.sealed_catalogue(agent, admissions, policies)
    with pytest.raises(PermissionError):
        os.write(fd, b"x")
    content = hub_catalogue.decode(memfd.read_all(fd))
    os.close(fd)
    names = [member.name for member in content.members]
    assert names == sorted(names)
    return {member.name: member for member in content.members}


def test_an_agent_gets_what_its_members_listed_by_its_policy() -> None:
    found = members()
    assert found["git"] == CatalogueMember(name="git", definitions=Definitions(tools=(READ,)))
    assert found["local"].definitions == Definitions(tools=(READ, DROP))
    assert {name for name, one in found.items() if one.refusal} == {"gone", "other", "raw", "web"}
    assert all(one.definitions is None for one in found.values() if one.refusal)


def test_definitions_are_those_of_the_agent() -> None:
    found = members(BOB, (GUESTS,))
    assert found["git"] == CatalogueMember(name="git")
    assert "may not use" in members(BOB)["git"].refusal


def test_a_listener_offers_the_members_for_http() -> None:
    found = members(door="http")
    assert {name for name, one in found.items() if not one.refusal} == {"git", "web"}


def test_a_member_under_an_emergency_stop_is_left_out(folder: Path) -> None:
    (folder / "panic.json").write_text('{"names":["git"]}')
    found = members()
    assert "stopped in an emergency" in found["git"].refusal
    assert found["git"].definitions is None
    assert found["local"].definitions is not None


def test_without_a_valid_policy_no_member_is_offered(folder: Path) -> None:
    (folder / "etc/policy.yaml").write_text("version: 1\nrules: [{name: r}]")
    assert all(one.refusal and one.definitions is None for one in members().values())


@pytest.mark.parametrize("tool", [b'"\xff"', b"7", b'{"name":"a","Name":"b"}'])
def test_definitions_that_are_none_are_listed_again(folder: Path, tool: bytes) -> None:
    file = folder / "definitions" / str(ALICE) / "git.json"
    file.write_bytes(b'{"tools":[%s]}' % tool)
    found = members()
    assert found["git"].refusal == ""
    assert found["git"].definitions in (
        None,
        Definitions(),
        Definitions(tools=(msgspec.Raw(b"7"),)),
    )
    assert found["local"].definitions is not None


def change(decide: Callable[[PinBook, list[Definition]], None]) -> None:
    """Let the server `git` list a changed tool, a new one, and one that a policy hides."""
    pins = accepted_book()
    listed: list[Json] = [CHANGED, NEW, {"name": "drop", "title": "x"}]
    changed = listed_definitions("tools/list", listed)
    pins.show("1-2", *changed)
    decide(pins, changed)
    write("git", pins)
    store("git", *(msgspec.Raw(strict_json.encode(one)) for one in listed))


@pytest.mark.parametrize(
    ("decide", "listed", "held"),
    [
        (lambda _, __: None, [], ("read", "new")),
        (lambda pins, changed: pins.reject(*changed), [], ("read", "new")),
        (lambda pins, changed: pins.accept(changed[0]), [CHANGED], ("new",)),
        (lambda pins, changed: pins.accept(*changed), [CHANGED, NEW], ()),
    ],
)
def test_a_changed_tool_is_not_listed_until_it_is_accepted(
    decide: Callable[[PinBook, list[Definition]], None],
    listed: list[Json],
    held: tuple[str, ...],
) -> None:
    change(decide)
    found = members()["git"]
    assert found.definitions is not None
    assert [msgspec.json.decode(raw) for raw in found.definitions.tools] == listed
    assert (found.held_tools, found.held_prompts) == (held, ())


def test_without_pins_a_changed_tool_is_listed() -> None:
    change(lambda _, __: None)
    (files.FOLDER / "git.json").write_text("damaged")
    rule = replace(ADMISSIONS.by_server["git"], pins="off")
    admissions = replace(ADMISSIONS, by_server={**ADMISSIONS.by_server, "git": rule})
    found = members(admissions=admissions)["git"]
    assert found.definitions is not None
    assert [msgspec.json.decode(raw) for raw in found.definitions.tools] == [CHANGED, NEW]


def test_a_member_without_pins_yet_is_listed_again() -> None:
    (files.FOLDER / "git.json").unlink()
    found = members()
    assert found["git"] == CatalogueMember(name="git")
    assert found["local"].definitions is not None


@pytest.mark.parametrize("uid", [ALICE, BOB])  # of Bob nothing is stored
def test_a_member_with_damaged_pins_is_refused(uid: int) -> None:
    file = files.FOLDER / "git.json"
    file.write_bytes(file.read_bytes().replace(b'"drop"', b'"dr0p"', 1))
    found = members(uid, (GUESTS,))
    assert "[E-PINS-DAMAGED]" in found["git"].refusal
    assert found["git"].definitions is None
    assert found["local"].refusal == ""


def test_members_beyond_the_bound_are_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(hub_catalogue.encode(hub_catalogue.Catalogue(members=(members()["git"],))))
    monkeypatch.setattr(catalogue, "MAX_BYTES", size + 1)
    assert [name for name, one in members().items() if one.definitions] == ["git"]

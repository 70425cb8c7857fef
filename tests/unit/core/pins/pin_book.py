"""Pins of one server, as tests change them: what sessions list, what a person decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from mcpwrap.core.pins import acceptance
from mcpwrap.core.pins.acceptance import OfferedDefinitions, Offerer, PinDecision
from mcpwrap.core.pins.definitions import (
    PINNED_LISTS,
    Definition,
    Kind,
    entry_definition,
    server_definition,
)
from mcpwrap.core.pins.pins_file import HeldDefinitions, ServerPins
from mcpwrap.core.pins.pins_view import PinsView, view_of
from mcpwrap.core.protocol.json_value import Json

ALICE, BOB = 1000, 1001
TOOLS = PINNED_LISTS["tools/list"]


def tool(name: str, description: str = "", **more: Json) -> dict[str, Json]:
    """Return an entry of `tools/list`."""
    return {"name": name, "description": description, **more}


def tool_definition(name: str, description: str = "", **more: Json) -> Definition:
    """Return the definition of such an entry."""
    return entry_definition(TOOLS, tool(name, description, **more))


@dataclass
class PinBook:
    """Pins and held definitions; each event takes a second."""

    pins: ServerPins = field(default_factory=ServerPins)
    held: HeldDefinitions = field(default_factory=HeldDefinitions)
    is_strict: bool = False
    now: float = 1000.0

    def show(
        self,
        session: str,
        *tools: Definition,
        uid: int = ALICE,
        first: bool = True,
        last: bool = True,
        again: Sequence[str] = (),
        version: str = "1.0",
    ) -> None:
        """Show tools in a session, as one page of a list; or definitions of another kind."""
        offered = OfferedDefinitions(
            kind=tools[0].key.kind if tools else "tool",
            is_first_page=first,
            is_last_page=last,
            version=version,
            entries=tuple((one.key.name, msgspec.Raw(one.text)) for one in tools),
            accepted_again=tuple(again),
        )
        self.take(offered, session, uid)

    def take(self, offered: OfferedDefinitions, session: str, uid: int = ALICE) -> None:
        """Take what a session offers."""
        self.now += 1
        by = Offerer(session, uid, self.now)
        self.pins, self.held = acceptance.offer(
            self.pins, self.held, offered, by, is_strict=self.is_strict
        )

    def describe(self, session: str, undeclared: tuple[Kind, ...]) -> None:
        """Show what the server says of itself in a session."""
        own = server_definition({"instructions": "Use it."})
        entries = (("", msgspec.Raw(own.text)),)
        self.take(
            OfferedDefinitions(kind="server", entries=entries, undeclared=undeclared), session
        )

    def accept(self, *tools: Definition, with_findings: bool = False) -> None:
        """Accept held definitions."""
        self.pins, self.held = acceptance.accept(
            self.pins, self.held, self._decision(tools, with_findings=with_findings)
        )

    def reject(self, *tools: Definition) -> None:
        """Reject held definitions."""
        self.pins = acceptance.reject(
            self.pins, self.held, self._decision(tools, with_findings=False)
        )

    @property
    def view(self) -> PinsView:
        """Return what a session's process gets."""
        return view_of(self.pins, self.held)

    def accepted(self) -> list[Definition]:
        """Return what is accepted, oldest first."""
        return [one.canonical() for one in self.pins.accepted]

    def waiting(self) -> list[Definition]:
        """Return what is held, oldest first."""
        return [one.canonical() for one in self.held.held]

    def _decision(self, tools: Sequence[Definition], *, with_findings: bool) -> PinDecision:
        self.now += 1
        return PinDecision(
            digests=frozenset(one.digest for one in tools),
            by="root (command)",
            now=self.now,
            with_findings=with_findings,
        )

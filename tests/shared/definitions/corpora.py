"""Corpora of definitions, and what `core/pins/findings` makes of them.

`poisoned.json` has 60 definitions of published attacks, written anew; `source` is where each is
described. `found` are the kinds of findings in it; one without any has the reason in `missed`.
`real/` is written by `record`. `python -m tests.shared.definitions.corpora` prints the table.
"""

from collections import Counter
from pathlib import Path

import msgspec

from mcpwrap.core.pins.definitions import Finding
from mcpwrap.core.pins.findings.finding_search import find
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import decode
from tests.shared.definitions.record import FOLDER, SERVERS


class PoisonedDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Definition of a published attack."""

    number: int
    source: str
    attack: str
    found: tuple[str, ...]
    definition: msgspec.Raw
    kind: str = "tool"
    foreign: tuple[str, ...] = ()  # names of other servers' tools
    missed: str = ""

    def findings(self) -> tuple[Finding, ...]:
        """Return what is found in it."""
        return find(decode(bytes(self.definition)), (), self.foreign)


class RecordedServer(msgspec.Struct, frozen=True, rename="camel"):
    """Definitions of a real server, and the package that it is from."""

    package: dict[str, str]
    server_info: msgspec.Raw
    tools: tuple[msgspec.Raw, ...]
    prompts: tuple[msgspec.Raw, ...]
    resource_templates: tuple[msgspec.Raw, ...]
    instructions: str = ""

    def definitions(self) -> list[Json]:
        """Return all that is pinned of it."""
        about: Json = {
            "instructions": self.instructions,
            "serverInfo": decode(bytes(self.server_info)),
        }
        lists = (*self.tools, *self.prompts, *self.resource_templates)
        return [about, *(decode(bytes(one)) for one in lists)]

    def names(self) -> set[str]:
        """Return the names of its tools, prompts and templates."""
        found = (one.get("name") for one in self.definitions() if isinstance(one, dict))
        return {name for name in found if isinstance(name, str)}


def poisoned() -> list[PoisonedDefinition]:
    """Return the poisoned definitions."""
    text = Path(__file__).with_name("poisoned.json").read_bytes()
    return msgspec.json.decode(text, type=list[PoisonedDefinition])


def recorded(name: str) -> RecordedServer:
    """Return a real server."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=RecordedServer)


def real_servers() -> dict[str, RecordedServer]:
    """Return the 25 real servers by name."""
    return {server.name: recorded(server.name) for server in SERVERS}


def alarms() -> dict[str, list[Finding]]:
    """Return what is found in each real server, when an agent has all of them."""
    servers = real_servers()
    names = set[str]().union(*(server.names() for server in servers.values()))
    return {
        name: [
            finding
            for definition in server.definitions()
            for finding in find(definition, server.names(), names)
        ]
        for name, server in servers.items()
    }


def table() -> str:
    """Return the numbers as a table of Markdown."""
    attacks = Counter[str]()
    for one in poisoned():
        attacks.update(set(one.found) or {"missed"})
    servers = real_servers().values()
    found = [finding.name for findings in alarms().values() for finding in findings]
    tools = sum(len(server.tools) for server in servers)
    rest = sum(len(server.definitions()) for server in servers) - tools
    head = f"{len(servers)} real servers: {tools} tools, {rest} other definitions"
    rows = [
        f"| | 60 poisoned definitions | {head} |",
        "|---|---|---|",
        f"| **found** | {sum(bool(one.found) for one in poisoned())} | {len(found)} |",
        *(
            f"| `{name}` | {count} | {found.count(name)} |"
            for name, count in sorted(attacks.items())
            if name != "missed"
        ),
        f"| **missed** | {attacks['missed']} | |",
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table())

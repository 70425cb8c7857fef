"""Table of MCP methods: a row for each, as in the specification."""

import pytest

from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra, era_of

# The agent's requests, as in schema.ts of each revision and in the extensions.
BOTH = [
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "tasks/get",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
    "initialize",
    "server/discover",
]
HANDSHAKE = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/result",
    "tasks/list",
]
MODERN = ["subscriptions/listen", "tasks/update"]


@pytest.mark.parametrize("method", [*BOTH, *HANDSHAKE, *MODERN])
def test_a_request_of_the_agents_is_of_its_era(method: str) -> None:
    in_handshake = methods.agent_request(method, ProtocolEra.HANDSHAKE) is not None
    in_modern = methods.agent_request(method, ProtocolEra.MODERN) is not None
    assert in_handshake == (method in BOTH + HANDSHAKE)
    assert in_modern == (method in BOTH + MODERN)
    assert methods.is_request(method)
    assert not methods.is_notification(method)


def test_there_are_no_others() -> None:
    assert methods._AGENT_REQUESTS.keys() == {*BOTH, *HANDSHAKE, *MODERN}


@pytest.mark.parametrize(
    "method",
    [
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
        "notifications/message",
        "x",
        "",
    ],
)
def test_what_is_the_servers_is_no_request_of_the_agents(method: str) -> None:
    assert all(methods.agent_request(method, era) is None for era in ProtocolEra)
    assert methods.agent_notification(method) is None


def test_what_does_something_meets_the_default() -> None:
    judged = {
        name for name, (_, way) in methods._AGENT_REQUESTS.items() if way is PolicyScope.JUDGE
    }
    assert judged == {
        "tools/call",
        "prompts/get",
        "resources/read",
        "resources/subscribe",
        "resources/directory/read",
        "completion/complete",
        "skills/get",
    }
    asked = {name for name, way in methods._SERVER_REQUESTS.items() if way is PolicyScope.JUDGE}
    assert asked == methods.INPUT_REQUESTS


def test_nothing_is_both_a_request_and_a_notification() -> None:
    assert not methods._REQUESTS & methods._NOTIFICATIONS
    assert all(name.startswith("notifications/") for name in methods._NOTIFICATIONS)


@pytest.mark.parametrize(
    ("params", "era"),
    [
        ({}, ProtocolEra.HANDSHAKE),
        ({"_meta": {}}, ProtocolEra.HANDSHAKE),
        ({"_meta": {"progressToken": 1}}, ProtocolEra.HANDSHAKE),
        ({"_meta": {methods.PROTOCOL_VERSION: "2026-07-28"}}, ProtocolEra.MODERN),
        ({"_meta": {methods.PROTOCOL_VERSION: "2027-01-01"}}, ProtocolEra.MODERN),  # one to come
        ({"_meta": {methods.PROTOCOL_VERSION: 1}}, ProtocolEra.HANDSHAKE),
        ({"_meta": [methods.PROTOCOL_VERSION]}, ProtocolEra.HANDSHAKE),
    ],
)
def test_the_era_is_in_the_envelope(params: dict[str, Json], era: ProtocolEra) -> None:
    assert era_of(params) is era

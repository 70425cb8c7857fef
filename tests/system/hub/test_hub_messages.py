"""Messages through a hub: each kind reaches the right side, and arrives as it was sent."""

import json
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.hub import comparison, machines
from tests.system.hub.comparison import AUTO, LEGACY, MODERN, PYTHON, TYPESCRIPT
from tests.system.hub.machines import call, opened, text_of
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = machines.with_hub
pytestmark = ON_ONE_RELEASE

CALLS: dict[str, list[dict[str, Any]]] = {
    "echo": [{"text": "grüße \N{GRINNING FACE}\0\n"}, {}],
    "rich": [{}],  # its result breaks its outputSchema, which clients check
    "progress": [{"steps": 3}],
    "log": [{}],
    "ask": [{"what": what} for what in ("sampling", "elicitation", "roots")],
}
ONE_MORE = only_in_test_all("the fast tier has each client, and each era to a member of the other")


@pytest.fixture(scope="module", autouse=True)
def known(stage: Machine) -> None:
    """Have the gate know the members' definitions, and bring the clients."""
    comparison.bring(stage)
    machines.learn(stage)


@pytest.mark.parametrize(
    ("client", "mode", "member"),
    [
        (PYTHON, LEGACY, "gamma"),
        (PYTHON, MODERN, "beta"),
        (TYPESCRIPT, AUTO, "beta"),
        pytest.param(PYTHON, LEGACY, "alpha", marks=ONE_MORE),
        pytest.param(PYTHON, LEGACY, "beta", marks=ONE_MORE),
        pytest.param(PYTHON, MODERN, "alpha", marks=ONE_MORE),
        pytest.param(PYTHON, MODERN, "gamma", marks=ONE_MORE),
        pytest.param(TYPESCRIPT, LEGACY, "alpha", marks=ONE_MORE),
        pytest.param(TYPESCRIPT, LEGACY, "gamma", marks=ONE_MORE),
    ],
)
def test_each_value_is_as_from_the_member_itself(
    machine: Machine, client: str, mode: str, member: str
) -> None:
    """In both eras to the agent, whatever era the member has: `auto` is what it has."""
    uris = f"//{member}/"  # a hub's lists have those of all members
    hub = (machines.HUB, CALLS)
    by_hub = comparison.used(machine, client, mode, *hub, prefix=f"{member}__", uris=uris)
    directly = comparison.used(machine, client, AUTO, member, CALLS, uris=uris)
    comparison.assert_same(by_hub, directly)
    assert comparison.failed(directly) == ["rich {}"]


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "rich", "arguments": {}}),
    ("tools/call", {"name": "echo", "arguments": {"z": 1.0, "a": [1e2, "\u2028"]},
                    "_meta": {"good.test/x": {"b": 1, "a": 2}}}),
    ("prompts/get", {"name": "greet", "arguments": {"who": "you"}}),
    ("resources/read", {"uri": "member://{member}/doc"}),
    ("resources/read", {"uri": "member://{member}/item/7"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"},
                             "argument": {"name": "who", "value": "a"}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "member://{member}/item/{n}"},
                             "argument": {"name": "n", "value": "4"}}),
]  # fmt: skip


def results(session: Session, member: str, prefix: str) -> list[str]:
    """Send each request; return the text of each response after its id."""
    found = []
    for method, params in REQUESTS:
        text = json.dumps(params).replace("{member}", member)
        for name in ("rich", "echo", "greet"):
            text = text.replace(f'"name": "{name}"', f'"name": "{prefix}{name}"')
        number = session.request(method, json.loads(text))
        line = session.read_line()
        while f'"id":{number}' not in line:
            line = session.read_line()
        found.append(line.partition(f'"id":{number}')[2])
    return found


@pytest.mark.parametrize("member", ["alpha", pytest.param("beta", marks=ONE_MORE)])
def test_results_and_definitions_are_the_same_bytes(machine: Machine, member: str) -> None:
    """outputSchema, `_meta`, icons, annotations and structured content among them."""
    with opened(machine) as hub, opened(machine, member) as direct:
        assert results(hub, member, f"{member}__") == results(direct, member, "")
        lists = []
        for session in (hub, direct):
            session.request("tools/list")
            line = session.read_line()
            start = line.index('"title":"Größe')  # of `rich`, after its name
            lists.append(line[start : line.index("}}", line.index('"good.test/tool"', start))])
        assert lists[0] == lists[1]
        assert '"outputSchema"' in lists[0]


def test_a_cancelled_call_is_cancelled_in_the_member(machine: Machine) -> None:
    with opened(machine) as session:
        waiting = session.request("tools/call", {"name": "alpha__wait", "arguments": {}})
        while session.receive().get("method") != "notifications/message":
            pass  # which tells that the member waits, and that its log arrives
        params = {"requestId": waiting, "reason": "changed my mind"}
        session.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert text_of(call(session, "alpha__waited")) == "1"
        assert text_of(call(session, "beta__waited")) == "0"


def test_a_subscription_reaches_its_member_alone(machine: Machine) -> None:
    with opened(machine) as session:
        uri = {"uri": "member://alpha/doc"}
        assert session.answer_to(session.request("resources/subscribe", uri))["result"] == {}
        call(session, "beta__change", what="resource")  # without a subscription
        number = session.request(
            "tools/call", {"name": "alpha__change", "arguments": {"what": "resource"}}
        )
        assert machines.notified(session, number) == ["notifications/resources/updated"]
        assert session.answer_to(session.request("resources/unsubscribe", uri))["result"] == {}
        number = session.request(
            "tools/call", {"name": "alpha__change", "arguments": {"what": "resource"}}
        )
        assert machines.notified(session, number) == []


def test_a_task_belongs_to_the_member_that_made_it(machine: Machine) -> None:
    with opened(machine) as session:
        made = {}
        for member in ("alpha", "beta"):
            params = {"name": f"{member}__echo", "arguments": {}, "task": {"ttl": 60000}}
            answer = session.answer_to(session.request("tools/call", params))
            made[member] = {"taskId": answer["result"]["task"]["taskId"]}
        for member, task in made.items():
            done = session.answer_to(session.request("tasks/result", task))
            assert text_of(done) == f"done by {member}"
        unknown = session.answer_to(session.request("tasks/get", {"taskId": "gamma-0"}))
        assert unknown["error"]["code"] == -32602

"""Real servers of the hub stories, from npm, PyPI and elsewhere, with a call of each tool."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.guest.conformance.said import CONTENT
from tests.system.http import remote
from tests.system.hub import comparison
from tests.system.hub.comparison import Calls
from tests.system.hub.machines import ALICE, a_hub
from tests.system.support.servers import DOWNLOADED_SERVERS, THREE_SERVERS

GRAPH = {"entities": [{"name": "one", "entityType": "number", "observations": ["größer"]}]}
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
EVERYTHING: Calls = {
    "echo": [{"message": "grüße \N{GRINNING FACE}\0\n"}, {}],
    "get-sum": [{"a": 0.1, "b": 0.2}, {"a": "x"}],
    "get-annotated-message": [{"messageType": "error", "includeImage": True}],
    "get-env": [{}],
    "get-resource-links": [{"count": 3}],
    "get-resource-reference": [{"resourceType": "Blob", "resourceId": 1}],
    "get-roots-list": [{}],
    "get-structured-content": [{"location": "Chicago"}],
    "get-tiny-image": [{}],
    "gzip-file-as-resource": [
        {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}
    ],
    "trigger-long-running-operation": [{"duration": 0.1, "steps": 2}],
    "toggle-simulated-logging": [{}, {}],
    "toggle-subscriber-updates": [{}, {}],
    "trigger-sampling-request": [{"prompt": "say something", "maxTokens": 10}],
    "trigger-elicitation-request": [{}],
    "trigger-url-elicitation": [{"url": "https://good.test/", "elicitationId": "one"}],
    "simulate-research-query": [{"topic": "gates"}],  # which has to be a task
}
TIME: Calls = {
    "convert_time": [NOON, {**NOON, "time": "25:00"}, {"time": "12:00"}],
    "get_current_time": [{"timezone": "UTC"}, {"timezone": "Nowhere/None"}],
}
MEMORY: Calls = {
    "create_entities": [GRAPH],
    "create_relations": [{"relations": [{"from": "one", "to": "one", "relationType": "is"}]}],
    "add_observations": [{"observations": [{"entityName": "one", "contents": ["odd"]}]}],
    "read_graph": [{}],
    "search_nodes": [{"query": "odd"}],
    "open_nodes": [{"names": ["one"]}],
    "delete_observations": [{"deletions": [{"entityName": "one", "observations": ["odd"]}]}],
    "delete_relations": [{"relations": [{"from": "one", "to": "one", "relationType": "is"}]}],
    "delete_entities": [{"entityNames": ["one"]}],
}
FAR: Calls = {
    **{tool: [{}] for tool in CONTENT},
    "test_error_handling": [{}],
    "test_tool_with_progress": [{}],
    "test_tool_with_logging": [{}],
}
# By member: its calls, and a part of the URIs that are the same in each session.
MEMBERS = {
    "everything": (EVERYTHING, "demo://resource/static"),
    "far": (FAR, "test://"),
    "memory": (MEMORY, "none"),
    "time": (TIME, "none"),
}
FETCHED = "fetched"  # the hub of `DOWNLOADED_SERVERS`


@contextmanager
def connected(machine: Machine, more: str = "") -> Iterator[Connected]:
    """Plug a machine into an internet, and give alice four real servers and a hub of them.

    `more` is configuration of other servers.
    """
    machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
    machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
    comparison.bring(machine)
    hubs = a_hub(tuple(MEMBERS), ours=ALICE) + a_hub(("npx", "uvx"), name=FETCHED, ours=ALICE)
    with Internet(machine) as internet:
        config = THREE_SERVERS + DOWNLOADED_SERVERS + remote.a_url("far", remote.FAR) + hubs + more
        remote.prepare(machine, config)
        with remote.far_server(machine, internet):
            yield Connected(machine, internet)


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot such a machine."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        with connected(machine) as found:
            yield found

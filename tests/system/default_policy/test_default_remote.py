"""Default policy for a remote server: what it holds is not sent."""

import json

from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.default_policy.guarded import DISABLED, call, opened, put
from tests.system.http import remote
from tests.system.support.approvers import meanwhile
from tests.system.support.tiers import ON_ONE_RELEASE

STAGE = remote.connected
pytestmark = ON_ONE_RELEASE
# Its tool `echo` takes any argument; by its name this one is a command line.
DESTROY = {"text": "hi", "command": "terraform destroy"}
PLAN = {"text": "hi", "command": "terraform plan"}
HELD = "rule default.infrastructure-destroy"


def sent(internet: Internet) -> list[str]:
    """Return the command lines that the remote server received."""
    bodies = [json.loads(one.body) for one in internet.calls() if one.method == "POST"]
    calls = [body["params"] for body in bodies if body["method"] == "tools/call"]
    return [params["arguments"]["command"] for params in calls]


def test_what_is_held_is_not_sent_to_a_remote_server(machine: Machine, internet: Internet) -> None:
    put(machine)
    with opened(machine, "odd") as session:
        with meanwhile(machine, ("answer_next", {"verdict": "deny"}), user="carol"):
            told = call(session, "echo", DESTROY)
        assert HELD in told
        assert "E-CALL-DENIED" in told
        assert sent(internet) == []
        assert call(session, "echo", PLAN) == "hi"  # the twin
        assert sent(internet) == ["terraform plan"]
    put(machine, DISABLED)
    try:  # the mechanism taken away
        with opened(machine, "odd") as session:
            assert call(session, "echo", DESTROY) == "hi"
        assert sent(internet)[1:] == ["terraform destroy"]
    finally:
        put(machine)

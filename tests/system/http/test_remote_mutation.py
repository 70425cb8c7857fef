"""Mutation of listeners and remote servers: without a mechanism, what it prevents happens."""

import json
from collections.abc import Iterator

import pytest

from tests.shared import pace
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.guest import search
from tests.system.http import remote
from tests.system.http.remote import TOKEN, request, sent
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = remote.connected
pytestmark = [
    ON_ONE_RELEASE,
    only_in_test_all("mutation twins: show that the tests notice a missing mechanism"),
]
BEGIN_ANEW = "systemctl stop 'mcpwrap-http@*.service'"
EVIL = request(Host="evil.example:52100")
FOREIGN = request("Origin: http://evil.example")


@pytest.fixture
def machine(stage: Connected) -> Iterator[Machine]:
    stage.machine.announce("mcpwrap-gate")  # it is restarted for each
    yield stage.machine
    stage.machine.as_root(BEGIN_ANEW)
    stage.machine.unannounced()


def test_redirects_are_followed_where_the_client_does(machine: Machine, internet: Internet) -> None:
    to = {"to": f"{remote.ODD}/tell", "status": 307}
    follows = ("session/remote/http_client", "allow_redirects=False", "allow_redirects=True")
    with machine.patched(*follows):
        remote.step(machine, "odd", "call", "redirect", to)
    went = [call.path for call in internet.calls()]
    assert went == ["/odd", "/odd/tell"]


def test_an_upstream_that_tells_the_token_is_what_redaction_is_for(
    machine: Machine, internet: Internet
) -> None:
    as_it_is = ("session/remote/credentials", "return self._redactor.feed(line)", "return line")
    with machine.patched(*as_it_is):
        answer = remote.step(machine, "odd", "call", "tell", {})
    assert search.holds(json.dumps(answer).encode(), TOKEN)


@pytest.mark.parametrize(
    ("check", "instead", "data"),
    [
        ('    if head.every("host") != [host]:\n', "    if False:\n", EVIL),
        ('    return is_same and head.every("origin")', "    return True or (", FOREIGN),
    ],
)
def test_names_and_pages_are_looked_at(
    machine: Machine, internet: Internet, check: str, instead: str, data: str
) -> None:
    if instead.endswith("("):
        check, instead = check + " in ([], ", instead + "[], "
    (before,) = sent(machine, data)
    assert before["statuses"] in ([421], [403])
    with machine.patched("core/http/request_rules", check, instead):
        machine.as_root(BEGIN_ANEW)
        remote.step(machine, "odd", "call", "echo", {})  # all is started
        (after,) = sent(machine, data)
    assert after["statuses"] == [200]


def test_the_set_is_what_keeps_other_accounts_out(machine: Machine, internet: Internet) -> None:
    host, _ = remote.place(machine, "odd")
    element = f"element inet mcpwrap listener_clients '{{ {machine.uid_of('bob')} . {host} }}'"
    assert remote.step(machine, "odd", "reach", user="bob", of="alice") != "there"
    with machine.unwatched():
        machine.as_root(f"nft add {element}")
        assert remote.step(machine, "odd", "reach", user="bob", of="alice") == "there"
        machine.as_root(f"nft delete {element}")


def test_who_hangs_up_would_leave_the_upstream_at_work(
    machine: Machine, internet: Internet
) -> None:
    gives_back = "        if pending.is_answered and not gate.has_ended:\n"
    with machine.patched("as_http/transports/stateless_http", gives_back, "        if True:\n"):
        machine.as_root(BEGIN_ANEW)
        remote.step(machine, "odd", "leave", "idle", {"seconds": 3600})
        # It reaches the working session, where its id is in use.
        echo = remote.step(machine, "odd", "call", "echo", {"text": "meanwhile"})
        assert echo["status"] == 400
        assert internet.left() == []
        machine.as_root(BEGIN_ANEW)
        pace.until(lambda: internet.left() == ["/odd"])  # and not in the next story


def test_an_agent_at_a_door_that_is_not_its_own(machine: Machine, internet: Internet) -> None:
    """Its unit decides for which agent it may act, and the access list whether there is one."""
    setpriv = "setpriv --reuid=mcpwrap-http --regid=mcpwrap-http --clear-groups"
    ask = machine.guest_command("listeners", "gate_answer", "odd", machine.uid_of("bob"))
    asks = f"{setpriv} {ask}"
    assert machine.as_root(asks).out.startswith('"!76 only the listener')
    check = ' or peer_credentials.service_of(who.pid) != (unit, "")'
    unit = ("as_gate/agent_identity", check, "")
    guests = (
        "as_gate/agent_identity",
        "return has_url and self.who.uid in admission.http_uids",
        "return True",
    )
    with machine.patched(*unit):
        assert machine.as_root(asks).out.startswith('"!77 ')
        with machine.patched(*guests):
            assert machine.as_root(asks).out.startswith('"S')

"""Token of a remote server: sent with each request, and visible to no other account."""

import json
import math
import re
import secrets
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.guest import search
from tests.system.http import remote
from tests.system.http.remote import TOKEN
from tests.system.support import vault
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = remote.connected
pytestmark = ON_ONE_RELEASE
SAME_KIND = only_in_test_all("row of the same kind: another cause, told in the same way")
SLOWLY = only_in_test_all("second-order variant that waits for seconds")

# Headers that an agent may send, and those that must not reach the upstream.
OWN = {
    "Authorization": "Bearer of-the-agent",
    "Cookie": "id=of-the-agent",
    "Proxy-Authorization": "Basic of-the-agent",
    "X-Api-Key": "of-the-agent",
    "X-Forwarded-For": "of-the-agent",
    "Forwarded": "for=of-the-agent",
    "Via": "1.1 of-the-agent",
    "User-Agent": "of-the-agent",
}
BEARER = f"Bearer {TOKEN}"


# ------------------------------------------------------------------ what the upstream receives
def test_each_request_carries_the_token_and_nothing_of_the_agents(
    machine: Machine, internet: Internet
) -> None:
    came = remote.steps(
        machine,
        "odd",
        ("ask", "tools/list", {}, OWN),
        ("begin", OWN),
        ("use", "echo", {"text": "hi"}, OWN),
        ("end", OWN),
    )
    assert [answer["status"] for answer in came[:3]] == [200, 200, 200]
    assert (came[1]["then"], came[3]) == (202, 200)
    assert remote.text_of(came[2]) == "hi"
    calls = internet.calls()
    methods = [json.loads(call.body)["method"] for call in calls if call.method == "POST"]
    begins = ["initialize", "notifications/initialized"]
    assert methods == ["tools/list", *begins, "tools/call"]
    assert "DELETE" in {call.method for call in calls}
    assert remote.values_of(internet, "authorization") == [[BEARER]] * len(calls)
    for call in calls:
        assert "of-the-agent" not in str(call)
        assert "mcpwrap/" not in call.body
        assert {name for name, _ in call.headers}.isdisjoint({"cookie", "origin", "forwarded"})
        assert ("host", "odd.good.test") in call.headers


def test_other_headers_are_the_operators(machine: Machine, internet: Internet) -> None:
    remote.step(machine, "keyed", "ask", "tools/list", {}, OWN)
    assert remote.values_of(internet, "x-api-key") == [[TOKEN]]
    assert remote.values_of(internet, "x-of") == [["bed"]]
    assert remote.values_of(internet, "authorization") == [[]]


def test_the_headers_of_a_request_arrive_as_its_body_says(
    machine: Machine, internet: Internet
) -> None:
    given = {"Mcp-Param-Region": "north", "Mcp-Param-Word": "=?base64?w7w=?="}
    given["Mcp-Param-Other"] = "south"  # which no argument sets
    params = {"name": "echo", "arguments": {"text": "hi", "where": "north", "word": "ü"}}
    assert remote.step(machine, "odd", "ask", "tools/call", params, given)["status"] == 200
    (call,) = internet.calls()
    headers = dict(call.headers)
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "echo")
    assert headers["mcp-param-region"] == "north"
    assert headers["mcp-param-word"] == "=?base64?w7w=?="
    assert "mcp-param-other" not in headers
    for headers in ({"Mcp-Method": "tools/list"}, {"Mcp-Name": "other"}):
        assert remote.step(machine, "odd", "ask", "tools/call", params, headers)["status"] == 400
    assert len(internet.calls()) == 1


def test_a_redirect_is_not_followed(machine: Machine, internet: Internet) -> None:
    """Neither to another origin, nor to another port or path of the same host."""
    targets = (
        "https://other.test/odd",
        "https://odd.good.test:8443/odd/tell",
        f"{remote.ODD}/tell",
    )
    wanted = [
        ("call", "redirect", {"to": to, "status": status})
        for to in targets
        for status in (301, 302, 303, 307, 308)
    ]
    for answer in remote.steps(machine, "odd", *wanted):
        assert answer["status"] in {200, 502}
        assert "redirects are not followed" in remote.text_of(answer)
        assert "location" not in answer["headers"]
    assert [call.path for call in internet.calls()] == ["/odd"] * len(wanted)
    assert "other.test" not in {query.name for query in internet.queries()}


def test_the_old_transport_posts_nowhere_else(machine: Machine, internet: Internet) -> None:
    answer = remote.step(machine, "elsewhere", "begin", {})
    assert "error" in answer["messages"][-1]
    assert "other.test" not in {query.name for query in internet.queries()}
    internet.forget()
    came = remote.steps(
        machine, "old", ("begin", {}), ("use", "echo", {"text": "hi"}, {})
    )  # the twin
    assert json.loads(remote.text_of(came[1])) == {"text": "hi"}
    assert set(map(tuple, remote.values_of(internet, "authorization"))) == {(BEARER,)}


# ------------------------------------------------------------------------------- other accounts
TELLING: list[tuple[str, str, dict[str, Any]]] = [
    ("call", "tell", {}),
    ("call", "tell-all", {"status": 200, "as": "json"}),
    *(("call", "tell-all", {"status": status}) for status in (200, 400, 401, 403, 404, 429, 500)),
    *(("call", "tell-all", {"status": status, "as": "json"}) for status in (400, 401, 500)),
]


def test_what_the_upstream_says_of_it_is_not_passed_on(
    machine: Machine, internet: Internet
) -> None:
    came = remote.steps(machine, "odd", *TELLING)
    assert remote.values_of(internet, "authorization") == [[BEARER]] * len(TELLING)
    assert "[redacted" in remote.text_of(came[0])
    with machine.session("odd") as session:
        session.initialize()
        for _, tool, arguments in TELLING:
            if arguments.get("status") == 404:  # in a session it would report that this is over
                continue
            call = {"name": tool, "arguments": arguments}
            came.append(session.answer_to(session.request("tools/call", call)))
    for answer in came:
        assert not search.holds(json.dumps(answer).encode(), TOKEN)


def test_nobody_finds_it_but_root(machine: Machine, internet: Internet) -> None:
    """While sessions of both kinds run that have used it, and after failures."""
    machine.write("/opt/decoy", f"somewhere {vault.DECOY} in a line\n")
    idle = ("call", "idle", {"seconds": 3600})
    with (
        machine.session("odd") as session,
        remote.beside(machine, "odd", idle),
        remote.beside(machine, "keyed", idle),
    ):
        session.initialize()
        remote.steps(machine, "odd", *TELLING)
        # The handshake's two and an idle one.
        pace.until(lambda: len(internet.calls()) >= len(TELLING) + 4)
        wanted = (TOKEN, vault.DECOY)
        by_root = vault.places_of(machine, *wanted)
        by_agents = [vault.places_of(machine, *wanted, user=user) for user in ("alice", "bob")]
        accounts = ("mcpwrap-http", "mcpwrap-gate", "mcpw-far")
        by_agents += [vault.places_by(machine, account, *wanted) for account in accounts]
    pace.until(lambda: internet.left() == ["/odd"] * 2)  # and not in the next story
    for found in by_agents:
        assert found[0] == []
        assert "/opt/decoy" in found[1]
    assert by_root[0]  # the files of the sessions, which only they see
    for place in by_root[0]:
        assert re.fullmatch(r"/proc/\d+/root/run/mcpwrap/rt/[a-z]+/.*/secrets/headers\.json", place)
    assert "/opt/decoy" in by_root[1]
    units = ("mcpwrap-gate", "mcpwrap@odd", *(f"mcpwrap-http@odd.{machine.uid_of('alice')}",))
    assert not search.holds(json.dumps(machine.journal()).encode(), TOKEN), units


def test_the_agents_configuration_has_no_secret(machine: Machine) -> None:
    """A file on disk: the listener's own, which only root and the listener read."""
    uid = machine.uid_of("alice")
    file = f"/var/lib/mcpwrap/http/odd.{uid}.json"
    assert not search.holds(machine.read(file).encode(), TOKEN)
    assert remote.url(machine, "odd").startswith("http://127.78.")


# ------------------------------------------------------------------------------- rotation
def reload_with(machine: Machine, token: str) -> None:
    """Reload the wrapper, and wait until it has finished: systemctl returns before that."""
    pid = machine.show("mcpwrap@odd.service", "MainPID")["MainPID"]
    old = f"nsenter -t {pid} -m grep -rL {token} /run/mcpwrap/rt/odd --include=headers.json"
    machine.as_root("systemctl reload mcpwrap@odd")
    pace.until(lambda: machine.look(f"{old} || true") == "")


def test_a_new_token_is_used_by_the_next_request(machine: Machine, internet: Internet) -> None:
    """Of the same session, of one of pipes, and of one without sessions."""
    new = f"new-{secrets.token_hex(16)}"
    with machine.session("odd") as piped:
        piped.initialize()
        begun, *_ = remote.steps(machine, "odd", ("begin", {}), ("call", "echo", {}))
        internet.forget()
        remote.set_secret(machine, "odd", "TOKEN", new)
        reload_with(machine, new)
        try:
            session = begun["headers"]["mcp-session-id"]
            echo = {"name": "echo", "arguments": {}}
            piped.answer_to(piped.request("tools/call", echo))
            _, in_session, alone = remote.steps(
                machine,
                "odd",
                ("resume", session),
                ("use", "tell", {}, {}),
                ("call", "tell", {}),
            )
            assert remote.values_of(internet, "authorization") == [[f"Bearer {new}"]] * 3
            for answer in (in_session, alone):
                assert not search.holds(json.dumps(answer).encode(), new)
        finally:
            remote.set_secret(machine, "odd", "TOKEN", TOKEN)
            reload_with(machine, TOKEN)
        remote.step(machine, "odd", "call", "echo", {})
    assert remote.values_of(internet, "authorization")[-1] == [BEARER]


# ------------------------------------------------------------------------------- failures
CAUSES = {
    "noport": "cannot be reached",
    "nowhere": "proxy cannot find the remote server",
    "inside": "proxy does not allow|proxy cannot reach",
    "expired": "certificate has expired",
    "wrongname": "certificate is for another name",
    "stranger": "authority that this machine does not trust",
}


CAUSES_IN_BOTH_TIERS = ("nowhere", "expired")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in CAUSES_IN_BOTH_TIERS else SAME_KIND) for n in CAUSES],
)
def test_an_error_names_the_cause(machine: Machine, internet: Internet, name: str) -> None:
    answer = remote.step(machine, name, "call", "echo", {})
    error = answer["messages"][-1]["error"]
    assert error["code"] == -32603
    assert re.search(CAUSES[name], error["message"]), error
    assert "data" not in error
    with machine.session(name) as session:
        asked = session.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        told = session.answer_to(asked)["error"]
        assert (told["code"], told["message"]) == (-32603, error["message"])
    assert internet.calls() == []
    for word in ("good.test", "internal.test", "10.0.0.5", TOKEN):
        assert word not in str(answer["messages"])


REFUSALS = {
    401: "refuses the credential",
    403: "forbids this request",
    404: "has nothing at its URL",
    429: "limits the rate of requests",
    500: "has failed",
    503: "has failed",
}


@pytest.mark.parametrize(
    "status", [pytest.param(n, marks=() if n in {401, 404, 503} else SAME_KIND) for n in REFUSALS]
)
def test_a_status_is_passed_on_with_its_challenge(
    machine: Machine, internet: Internet, status: int
) -> None:
    # The first call starts the wrapper; and an answer that takes over 5 s is a stream, with 200.
    refused: tuple[Any, ...] = ("call", "refuse", {"status": status})
    answer = remote.steps(machine, "odd", ("call", "echo", {}), refused)[1]
    assert answer["status"] == status
    # Without the address that it names: the login address is not for the agent.
    assert answer["headers"].get("www-authenticate") == 'Bearer realm="odd"'
    assert REFUSALS[status] in remote.text_of(answer)
    with machine.session("odd") as session:
        if status == 404:  # in a session it would report that this is over
            return
        session.initialize()
        call = {"name": "refuse", "arguments": {"status": status}}
        error = session.answer_to(session.request("tools/call", call))["error"]
        assert REFUSALS[status] in error["message"]
        assert "data" not in error


WRONG_ANSWERS = {
    "html": "response is neither application/json nor text/event-stream",
    "broken": "not a message in JSON",
    "empty": "has accepted the request, but sends no response",
    "other-id": "(broke|ended) before its answer was complete",
}


@pytest.mark.parametrize(
    "tool",
    [pytest.param(n, marks=() if n in {"html", "other-id"} else SAME_KIND) for n in WRONG_ANSWERS],
)
def test_what_is_no_answer_is_an_error(machine: Machine, internet: Internet, tool: str) -> None:
    answer = remote.step(machine, "odd", "call", tool, {})
    assert re.search(WRONG_ANSWERS[tool], remote.text_of(answer)), answer
    assert "log in" not in str(answer)
    assert remote.text_of(remote.step(machine, "odd", "call", "echo", {"text": "still"})) == "still"


# Answers in time need a fraction of it, on a busy host too.
LIMIT_S = math.ceil(3.0 * pace.PACE)
SLOW: dict[str, tuple[str, dict[str, float], str]] = {
    "it never answers": ("silent", {}, f"has sent nothing for {LIMIT_S} s"),
    "it answers a head and no body": ("drip", {"n": 1, "interval_s": 600}, "not ended it within"),
    "it answers a byte a second": (
        "drip",
        {"n": 600, "interval_s": 1},
        f"not ended it within {LIMIT_S} s",
    ),
}


def limited(machine: Machine, seconds: float) -> AbstractContextManager[None]:
    """Set the timeout for the head of a response, and for a body that is not a stream."""
    return machine.patched("session/remote/timeouts", "HEAD_S = 300.0", f"HEAD_S = {seconds}")


@pytest.mark.parametrize(
    "slow", [pytest.param(n, marks=() if n == "it never answers" else SLOWLY) for n in SLOW]
)
def test_one_that_is_slow_is_waited_for_so_long_and_is_named(
    machine: Machine, internet: Internet, slow: str
) -> None:
    """Others of the session are answered meanwhile, and the upstream's connection is closed."""
    tool, arguments, words = SLOW[slow]
    with limited(machine, LIMIT_S):
        with machine.session("odd") as session:
            session.initialize()
            asked = session.request("tools/call", {"name": tool, "arguments": arguments})
            echo = {"name": "echo", "arguments": {"text": "meanwhile"}}
            assert session.request("tools/call", echo) == session.receive()["id"]
            told = session.receive()
            assert (told["id"], told["error"]["code"]) == (asked, -32603)
            assert words in told["error"]["message"]
            pace.until(lambda: internet.left() == ["/odd"])
            again = session.answer_to(session.request("tools/call", echo))
            assert again["result"]["content"][0]["text"] == "meanwhile"
        answer = remote.step(machine, "odd", "call", tool, arguments)
        assert words in remote.text_of(answer)
        pace.until(lambda: internet.left() == ["/odd"] * 2)


IN_TIME: dict[str, tuple[str, dict[str, float], float]] = {
    "late, within the limit": ("late", {"seconds": 1}, 30 * pace.PACE),
    "by the byte, within the limit": ("drip", {"n": 20, "interval_s": 0.1}, 30 * pace.PACE),
    "later than the limit, without one": ("late", {"seconds": 2 * LIMIT_S}, 3600.0),
    "a stream that is silent for longer": ("idle", {"seconds": 3 * LIMIT_S}, LIMIT_S),
}


@pytest.mark.parametrize(
    "slow", [pytest.param(n, marks=() if n.startswith("late,") else SLOWLY) for n in IN_TIME]
)
def test_one_that_answers_in_time_is_heard(machine: Machine, internet: Internet, slow: str) -> None:
    tool, arguments, limit_s = IN_TIME[slow]
    with limited(machine, limit_s), machine.session("odd") as session:
        session.initialize()
        asked = session.request("tools/call", {"name": tool, "arguments": arguments})
        while (told := session.receive()).get("id") != asked:
            assert told["method"] == "notifications/message"
        assert told["result"]["content"][0]["text"] in {"late", "drop by drop", "at last"}
    assert internet.left() == []


def test_a_session_that_the_upstream_has_ended_is_begun_anew(
    machine: Machine, internet: Internet
) -> None:
    lost: tuple[Any, ...] = ("use", "refuse", {"status": 404}, {})
    came = remote.steps(machine, "odd", ("begin", {}), lost, ("use_until_gone", "echo", {}))
    # An answer that takes over 0.05 s is a stream, which has begun with 200.
    assert came[1]["status"] in {200, 404}
    assert "error" in came[1]["messages"][-1]
    # Those that came before its end was known were forwarded; they have no answer but an error.
    assert all("error" in answer["messages"][-1] for answer in came[2])
    assert came[2][-1]["status"] == 404
    again = remote.steps(machine, "odd", ("begin", {}), ("use", "echo", {"text": "2"}, {}))
    assert remote.text_of(again[1]) == "2"
    with machine.session("odd") as session:
        session.initialize()
        session.request("tools/call", {"name": "refuse", "arguments": {"status": 404}})
        status, why = session.close()
    assert status != 0
    assert "begin a new one" in why


def test_an_error_of_the_protocol_stays_what_it_is(machine: Machine, internet: Internet) -> None:
    answer = remote.steps(machine, "odd", ("call", "echo", {}), ("call", "unknown", {}))[1]
    assert answer["status"] == 404
    assert answer["messages"][-1]["error"] == {"code": -32601, "message": "Method not found"}


def test_without_its_proxy_nothing_leaves(machine: Machine, internet: Internet) -> None:
    unit = "mcpwrap-squid-proxy@1.service"
    assert machine.show(unit, "ActiveState")["ActiveState"] == "active"
    machine.announce(r"mcpwrap-squid")
    machine.as_root(f"systemctl stop {unit}")
    try:
        internet.forget()
        answer = remote.step(machine, "odd", "call", "echo", {})
        assert "proxy" in remote.text_of(answer)
        assert internet.packets() == []
    finally:
        machine.as_root(f"systemctl start {unit}")
    assert remote.text_of(remote.step(machine, "odd", "call", "echo", {"text": "back"})) == "back"


# ------------------------------------------------------------------------------- agents over pipes
def test_an_agent_over_pipes_reaches_it_too(machine: Machine, internet: Internet) -> None:
    with remote.far_server(machine, internet):
        said = machine.call_tool("far", "test_simple_text")
        assert said == "This is a simple text response for testing."
    with machine.session("odd") as session:
        session.initialize()
        call = {"name": "events", "arguments": {"n": 3}, "_meta": {"progressToken": 7}}
        request = session.request("tools/call", call)
        came = [session.receive() for _ in range(4)]
    assert [message["params"]["progress"] for message in came[:3]] == [0, 1, 2]
    assert came[3]["id"] == request
    assert "mcpwrap/" not in json.dumps(came)
    assert {tuple(given) for given in remote.values_of(internet, "authorization")} == {(BEARER,)}


def test_the_official_client_speaks_http_to_it(machine: Machine, internet: Internet) -> None:
    with remote.far_server(machine, internet):
        for mode in ("legacy", "2026-07-28"):
            url = remote.url(machine, "far")
            said = machine.agent("http_tour", url=url, mode=mode, tool="test_tool_with_progress")
            assert said["progress"] == [0, 50, 100]
            assert said["text"] == "Done."

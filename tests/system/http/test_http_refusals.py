"""Access to a listener: only its one agent, and only in the plainest HTTP."""

import json
from typing import Any

import pytest

from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.http import remote
from tests.system.http.remote import BODY, request, sent
from tests.system.support import approvers
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = remote.connected
pytestmark = ON_ONE_RELEASE

POLICY = """
version: 1
approval: {wait: 60s}
rules:
  - name: risks-are-approved
    server: both
    tool: echo
    when: [{arg: text, matches: risky}]
    action: allow_with_approval
"""


# ------------------------------------------------------------------------------- accounts
def test_an_address_is_of_one_account(machine: Machine, internet: Internet) -> None:
    for user in ("bob", "root"):
        came = remote.step(machine, "odd", "reach", user=user, of="alice")
        assert came in {"ConnectionRefusedError", "PermissionError"}, user
    host, port = remote.place(machine, "odd")
    look = f"(exec 3<>/dev/tcp/{host}/{port}) && echo there || echo no"
    for account in ("nobody", "mcpw-odd", "mcpwrap-gate", "mcpwrap-http", "mcpwrap-proxy"):
        run = f"systemd-run --quiet --wait --pipe --uid={account}"
        assert machine.as_root(f'{run} bash -c "{look}"').out == "no\n", account
    run = "systemd-run --quiet --wait --pipe --uid=alice"
    assert machine.as_root(f'{run} bash -c "{look}"').out == "there\n"
    assert remote.step(machine, "odd", "reach") == "there"  # the twin
    assert remote.step(machine, "both", "reach", user="bob") == "there"
    assert remote.place(machine, "both", "bob") != remote.place(machine, "both", "alice")


def test_nor_is_it_reached_from_a_sandbox_or_from_elsewhere(
    machine: Machine, internet: Internet
) -> None:
    """Of its own account, but without a UID of its own that identifies it: nothing changes."""
    host, port = remote.place(machine, "odd")
    look = f"(exec 3<>/dev/tcp/{host}/{port}) && echo there || echo no"
    inside = f'unshare --user --map-root-user bash -c "{look}"'
    assert machine.as_user("bob", inside).out == "no\n"
    listening = machine.look("ss -Hltn")
    assert f"{host}%lo:{port}" in listening
    assert f"0.0.0.0:{port}" not in listening
    assert f"*:{port}" not in listening


# ------------------------------------------------------------------------------- form
CHUNKS = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"


def chunked(*more: str, chunks: str = CHUNKS, **instead: str | None) -> str:
    """Return the same with a body in chunks."""
    codings: dict[str, Any] = {
        "content_length": None,
        "transfer_encoding": "chunked",
        **instead,
    }
    return request(*more, body=chunks, **codings)


LENGTH = len(BODY)
PERMITTED = {
    "plain": request(),
    "in chunks": chunked(),
    "its own origin": request(origin="http://{host}"),
    "typed by hand": request(sec_fetch_site="none"),
    "with a charset": request(content_type="application/json; charset=utf-8"),
    "at /mcp": request(line="POST /mcp HTTP/1.1"),
    "asked first": request(expect="100-continue"),
    "other case": request(line="POST / HTTP/1.1").replace("Content-Length", "cOnTeNt-LeNgTh"),
}
REFUSED: dict[str, tuple[str, set[int]]] = {
    # Another name for it: a page whose name was made to resolve to this address.
    "foreign host": (request(host="evil.example"), {421}),
    "foreign host, our port": (request(host="evil.example:52100"), {421}),
    "a name that leads here": (request(host="{address}.nip.io:52100"), {421}),
    "localhost": (request(host="localhost:52100"), {421}),
    "no port": (request(host="{address}"), {421}),
    "a dot behind": (request(host="{host}."), {421}),
    "user in host": (request(host="evil@{host}"), {400, 421}),
    "no host": (request(host=None), {400, 421}),
    "an empty host": (request(host=""), {400, 421}),
    "two hosts": (request("Host: evil.example"), {400, 421}),
    "the same host twice": (request("Host: {host}"), {400, 421}),
    # A page of another origin.
    "foreign origin": (request(origin="http://evil.example"), {403}),
    "null": (request(origin="null"), {403}),
    "an empty origin": (request(origin=""), {403}),
    "localhost as origin": (request(origin="http://localhost"), {403}),
    "another port": (request(origin="http://{address}:52101"), {403}),
    "origin by https": (request(origin="https://{host}"), {403}),
    "two origins": (request("Origin: http://evil.example", origin="http://{host}"), {400, 403}),
    "a page of another site": (request(sec_fetch_site="cross-site"), {403}),
    "a page of the same site": (request(sec_fetch_site="same-site"), {403}),
    "what a form sends": (request(content_type="text/plain"), {415}),
    "what a form uploads": (request(content_type="multipart/form-data; boundary=x"), {415}),
    "no type": (request(content_type=None), {415}),
    "asking for leave": (request(line="OPTIONS / HTTP/1.1", origin="http://evil.example"), {403}),
    "asking, without origin": (request(line="OPTIONS / HTTP/1.1"), {405}),
    # A body that two programs could interpret differently.
    "two lengths": (request(f"Content-Length: {LENGTH}"), {400}),
    "two other lengths": (request("Content-Length: 5"), {400}),
    "lengths in a list": (request(content_length=f"{LENGTH}, {LENGTH}"), {400}),
    "plus": (request(content_length=f"+{LENGTH}"), {400}),
    "minus": (request(content_length="-1"), {400}),
    "hexadecimal": (request(content_length=hex(LENGTH)), {400}),
    "underscore": (request(content_length="1_0"), {400}),
    "no number": (request(content_length=""), {400}),
    "an endless number": (request(content_length="9" * 40), {400, 413}),
    "a large number": (request(content_length=str(10**12)), {413}),
    "chunked and a length": (chunked(content_length=str(LENGTH)), {400}),
    "a length and chunked": (request("Transfer-Encoding: chunked"), {400}),
    "chunked twice": (chunked(transfer_encoding="chunked, chunked"), {400}),
    "two codings": (chunked("Transfer-Encoding: identity"), {400}),
    "another coding": (chunked(transfer_encoding="gzip, chunked"), {400, 501}),
    "an unknown coding": (chunked(transfer_encoding="xchunked"), {400, 501}),
    "chunked under another name": (chunked(transfer_encoding="\x0bchunked"), {400}),
    "a chunk with plus": (chunked(chunks=f"+{CHUNKS}"), {400}),
    "a chunk with 0x": (chunked(chunks=f"0x{CHUNKS}"), {400}),
    "a chunk that is longer": (chunked(chunks=CHUNKS.replace("\r\n0", "more\r\n0")), {400}),
    "chunks by LF": (chunked(chunks=CHUNKS.replace("\r\n", "\n")), {400}),
    "compressed": (request(content_encoding="gzip"), {415}),
    # A head that two programs could interpret differently.
    "bare LF": (request().replace("\r\n", "\n", 3), {400}),
    "bare CR": (request("X: a\rHost: evil.example"), {400}),
    "a folded line": (request("X: a\r\n b"), {400}),
    "blank before colon": (request("X : a"), {400}),
    "no name": (request(": a"), {400}),
    "no colon": (request("X"), {400}),
    "NUL": (request("X: a\0b"), {400}),
    "a name in ISO 8859": (request("\xfcber: a"), {400}),
    "HTTP/0.9": ("POST /\r\n\r\n", {400}),
    "HTTP/1.2": (request(line="POST / HTTP/1.2"), {400, 505}),
    "HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 405, 421, 505}),
    "an upgrade": (request(connection="upgrade", upgrade="websocket"), {400}),
    "an upgrade to HTTP/2": (request(connection="upgrade", upgrade="h2c"), {400}),
    "something expected": (request(expect="200-ok"), {417}),
    # A path that does not exist.
    "//evil": (request(line="POST //evil HTTP/1.1"), {404}),
    "//": (request(line="POST // HTTP/1.1"), {404}),
    "//evil/..": (request(line="POST //evil/../mcp HTTP/1.1"), {404}),
    "a parent": (request(line="POST /../ HTTP/1.1"), {404}),
    "percent": (request(line="POST /%6dcp HTTP/1.1"), {404}),
    "a slash behind": (request(line="POST /mcp/ HTTP/1.1"), {404}),
    "a query": (request(line="POST /?x HTTP/1.1"), {404}),
    "a URL": (request(line="POST http://{host}/ HTTP/1.1"), {400, 404}),
    "another URL": (request(line="POST http://evil.example/ HTTP/1.1"), {400, 404}),
    "CONNECT": (
        request(line="CONNECT evil.example:443 HTTP/1.1", body="", content_length=None),
        {400, 404, 405},
    ),
    "star": (request(line="OPTIONS * HTTP/1.1"), {400, 404, 405}),
    "TRACE": (request(line="TRACE / HTTP/1.1"), {400, 405}),
    "no method": (request(line="FOO / HTTP/1.1"), {400, 405}),
    # More of something than any client needs.
    "an endless header": (request(f"X: {'a' * 1_000_000}"), {400, 431}),
    "an endless name": (request(f"{'a' * 1_000_000}: a"), {400, 431}),
    "an endless line": (request(line=f"POST /{'a' * 1_000_000} HTTP/1.1"), {400, 414}),
    "many headers": (request(*(f"X-{n}: a" for n in range(10_000))), {400, 431}),
    # A head that disagrees with the body.
    "another method": (request(mcp_method="tools/call"), {400}),
    "no method in the head": (request(mcp_method=None), {400}),
    "two methods": (request("Mcp-Method: tools/call"), {400}),
    "another version": (request(mcp_protocol_version="2025-11-25"), {400, 404}),
    "two versions": (request("MCP-Protocol-Version: 2025-11-25"), {400}),
    "a name twice in the body": (
        request(body=(doubled := BODY.replace('"id"', '"method": "ping", "id"')),
                content_length=str(len(doubled))), {400},
    ),
}  # fmt: skip
# After these the connection is of no more use: the start of the next request is not known.
SMUGGLING = [
    name for name in REFUSED
    if REFUSED[name][1] == {400}
    and not any(word in name for word in ("method", "version", "body", "upgrade"))
]  # fmt: skip


def test_what_is_in_order_is_answered(machine: Machine, internet: Internet) -> None:
    remote.step(machine, "odd", "call", "echo", {})  # all is started
    internet.forget()
    came = sent(machine, *PERMITTED.values())
    for name, answer in zip(PERMITTED, came, strict=True):
        assert answer["statuses"] == [200], (name, answer)
        assert "access-control" not in answer["text"].lower()
        assert not answer["closed"], name
    assert len(internet.calls()) == len(PERMITTED)


@pytest.fixture(scope="module")
def refusals(stage: Connected) -> dict[str, Any]:
    """Send each of REFUSED; return the answers by name, and under "" the messages that passed."""
    stage.internet.forget()
    answers = sent(stage.machine, *(data for data, _ in REFUSED.values()))
    return {**dict(zip(REFUSED, answers, strict=True)), "": stage.internet.calls()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_refused(refusals: dict[str, Any], name: str) -> None:
    answer = refusals[name]
    assert {*answer["statuses"]} & REFUSED[name][1], answer
    assert len(answer["statuses"]) == 1, answer
    assert "access-control" not in answer["text"].lower()
    assert refusals[""] == []


def test_after_a_doubtful_end_nothing_more_is_read(machine: Machine, internet: Internet) -> None:
    second = request()
    data = [REFUSED[name][0] + second for name in SMUGGLING]
    for name, answer in zip(SMUGGLING, sent(machine, *data), strict=True):
        assert len(answer["statuses"]) == 1, (name, answer)
        assert answer["closed"], (name, answer)
    assert internet.calls() == []
    (both,) = sent(machine, request() + second)  # the twin
    assert both["statuses"] == [200, 200]


@only_in_test_all("it takes the 10 s that a head may take")
def test_a_head_that_does_not_end_is_not_waited_for(machine: Machine, internet: Internet) -> None:
    (answer,) = sent(machine, "POST / HTTP/1.1\r\nHost: {host}\r\nX: ", how="await_end")
    assert answer["statuses"] in ([], [408])  # and it has come: the connection was closed


@only_in_test_all("a flood of 300 connections")
def test_one_that_opens_many_connections_is_still_heard(
    machine: Machine, internet: Internet
) -> None:
    came = remote.steps(machine, "odd", ("crowd", 300), ("call", "echo", {"text": "hi"}))
    assert came[1]["status"] == 200


# ------------------------------------------------------------------------------- two agents
def test_a_session_is_of_the_agent_that_began_it(machine: Machine, internet: Internet) -> None:
    begun = remote.step(machine, "both", "begin", {})
    session = begun["headers"]["mcp-session-id"]
    of_bob = remote.steps(
        machine, "both", ("resume", session), ("use", "echo", {}, {}), ("hear", 0), ("end", {}),
        user="bob",
    )  # fmt: skip
    assert of_bob[1]["status"] == 404
    assert of_bob[2]["status"] == 404
    assert of_bob[3] == 404
    of_alice = remote.steps(
        machine, "both", ("resume", session), ("use", "echo", {"text": "mine"}, {}), ("end", {})
    )
    assert remote.text_of(of_alice[1]) == "mine"
    assert of_alice[2] == 200
    upstream = {one for values in remote.values_of(internet, "mcp-session-id") for one in values}
    assert len(upstream) == 1
    assert session not in upstream  # the upstream's own is not shown to others


def test_an_approval_is_for_the_agent_that_asked(machine: Machine, internet: Internet) -> None:
    approvers.put(machine, POLICY)
    alice, bob = machine.uid_of("alice"), machine.uid_of("bob")
    risky = ("call", "echo", {"text": "risky"})
    with (
        remote.beside(machine, "both", risky) as of_alice,
        remote.beside(machine, "both", risky, user="bob") as of_bob,
    ):
        waits = approvers.step(machine, "await_pending", by="carol", count=2)
        by_agent = {question["agent_uid"]: question for question in waits}
        assert set(by_agent) == {alice, bob}
        assert by_agent[alice]["digest"] != by_agent[bob]["digest"]
        for uid, verdict in ((alice, "approve"), (bob, "deny")):
            asked = {key: by_agent[uid][key] for key in ("id", "digest")}
            approvers.step(machine, "decide", by="carol", verdict=verdict, **asked)
        answers = [json.loads(agent.read_line())[0] for agent in (of_alice, of_bob)]
    assert remote.text_of(answers[0]) == "risky"
    assert remote.text_of(answers[1]).startswith("Refused by mcpwrap (denied by carol ")
    assert len(internet.calls()) == 1
    approvers.put(machine, "version: 1\n")


def test_the_audit_says_whose_call_it_was(machine: Machine, internet: Internet) -> None:
    for user in ("alice", "bob"):
        remote.step(machine, "both", "call", "echo", {"text": user}, user=user)
    records = approvers.decisions(machine, "--server both")
    calls = [record for record in records if record.get("target") == "echo"]
    uids = [machine.uid_of(user) for user in ("alice", "bob")]
    assert [record["uid"] for record in calls[-2:]] == uids

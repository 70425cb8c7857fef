"""Long and upgraded streams through egress, and the requests refused within one.

MCPWRAP_SSE_S: how many seconds the streams last that are held open beside the other tests; without
it 20 in `make test` and 60 in `make test-all`, and 600 is for a release.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.support import tiers
from tests.system.support.egress_recovery import booted
from tests.system.support.egress_sessions import finished, play
from tests.system.support.servers import CERTIFICATES as MACHINES_CAS
from tests.system.support.servers import GO_GET
from tests.system.support.tiers import on_each_release

STAGE = booted
LENGTH_S = os.environ.get("MCPWRAP_SSE_S")
SECONDS_BY_TIER = {tiers.FAST: 20, tiers.ALL: 60}
EVENT_EVERY_S = 0.5
DOWNLOAD_BYTES = 200_000_000
CANARY = "mcpw-canary-4f1d9c"
CA = "/var/lib/mcpwrap/ca"
LOGS = "/var/log/mcpwrap"


@dataclass(frozen=True)
class Streams:
    """Streams of events that are open, each in a session of its own."""

    length_s: int
    events: int
    sessions: dict[str, Session]
    restarts_of_squid: str  # when they were opened


@pytest.fixture(scope="module", autouse=True)
def streams(stage: Connected, request: pytest.FixtureRequest) -> Iterator[Streams]:
    """Open the long streams; they continue while the other tests run."""
    length_s = int(LENGTH_S or SECONDS_BY_TIER[request.config.option.tier])
    events = int(length_s / EVENT_EVERY_S)
    how = {
        "spliced": ("probe", "None"),
        "by the front": ("probe", "plainly('api.good.test')"),
        "opened": ("look", "None"),
    }
    with ExitStack() as open_sessions:
        found = {}
        for kind, (server, through) in how.items():
            session = open_sessions.enter_context(stage.machine.session(server))
            opened = f"Events({events}, {EVENT_EVERY_S}, plain={through})"
            begin(session, f"started.update(stream={opened})")
            found[kind] = session
        yield Streams(length_s, events, found, restarts_of_squid(stage.machine))


def begin(session: Session, code: str) -> None:
    """Begin a stream. Squid and the front may be restarting, because of the story before."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while (error := play(session, code)) is not None:
        assert time.monotonic() < give_up_at, error


def restarts_of_squid(machine: Machine) -> str:
    return machine.show("mcpwrap-squid-proxy@1", "NRestarts")["NRestarts"]


# ------------------------------------------------------------------ allowed traffic
def test_a_long_download_is_whole(machine: Machine) -> None:
    with machine.session("probe") as session:
        play(session, f"started.update(download=Background(download, {DOWNLOAD_BYTES}))")
        came, error = finished(session, "download", within_s=4 * pace.WAIT_S)
        assert (came, error) == ([200, 0, True], "")


@pytest.mark.parametrize("server", ["probe", "look"])
def test_a_websocket_passes(machine: Machine, internet: Internet, server: str) -> None:
    with machine.session(server) as session:
        assert play(session, "echoed('hello')") == [101, ["hello"] * 3]
    assert [request.path for request in internet.requests()] == ["/ws"]


def test_http_2_passes_where_nobody_opens_it(machine: Machine, internet: Internet) -> None:
    code = f"""
import subprocess
done = subprocess.run(["{GO_GET}", "https://h2.good.test/v1/x"], capture_output=True, text=True)
result = done.stdout.splitlines() + [done.stderr, done.returncode]
"""
    with machine.session("probe") as session:
        came = session.evaluate(code)
    assert came[0].split()[:2] == ["HTTP/2.0", "200"]
    assert [(r.version, r.host, r.path) for r in internet.requests()] == [
        ("2", "h2.good.test", "/v1/x")
    ]


# ------------------------------------------------------------------ what is refused inside
# What is asked inside the opened tunnel; the rule that refuses it; its twin, which passes.
REFUSED = {
    "a method": ("DELETE /v1/x", "no-request-rule", "GET /v1/x"),
    "a method that is none": ("PURGE /v1/x", "no-request-rule", "HEAD /v1/x"),
    "a path": ("GET /admin", "no-request-rule", "GET /v1/admin"),
    "the start of a path": ("GET /v1", "no-request-rule", "GET /v1/"),
    "..;/": ("GET /v1/..;/admin", "ambiguous-path", "GET /v1/...admin"),
    "..": ("GET /v1/../admin", "ambiguous-path", "GET /v1/a..b/admin"),
    ".. with an escape": ("GET /v1/%2e%2e/admin", "ambiguous-path", "GET /v1/%7eme"),
    "an escaped slash": ("GET /v1/..%2fadmin", "ambiguous-path", "GET /v1/x?to=..%2fadmin"),
    "a nested CONNECT": ("CONNECT api.good.test:443", "nested-connect", "GET /v1/x"),
    "ftp": ("GET ftp://api.good.test:443/v1/x", "plain-http", "GET https://api.good.test/v1/x"),
    "http": ("GET http://api.good.test:443/v1/x", "plain-http", "GET https://api.good.test/v1/x"),
    "another port": ("GET https://api.good.test:8443/v1/x", "port-not-allowed", "GET /v1/x"),
}


@pytest.mark.parametrize(("asked", "rule", "twin"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.usefixtures("machine")
@on_each_release("Squid 5 and 6 read a URL each by a parser of its own")
def test_what_no_rule_allows_is_refused_by_name(
    streams: Streams, internet: Internet, asked: str, rule: str, twin: str
) -> None:
    session = streams.sessions["opened"]
    method, _, target = asked.partition(" ")
    came = play(session, f"ask({target!r}, method={method!r})")
    print(came)
    assert came[0] == 403
    assert f'rule "{rule}", server "look"' in came[1]
    assert internet.requests() == []
    method, _, target = twin.partition(" ")
    came = play(session, f"ask({target!r}, method={method!r})")
    assert came[0] == 200
    assert len(internet.requests()) == 1


@pytest.mark.parametrize("asked", ["GET https://other.test/v1/x", "CONNECT other.test:443"])
def test_another_host_is_not_reached_by_an_open_tunnel(
    machine: Machine, internet: Internet, asked: str
) -> None:
    """Squid notices that it is not the host whose certificate was shown, and names no rule.

    503, because to Squid the host is not the expected one.
    """
    method, _, target = asked.partition(" ")
    with machine.session("look") as session:
        came = play(session, f"ask({target!r}, method={method!r})")
        assert came[0] in {403, 503}
        assert internet.requests() == []
        assert internet.hosts() <= {"api.good.test"}
        assert play(session, "status(path='/v1/x')") == 200  # the twin


def test_after_a_request_the_next_is_judged_too(machine: Machine, internet: Internet) -> None:
    """On one connection, sent at once."""
    with machine.session("look") as session:
        statuses = play(session, "ask_in_a_row(['/v1/a', '/admin', '/v1/b'])")
    print(statuses)
    assert statuses[:2] == ["200", "403"]
    assert "/admin" not in [request.path for request in internet.requests()]


# ------------------------------------------------------------------ access to keys and traffic
def test_the_key_of_an_authority_is_for_squid_alone(machine: Machine) -> None:
    accounts = [
        "alice", "mcpw-probe", "mcpw-look", "mcpw-other", "mcpwrap-gate", "mcpwrap-front", "65534",
    ]  # fmt: skip
    opens = "setpriv --reuid {0} --regid {0} --init-groups cat {1}"
    opens_without_name = opens.replace("--init-groups", "--clear-groups")
    keys = machine.look(f"find {CA} -name key.pem").split()
    assert {f"{CA}/look/key.pem", f"{CA}/other/key.pem"} < set(keys)
    cases = [(account, key) for account in accounts for key in keys]
    denied = ["cat: " + key + ": Permission denied" for _, key in cases]
    commands = [
        (opens_without_name if account == "65534" else opens).format(account, key)
        for account, key in cases
    ]
    tried = " || true; ".join(f"{command} >/dev/null" for command in commands)
    assert machine.as_root(f"{tried} || true").err.splitlines() == denied
    public = " ".join(key.replace("key", "ca") for key in keys)
    machine.as_user("alice", f"cat {public}")  # the twin: public files
    for reader, name in (("mcpwrap-intercept", "look"), ("mcpwrap-proxy", "_none")):
        text = machine.as_root(opens.format(reader, f"{CA}/{name}/key.pem")).out
        assert "PRIVATE KEY" in text  # the twin: its owner
    # The instance that opens no TLS does not have them either.
    machine.as_root(opens.format("mcpwrap-proxy", f"{CA}/look/key.pem"), status=1)


def test_no_copy_of_a_key_lies_elsewhere(machine: Machine) -> None:
    """Nor is one in what other accounts see of Squid: its arguments, its folders, its memory."""
    with machine.session("look") as session:
        assert play(session, "status(path='/v1/x')") == 200  # so it has signed a certificate
    machine.as_root(f"umask 077; sed -n 2p {CA}/look/key.pem > /root/line")
    places = "/etc /run /var /tmp /home /opt"
    found = machine.as_root(f"grep -rlFs --devices=skip -f /root/line {places} || true").out.split()
    # Squid's helper keeps its signed certificates, with the key, where only its own account can
    # read.
    of_squid = {file for file in found if file.startswith("/run/mcpwrap-intercept-1/certificates/")}
    assert set(found) - of_squid == {f"{CA}/look/key.pem"}
    mode = machine.look("stat -c '%a %U' /run/mcpwrap-intercept-1")
    assert mode == "700 mcpwrap-intercept\n"
    pid = machine.show("mcpwrap-squid-intercept@1", "MainPID")["MainPID"]
    for account in ("alice", "mcpw-look"):
        run = f"setpriv --reuid {account} --regid {account} --init-groups"
        for file in (f"/proc/{pid}/mem", f"/proc/{pid}/environ"):
            machine.as_root(f"{run} head -c 1 {file}", status=1)
        machine.as_root(f"{run} ls /run/mcpwrap-intercept-1", status=2)
    with machine.session("look") as session:
        for file in (f"{CA}/look/key.pem", f"{CA}/other/bundle.pem", f"{CA}/look/ca.pem"):
            assert play(session, f"open({file!r}).read()") == "OSError 2"
        assert f"{CA}/look/bundle.pem" == play(session, "os.environ['SSL_CERT_FILE']")
        assert "PRIVATE" not in str(play(session, "open(os.environ['SSL_CERT_FILE']).read()"))


def test_an_authority_is_trusted_by_its_own_server_alone(machine: Machine) -> None:
    own = {"probe": [], "look": ["mcpwrap look"], "other": ["mcpwrap other"]}
    for server, expected in own.items():
        with machine.session(server) as session:
            names = play(session, "authorities()")
            assert [name for name in names if "mcpwrap" in str(name)] == expected
            assert len(names) > 100  # it trusts the machine's certificates as well
            shown = play(session, "issuer()")
            assert (shown == f"mcpwrap {server}") is (server != "probe")
            files = "{v for v in os.environ.values() if v.endswith(('.pem', '.crt'))}"
            bundle = f"{CA}/{server}/bundle.pem" if expected else MACHINES_CAS
            assert play(session, f"sorted({files})") == [bundle]
    # In action: a client that trusts only the machine's certificates rejects Squid's.
    with machine.session("look") as session:
        by_machines = f"status_by_machines({MACHINES_CAS!r})"
        assert play(session, by_machines) == "SSLCertVerificationError"
        assert play(session, "status(path='/v1/x')") == 200  # the twin


# ------------------------------------------------------------------ logs
def notes_of(machine: Machine) -> list[dict[str, Any]]:
    """Return the complete lines of both logs."""
    texts = [machine.read(f"{LOGS}/{kind}/access-1.jsonl") for kind in ("proxy", "intercept")]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def brief(note: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(note[key]) for key in ("server", "method", "host", "verdict", "rule"))


def test_the_log_has_what_was_asked_and_no_query(machine: Machine, internet: Internet) -> None:
    said = {
        "probe": [f"/small?token={CANARY}"],
        "look": [
            f"/v1/x?token={CANARY}", f"/admin?token={CANARY}", f"/v1/..;/x?token={CANARY}",
            f"https://other.test/v1?token={CANARY}", f"ftp://api.good.test/v1?token={CANARY}",
        ],
    }  # fmt: skip
    for server, paths in said.items():
        with machine.session(server) as session:
            for path in paths:
                play(session, f"ask({path!r})")
            play(session, "status(host='leak.other.test')")
    paths_seen = [request.path for request in internet.requests()]
    assert paths_seen == [f"/small?token={CANARY}", f"/v1/x?token={CANARY}"]  # it did arrive
    # Squid writes a line when a connection has ended, which may be later than the response.
    wanted = {
        ("probe", "CONNECT", "api.good.test", "ok", "allowed"),
        ("probe", "CONNECT", "leak.other.test", "deny", "host-not-allowed"),
        ("look", "GET", "api.good.test", "ok", "allowed"),
        ("look", "GET", "api.good.test", "deny", "no-request-rule"),
        ("look", "GET", "api.good.test", "deny", "ambiguous-path"),
        ("look", "GET", "api.good.test", "deny", "plain-http"),
        ("look", "CONNECT", "leak.other.test", "deny", "host-not-allowed"),
    }
    give_up_at = time.monotonic() + pace.WAIT_S
    notes = notes_of(machine)
    while not wanted <= set(map(brief, notes)):
        assert time.monotonic() < give_up_at, notes
        notes = notes_of(machine)
    urls = {n["url"] for n in notes}
    print(sorted(urls))
    assert "https://api.good.test/v1/x" in {url.rstrip("?") for url in urls}
    assert not [url for url in urls if "?" in url.rstrip("?")]
    assert machine.look(f"grep -rlF {CANARY} {LOGS} || true") == ""
    said_by_us = machine.look("journalctl --sync; journalctl -b -o cat -u 'mcpwrap*'")
    assert "Squid of mcpwrap, intercept" in said_by_us
    assert CANARY not in said_by_us
    assert CANARY not in machine.as_root("mcpwrap egress look; mcpwrap egress probe").out
    for account in ("alice", "mcpw-look"):  # which must not read the requests of other accounts
        with pytest.raises(CommandFailedError):
            machine.as_root(
                f"setpriv --reuid {account} --regid {account} --clear-groups"
                " cat /var/log/mcpwrap/proxy/access-1.jsonl"
            )


# ------------------------------------------------------------------ traffic during all tests
@pytest.mark.timeout(max(600, 2 * int(LENGTH_S or 60)))
@pytest.mark.parametrize("kind", ["spliced", "by the front", "opened"])
def test_a_long_stream_of_events_is_whole(machine: Machine, streams: Streams, kind: str) -> None:
    """The last in the file: they have been open since its beginning."""
    session = streams.sessions[kind]
    said = finished(session, "stream", within_s=streams.length_s + pace.WAIT_S)
    print(kind, streams.length_s, "s:", said)
    assert (said["came"], said["in order"], said["error"]) == (streams.events, True, "")
    assert said["late_s"] < EVENT_EVERY_S  # otherwise each is kept back until the next
    assert restarts_of_squid(machine) == streams.restarts_of_squid

"""What passes through the way out, for how long, and what is refused in the middle of it.

MCPWRAP_SSE_S: how many seconds the streams last that are held open beside the other tests; 60 is
for every change, 600 for a release.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.system.bed.internet import Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.outgoing import a_server
from tests.system.servers import CERTIFICATES as MACHINES_CAS
from tests.system.servers import GO_GET

SSE_S = int(os.environ.get("MCPWRAP_SSE_S", "60"))
EVENT_EVERY_S = 0.5
EVENTS = int(SSE_S / EVENT_EVERY_S)
DOWNLOAD_BYTES = 200_000_000
# SHA-256 of the origin's pattern, repeated and cut to that many bytes.
EXPECTED_DIGEST = "hashlib.sha256((b'0123456789abcdef' * (size // 16 + 1))[:size]).hexdigest()"
CANARY = "mcpw-canary-4f1d9c"
CA = "/var/lib/mcpwrap/ca"
REQUESTS = (
    'requests = ["GET,HEAD api.good.test/v1/*", "GET api.good.test/ws", "GET api.good.test/sse"]'
)
SERVERS = (
    a_server("probe", 'egress = ["api.good.test", "h2.good.test"]')
    + a_server("look", f'egress = ["api.good.test"]\nintercept = true\n{REQUESTS}')
    + a_server("other", f'egress = ["api.good.test"]\nintercept = true\n{REQUESTS}')
)


CONNECTED = (Profile.LIMITS, SERVERS)


@pytest.fixture(scope="module", autouse=True)
def streams(connected: tuple[Machine, Internet]) -> Iterator[dict[str, Session]]:
    """Open the long streams; they go on while the other tests run."""
    plain = "socket.create_connection(('api.good.test', 443), 10)"
    how = {
        "spliced": ("probe", "None"),
        "by the front": ("probe", plain),
        "opened": ("look", "None"),
    }
    with ExitStack() as open_sessions:
        found = {}
        for kind, (server, through) in how.items():
            session = open_sessions.enter_context(connected[0].session(server))
            events = f"Events({EVENTS}, {EVENT_EVERY_S}, plain={through})"
            play(session, f"started.update(stream={events})")
            found[kind] = session
        yield found


def play(session: Session, code: str) -> object:
    """Evaluate an expression of the module of clients, in the sandbox."""
    return session.evaluate(f"from outgoing import *; result = {code}")


# ------------------------------------------------------------------ what passes
DOWNLOAD = f"""
from outgoing import *
def download():
    size, digest, left = {DOWNLOAD_BYTES}, hashlib.sha256(), {DOWNLOAD_BYTES}
    began = time.monotonic()
    with secured("api.good.test") as s:
        answer = say(s, f"GET /bytes/{{size}}", "api.good.test")
        status, headers = status_and_headers(answer)
        while left and (piece := answer.read(min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
    took_s = time.monotonic() - began
    expected = {EXPECTED_DIGEST}
    started["came"] = [status, left, digest.hexdigest() == expected, round(took_s, 1)]
started["download"] = threading.Thread(target=download, daemon=True)
started["download"].start()
"""


def test_a_long_download_is_whole(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate(DOWNLOAD)
        while play(session, "started['download'].join(10) or started['download'].is_alive()"):
            pass
        came = play(session, "started['came']")
        print(f"{DOWNLOAD_BYTES} bytes: {came}")
        assert isinstance(came, list)
        assert came[:3] == [200, 0, True]


WEBSOCKET = """
from outgoing import *
def echoed(text):
    upgrade = ("Connection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n")
    with secured("api.good.test") as s:
        answer = say(s, "GET /ws", "api.good.test", upgrade)
        status, _ = status_and_headers(answer)
        came = []
        for _ in range(3):  # RFC 6455: one masked frame of text each; what comes is not masked
            s.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
            came.append(answer.read(2 + len(text))[2:].decode())
        return [status, came]
result = echoed(b"hello")
"""


@pytest.mark.parametrize("server", ["probe", "look"])
def test_a_websocket_passes(machine: Machine, internet: Internet, server: str) -> None:
    with machine.session(server) as session:
        assert session.evaluate(WEBSOCKET) == [101, ["hello"] * 3]
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
def test_what_no_rule_allows_is_refused_by_name(
    machine: Machine, internet: Internet, asked: str, rule: str, twin: str
) -> None:
    method, _, target = asked.partition(" ")
    with machine.session("look") as session:
        came = play(session, f"ask({target!r}, method={method!r})")
        print(came)
        assert isinstance(came, list)
        assert came[0] == 403
        assert f'rule "{rule}", server "look"' in came[1]
        assert internet.requests() == []
        method, _, target = twin.partition(" ")
        came = play(session, f"ask({target!r}, method={method!r})")
        assert isinstance(came, list)
        assert came[0] == 200
    assert len(internet.requests()) == 1


@pytest.mark.parametrize("asked", ["GET https://other.test/v1/x", "CONNECT other.test:443"])
def test_another_host_is_not_reached_by_an_open_tunnel(
    machine: Machine, internet: Internet, asked: str
) -> None:
    """Squid sees by itself that it is not the host whose certificate was shown, and names no rule.

    503, because to Squid it is the host that is not who it should be.
    """
    method, _, target = asked.partition(" ")
    with machine.session("look") as session:
        came = play(session, f"ask({target!r}, method={method!r})")
        assert isinstance(came, list)
        assert came[0] in {403, 503}
        assert internet.requests() == []
        assert {c.sni for c in internet.connections()} <= {"api.good.test"}
        assert play(session, "status(path='/v1/x')") == 200  # the twin


def test_after_a_request_the_next_is_judged_too(machine: Machine, internet: Internet) -> None:
    """On one connection, sent at once."""
    code = """
from outgoing import *
paths = ["/v1/a", "/admin", "/v1/b"]
with secured("api.good.test") as s:
    for path in paths:
        closes = "Connection: close\\r\\n" if path == paths[-1] else ""
        answer = say(s, f"GET {path}", "api.good.test", closes)
    result = [answer[:3].decode() for answer in answer.read().split(b"HTTP/1.1 ")[1:]]
"""
    with machine.session("look") as session:
        statuses = session.evaluate(code)
    print(statuses)
    assert statuses[:2] == ["200", "403"]
    assert "/admin" not in [request.path for request in internet.requests()]


# ------------------------------------------------------------------ who can read what
def test_the_key_of_an_authority_is_for_squid_alone(machine: Machine) -> None:
    accounts = [
        "alice", "mcpw-probe", "mcpw-look", "mcpw-other", "mcpwrap-gate", "mcpwrap-front", "nobody",
    ]  # fmt: skip
    opens = "setpriv --reuid {0} --regid {0} --init-groups cat {1}"
    keys = machine.as_root(f"find {CA} -name key.pem").out.split()
    assert {f"{CA}/look/key.pem", f"{CA}/other/key.pem"} < set(keys)
    for key in keys:
        for account in accounts:
            argv = opens.format(account.replace("nobody", "65534"), key)
            argv = argv.replace("--init-groups", "--clear-groups") if account == "nobody" else argv
            assert "Permission denied" in machine.as_root(argv, status=1).err
        machine.as_user("alice", f"cat {key.replace('key', 'ca')}")  # the twin: what is public
    for reader, name in (("mcpwrap-intercept", "look"), ("mcpwrap-proxy", "_none")):
        text = machine.as_root(opens.format(reader, f"{CA}/{name}/key.pem")).out
        assert "PRIVATE KEY" in text  # the twin: whose it is
    # The instance that opens no TLS does not have them either.
    machine.as_root(opens.format("mcpwrap-proxy", f"{CA}/look/key.pem"), status=1)


def test_no_copy_of_a_key_lies_elsewhere(machine: Machine) -> None:
    """Nor is one in what other accounts see of Squid: its arguments, its folders, its memory."""
    with machine.session("look") as session:
        assert play(session, "status(path='/v1/x')") == 200  # so it has signed something
    machine.as_root(f"umask 077; sed -n 2p {CA}/look/key.pem > /root/line")
    places = "/etc /run /var /tmp /home /opt"
    found = machine.as_root(f"grep -rlFs --devices=skip -f /root/line {places} || true").out.split()
    # Squid's helper keeps what it has signed, with the key, where its account alone can look.
    of_squid = {file for file in found if file.startswith("/run/mcpwrap-intercept-1/certificates/")}
    assert set(found) - of_squid == {f"{CA}/look/key.pem"}
    mode = machine.as_root("stat -c '%a %U' /run/mcpwrap-intercept-1").out
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


ISSUER = "secured('api.good.test').getpeercert()['issuer'][-1][0][1]"
TRUSTS = "[dict(n[0] for n in c['subject']).get('commonName') for c in TRUSTED.get_ca_certs()]"


def test_an_authority_is_trusted_by_its_own_server_alone(machine: Machine) -> None:
    own = {"probe": [], "look": ["mcpwrap look"], "other": ["mcpwrap other"]}
    for server, expected in own.items():
        with machine.session(server) as session:
            names = play(session, TRUSTS)
            assert isinstance(names, list)
            assert [name for name in names if "mcpwrap" in str(name)] == expected
            assert len(names) > 100  # what the machine trusts, it trusts as well
            shown = play(session, ISSUER)
            assert (shown == f"mcpwrap {server}") is (server != "probe")
            files = "{v for v in os.environ.values() if v.endswith(('.pem', '.crt'))}"
            bundle = f"{CA}/{server}/bundle.pem" if expected else MACHINES_CAS
            assert play(session, f"sorted({files})") == [bundle]
    # In action: who trusts the machine's certificates alone does not believe what Squid shows.
    with machine.session("look") as session:
        machines = f"ssl.create_default_context(cafile={MACHINES_CAS!r})"
        assert play(session, f"status(context={machines})") == "SSLCertVerificationError"
        assert play(session, "status(path='/v1/x')") == 200  # the twin


# ------------------------------------------------------------------ what is noted
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
    notes = [
        json.loads(line)
        for instance in ("proxy", "intercept")
        for line in machine.read(f"/var/log/mcpwrap/{instance}/access-1.jsonl").splitlines()
    ]
    brief = {(n["server"], n["method"], n["host"], n["verdict"], n["rule"]) for n in notes}
    assert {
        ("probe", "CONNECT", "api.good.test", "ok", "allowed"),
        ("probe", "CONNECT", "leak.other.test", "deny", "host-not-allowed"),
        ("look", "GET", "api.good.test", "ok", "allowed"),
        ("look", "GET", "api.good.test", "deny", "no-request-rule"),
        ("look", "GET", "api.good.test", "deny", "ambiguous-path"),
        ("look", "GET", "api.good.test", "deny", "plain-http"),
    } <= brief
    urls = {n["url"] for n in notes}
    print(sorted(urls))
    assert "https://api.good.test/v1/x" in {url.rstrip("?") for url in urls}
    assert not [url for url in urls if "?" in url.rstrip("?")]
    assert machine.as_root(f"grep -rlF {CANARY} /var/log/mcpwrap || true").out == ""
    said_by_us = machine.as_root("journalctl -b -o cat -u 'mcpwrap*'").out
    assert "mcpwrap way out, intercept" in said_by_us
    assert CANARY not in said_by_us
    assert CANARY not in machine.as_root("mcpwrap egress look; mcpwrap egress probe").out
    for account in ("alice", "mcpw-look"):  # who may not read what others asked for
        with pytest.raises(CommandFailedError):
            machine.as_root(
                f"setpriv --reuid {account} --regid {account} --clear-groups"
                " cat /var/log/mcpwrap/proxy/access-1.jsonl"
            )


# ------------------------------------------------------------------ what goes on all the time
@pytest.mark.timeout(SSE_S + 120)
@pytest.mark.parametrize("kind", ["spliced", "by the front", "opened"])
def test_a_long_stream_of_events_is_whole(
    machine: Machine, streams: dict[str, Session], kind: str
) -> None:
    """The last in the file: they have been open since its beginning."""
    session = streams[kind]
    while play(session, "started['stream'].thread.join(10) or started['stream'].thread.is_alive()"):
        pass
    said = play(session, "started['stream'].said()")
    print(kind, SSE_S, "s:", said)
    assert isinstance(said, dict)
    assert (said["came"], said["in order"], said["error"]) == (EVENTS, True, "")
    assert said["latest_s"] < EVENT_EVERY_S  # none was kept back until the next
    assert machine.show("mcpwrap-squid-proxy@1", "NRestarts")["NRestarts"] == "0"

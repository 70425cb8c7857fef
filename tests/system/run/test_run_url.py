"""A user without root uses remote servers with `mcpwrap run --url`: rules, token, certificates."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.guest import search
from tests.system.http import remote
from tests.system.http.remote import ODD
from tests.system.run import trial as trials
from tests.system.run.trial import RUN
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = trials.booted
pytestmark = ON_ONE_RELEASE

TOKEN = f"tok-{secrets.token_hex(16)}"
POLICY = """
version: 1
rules:
  - {name: quiet, server: odd-good-test, tool: tell, action: block}
"""
RULED = "--policy /home/alice/url.yaml"
PORT = 18002


@pytest.fixture
def trial(machine: Machine) -> Iterator[Machine]:
    """Lend the machine to one story, after which no process of a session is left."""
    machine.write("/home/alice/url.yaml", POLICY)
    machine.write("/home/alice/token.sh", f"export MY_TOKEN={TOKEN}\n")
    yield machine
    machine.as_root("rm /home/alice/token.sh")
    assert machine.look_by("outliving", "await_end_of_all", "alice", pace.WAIT_S) == []


def using(machine: Machine, url: str, options: str = "--bearer-from MY_TOKEN") -> Session:
    """Hold a session with a remote server open, as an agent of alice that has her token."""
    return machine.session("url", command=f". ~/token.sh; exec {RUN} --url {url} {options}")


def called(session: Session, tool: str, **arguments: Any) -> str:
    """Return the text of a tool, or of the error in its place."""
    call = {"name": tool, "arguments": arguments}
    return remote.text_of({"messages": [session.answer_to(session.request("tools/call", call))]})


def test_a_remote_server_has_rules_and_the_token_reaches_it_alone(
    trial: Machine, internet: Internet
) -> None:
    with using(trial, ODD, f"{RULED} --bearer-from MY_TOKEN") as session:
        session.initialize()
        listed = session.answer_to(session.request("tools/list"))["result"]["tools"]
        assert "echo" in {tool["name"] for tool in listed}
        assert called(session, "echo", text="hi") == "hi"
        assert "quiet" in called(session, "tell")
        for to in ("https://other.test/odd/tell", f"{ODD}/tell"):
            assert "redirects are not followed" in called(session, "redirect", to=to)
        assert "--bearer-from" in called(session, "refuse")
        assert "--bearer-from" in called(session, "refuse", status=403)
        # Its client sees none of her files, and no other process finds the token in a file.
        sees = f"/proc/{trial.look('pgrep -n -u alice -f remote_program').strip()}/root"
        assert trial.look(f"ls {sees}/home/alice").split() == ["venv"]
        assert trial.look(f"ls -d {sees}/etc/ssl {sees}/etc/passwd 2>/dev/null || true") == (
            f"{sees}/etc/ssl\n"
        )
        found = trial.look(f"grep -rl {TOKEN} /home/alice /tmp /var/tmp /run || true")
        assert found == "/home/alice/token.sh\n"
        assert not search.holds(trial.look("cat /proc/[0-9]*/cmdline").encode(), TOKEN)
        _, stderr = session.close()
    assert TOKEN not in stderr
    calls = internet.calls()
    assert {call.path for call in calls} == {"/odd"}
    assert not [call for call in calls if '"tell"' in call.body]
    assert remote.values_of(internet, "authorization") == [[f"Bearer {TOKEN}"]] * len(calls)
    assert "other.test" not in {query.name for query in internet.queries()}
    internet.forget()
    with using(trial, "https://badcert.good.test/odd") as session:
        why = session.answer_to(session.request("initialize", {}))["error"]["message"]
    assert "is issued by an authority that this machine does not trust" in why
    assert internet.calls() == []


@only_in_test_all("the same client as in the package, with a header and certificate of one's own")
def test_an_own_header_and_an_own_authority_are_used(trial: Machine, internet: Internet) -> None:
    trial.as_root("install -D -o alice -m 600 /etc/ssl/certs/bed.pem /home/alice/ca/own.pem")
    trial.as_root("mv /etc/ssl/certs /etc/ssl/certs.off")
    try:
        own = "SSL_CERT_FILE=ca/own.pem"
        command = f". ~/token.sh; {own} exec {RUN} --url {ODD} --header-from X-Api-Key=MY_TOKEN"
        with trial.session("url", command=command) as session:
            session.initialize()
            assert called(session, "echo", text="hi") == "hi"
        assert [TOKEN] in remote.values_of(internet, "x-api-key")
        assert [] in remote.values_of(internet, "authorization")
        with using(trial, ODD) as session:  # the twin: without the file no authority is trusted
            answer = session.answer_to(session.request("initialize", {}))
            assert "does not trust" in answer["error"]["message"]
        missing = f"SSL_CERT_FILE=ca/none {RUN} --url {ODD} < /dev/null"
        told = trial.as_user("alice", missing, status=1).err.splitlines()
        assert told[-1].endswith("No such file or directory [E-REMOTE-CA-FILE]")
    finally:
        trial.as_root("mv /etc/ssl/certs.off /etc/ssl/certs; rm -r /home/alice/ca")


@only_in_test_all("real servers by the official client: the way is that of the story above")
def test_real_servers_work_in_both_eras(trial: Machine, internet: Internet) -> None:
    shell = f". ~/token.sh; exec {RUN} --url {remote.FAR} --bearer-from MY_TOKEN"
    how: dict[str, Any] = {"command": "/bin/sh", "args": ["-c", shell], "arguments": {}}
    with remote.far_server(trial, internet, TOKEN):
        assert "simple text" in trial.agent("call_tool", tool="test_simple_text", **how)
        with using(trial, remote.FAR, "") as session:
            why = session.answer_to(session.request("initialize", {}))["error"]["message"]
        assert "a login needs the installed package" in why
    # By HTTP the server needs a newer Node than Debian's: the one that the Inspector has here.
    node = "/opt/trial/bin/node"
    everything = f"{node} {NODE_MODULES}/server-everything/dist/index.js streamableHttp"
    trial.as_root(f"systemd-run -q --unit=everything --uid=bin -E PORT={PORT} {everything}")
    try:
        here = f"http://127.0.0.1:{PORT}/mcp"
        remote.await_answer(trial, here)
        argv = [*RUN.split(), "--url", here]
        seen = trial.agent("handshake_tour", command=argv[0], args=argv[1:])
    finally:
        trial.as_root("systemctl stop everything")
    assert (seen["version"], seen["echo"]) == ("2025-11-25", "Echo: hello")
    assert seen["progress"] == [[1, 3], [2, 3], [3, 3]]
    assert "say something" in seen["sampled"]
    assert internet_map.MCP in internet.hosts()

"""One act of each principal on one machine, and the account of its process. Runs there, as root.

The machine needs no network: egress ends at Squid, which refuses a host that is not listed.
"""

import hashlib
import json
import pwd
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.system.guest import root_terminal
from tests.system.guest.http_agent import Place, begin
from tests.system.guest.limits_story import Session as ProbeSession
from tests.system.guest.limits_story import sh
from tests.system.guest.stub_session import PATIENCE_S, StubSession

MIB = 1024**2
PROPOSED = """[mcp_servers.proposed]
command = "/usr/bin/true"
[mcp_servers.proposed.mcpwrap]
agents = ["alice"]
"""
# What a server does that obeys its proxy, and one that does not.
ASK_SQUID = (
    "from tests.system.guest import outgoing\n"
    "try: outgoing.tunnel('other.test')\n"
    "except outgoing.RefusedError as error: result = error.head.split()[1]"
)
ASK_FRONT = (
    "from tests.system.guest import outgoing\n"
    "result = outgoing.plainly('api.good.test').getpeername()[1]"
)
RUN = {"code": "import os, pwd\npwd.getpwuid(os.getuid()).pw_name"}


def await_value(what: Callable[[], str]) -> str:
    """Return the first value that is not empty; there is no event for it."""
    give_up_at_s = time.monotonic() + PATIENCE_S
    while not (value := what()):
        assert time.monotonic() < give_up_at_s, "nothing has come"
        time.sleep(0.1)
    return value


def of_unit(unit: str) -> str:
    """Return the account of the main process of a unit; "" while it has none."""
    pid = sh(f"systemctl show -P MainPID '{unit}'").strip()
    return account_of(pid) if pid != "0" else ""


def account_of(pid: str) -> str:
    return pwd.getpwuid(Path("/proc", pid).stat().st_uid).pw_name


def pids(account: str, pattern: str) -> list[str]:
    """Return the processes of an account that have this in their command line."""
    found = subprocess.run(["pgrep", "-u", account, "-f", pattern], stdout=-1, text=True)
    return found.stdout.split()


def confinement(pid: str) -> dict[str, str]:
    """Return what holds a process, as the kernel has it."""
    text = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":\t", 1) for line in text.splitlines())
    return {name: lines[name] for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}


# ------------------------------------------------------------------------------ principals
def sessions() -> dict[str, Any]:
    """Stub, gate, wrapper, server and hub: a call by the hub, and an account without access."""
    member = StubSession("mcpwrap-connect beta")
    member.ask("tools/list", {})  # the hub has its tools from now on
    hub = StubSession("mcpwrap-connect tools")
    await_value(lambda: "beta__echo" * ("beta__echo" in str(hub.ask("tools/list", {}))))
    answer = hub.call("beta__echo", word="by the hub")
    refused = subprocess.run(
        ["runuser", "-u", "mallory", "--", "mcpwrap-connect", "beta"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    server = pids("mcpw-beta", "hub.member beta")[0]
    seen = {
        "stub": [account_of(pid) for pid in pids("alice", "^/usr/bin/python3 .*mcpwrap-connect")],
        "gate": of_unit("mcpwrap-gate.service"),
        "wrapper": of_unit("mcpwrap@beta.service"),
        "server": [account_of(server), confinement(server)],
        "hub": [of_unit("mcpwrap@tools.service"), answer["result"]["content"][0]["text"]],
        "another account": [refused.returncode, refused.stderr.strip()],
    }
    return seen | {"ends": [each.end(PATIENCE_S) for each in (hub, member)]}


def egress() -> dict[str, Any]:
    """Squid, and the front: both refuse what is not on the server's list, and answer at all."""
    session = ProbeSession()
    seen = {
        "squid": [of_unit("mcpwrap-squid-proxy@1.service"), session.ask(ASK_SQUID)],
        "front": [session.ask(ASK_FRONT), of_unit("mcpwrap-front.service")],
    }
    return seen | {"end of probe": session.end(PATIENCE_S)}


def execution() -> dict[str, Any]:
    """Python server, worker and run slot."""
    session = StubSession("mcpwrap-connect python")
    result = session.call("run_python", **RUN)["result"]["structuredContent"]
    return {
        "python server": of_unit("mcpwrap@python.service"),
        "worker": of_unit("mcpwrap-worker.service"),
        "run slot": result["value"],
        "end of python": session.end(PATIENCE_S),
    }


def http() -> dict[str, Any]:
    """Listener of alice, and another account at her address."""
    uid = pwd.getpwnam("alice").pw_uid
    address = json.loads(Path(f"/var/lib/mcpwrap/http/beta.{uid}.json").read_text())["address"]
    ask = f"from tests.system.guest import principals_story as p; p.hold_http({address!r})"
    seen = []
    for user in ("alice", "mallory"):
        argv = ["runuser", "-u", user, "--", "env", "PYTHONPATH=/opt/bed", "python3", "-Bc", ask]
        seen.append(subprocess.run(argv, stdout=-1, text=True, check=True).stdout.strip())
    return {"listener": [of_unit(f"mcpwrap-http@beta.{uid}.service"), *seen]}


def hold_http(address: str) -> None:
    """Open a session at a listener; print the status, or the error of the connection."""
    try:
        print(begin(Place(address, 52100, PATIENCE_S), {})["status"])
    except OSError as error:
        print(type(error).__name__)


class _Remote(BaseHTTPRequestHandler):
    """Remote server that answers a handshake."""

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = {"protocolVersion": "2025-06-18", "capabilities": {}}
        result |= {"serverInfo": {"name": "remote", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": wanted.get("id"), "result": result}
        data = json.dumps(body).encode() if "id" in wanted else b""
        self.send_response(200 if data else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def serve_remote() -> None:
    """Serve until the process ends, and print the port."""
    server = HTTPServer(("127.0.0.1", 0), _Remote)
    print(server.server_port, flush=True)
    server.serve_forever()


def remote_client() -> dict[str, Any]:
    """Client of a remote server, in the sandbox of `mcpwrap run`."""
    serve = "from tests.system.guest import principals_story as p; p.serve_remote()"
    argv = ["env", "PYTHONPATH=/opt/bed", "python3", "-Bc", serve]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as remote:
        assert remote.stdout
        port = remote.stdout.readline().strip()
        session = StubSession(f"mcpwrap run --no-approver --url http://127.0.0.1:{port}/mcp")
        [client] = pids("alice", "remote_program")
        home = sorted(path.name for path in Path(f"/proc/{client}/root/home").glob("*/*"))
        name = session.opened["result"]["serverInfo"]["name"]
        status = session.end(PATIENCE_S)[0]
        remote.terminate()
    return {"client of a remote server": [name, home, status]}


def page_and_webhook() -> dict[str, Any]:
    """Page, which asks for a password, and webhook, which has nothing to post."""
    request = urllib.request.Request("http://127.0.0.1:52080/")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            status, text = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    return {
        "page": [of_unit("mcpwrap-web.service"), status, "password" in text],
        "webhook": await_value(lambda: of_unit("mcpwrap-webhook.service")),
    }


def next_version() -> dict[str, Any]:
    """Next version of a server, whose definitions are the same."""
    given = "python3 -m tests.system.guest.hub.member beta"
    out = sh(f"mcpwrap tools diff beta --next {given}")
    lines = out.splitlines()
    return {"next version": [lines[0], lines[-1]]}


def proposal() -> dict[str, Any]:
    """Proposal reader: root takes over the server that it was shown."""
    file = Path("/home/alice/proposal.toml")
    file.write_text(PROPOSED)
    digest = hashlib.sha256(PROPOSED.encode()).hexdigest()
    plan = {"command": f"mcpwrap accept {digest} {file}", "given": "", "early": ""}
    plan |= {"question": "Type yes or no: ", "answer": "yes\n", "meanwhile": ""}
    status, shown, _, err = root_terminal.answer(plan)
    assert status == 0, err
    return {"proposal reader": "[mcp_servers.proposed]" in shown}


def operator() -> dict[str, Any]:
    """Operator and root's programs: a secret reaches its server, and nothing is left to apply."""
    sh("echo s3cr3t-of-the-story | mcpwrap secret set probe TOKEN")
    sh("mcpwrap restart probe")
    session = ProbeSession()
    told = session.ask("import os; result = len(os.environ['TOKEN'])")
    [listed] = json.loads(sh("mcpwrap status probe --json"))
    session.end(PATIENCE_S)
    audit = sh("mcpwrap audit verify")
    return {
        "root's programs": [told, sh("mcpwrap apply")],
        "operator": [listed["name"], listed["memory_bytes"] > MIB, ": untouched" in audit],
    }


def play() -> dict[str, Any]:
    """Let each principal act once; return what was seen of it."""
    sh("useradd -m -s /bin/bash -G mcpwrap alice; useradd -m -s /bin/bash mallory")
    sh("mcpwrap apply; systemctl enable --now mcpwrap-web.socket")
    seen: dict[str, Any] = {}
    acts = (operator, sessions, egress, execution, http, remote_client, page_and_webhook)
    for act in (*acts, next_version, proposal):
        seen |= act()
    return seen

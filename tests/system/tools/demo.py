"""`make demo`: the main job end to end on a machine of the bed, and a report of each proof.

RUNS AS ROOT on the host, which it leaves as it was. `make demo RECORD=1` also writes the report to
docs/demo.svg.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.shared import pace
from tests.system.bed import installed, package, roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support.servers import NODE_MODULES, SQLITE_SERVER, THREE_SERVERS
from tests.system.tools import recording
from tests.system.tools.recording import Fact, Line, Text

SUITE = "bookworm"
PROJECT = "/home/alice/project"
SECRET = "correct-horse-battery-staple"
POLICY = """
version: 1
rules:
  - name: no-unbounded-select
    tool: read_query
    when: [{arg: query, sql: unbounded_select}]
    action: block
    message: Add a LIMIT.
  - name: no-delete-of-everything
    tool: write_query
    when: [{arg: query, sql: delete_without_where}]
    action: block
"""
SERVERS = f"""{THREE_SERVERS}{SQLITE_SERVER}
[mcp_servers.token]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
env = {{ API_KEY = "${{API_KEY}}" }}
[mcp_servers.token.mcpwrap]
agents = ["alice"]

[mcp_servers.files]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-filesystem/dist/index.js", "{PROJECT}"]
[mcp_servers.files.mcpwrap]
agents = ["alice"]
workspace = ["{PROJECT}:rw"]

[mcp_servers.fetch]
command = "/opt/mcp/pypi/bin/mcp-server-fetch"
args = ["--ignore-robots-txt"]
[mcp_servers.fetch.mcpwrap]
egress = ["api.good.test"]
transparent = false
"""
LOOK_YOURSELF = """
Try the same on your own Debian 12 or 13
  make deb
  apt install ./dist/mcpwrap_*+deb12_*.deb          # +deb13 on Debian 13
  editor /etc/mcpwrap/config.toml                   # man mcpwrap.toml; examples/config.toml
  usermod -aG mcpwrap YOU                           # then log in again
  mcpwrap plan                                      # print the changes
  mcpwrap apply                                     # make them
  mcpwrap status
and in your agent's configuration: "command": "mcpwrap-connect", "args": ["NAME"]
To remove it: apt purge mcpwrap
"""


class Report:
    """Report of the proofs, on the terminal and as lines for a recording."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, *lines: Line) -> None:
        """Print lines now, and keep them."""
        self.lines += lines
        for line in lines:
            say(str(line))


def say(text: str = "") -> None:
    """Print a line now."""
    print(text, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print a step of the preparation, and how long it took."""
    print(f"  {what} …", end="", flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - start:.1f} s", flush=True)


def boot() -> Machine:
    """Build what is missing, and boot."""
    with step("Debian root with real MCP servers (built once, then cached)"):
        roots.ensure(roots.run_root(SUITE))
    with step("the .deb, built inside Debian (cached while the tree is unchanged)"):
        roots.ensure(roots.build_root(SUITE))
        package.build(SUITE)
    with step("boot a machine: systemd, nftables, a network of its own"):
        return installed.bare_machine(SUITE)


def prepare(machine: Machine) -> None:
    """Install by apt, and configure."""
    with step("apt install ./mcpwrap.deb"):
        machine.as_root("apt-get install -y /root/mcpwrap.deb")
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        make_project(machine)
    with step("list seven servers in /etc/mcpwrap/config.toml; mcpwrap apply"):
        machine.configure(SERVERS)
        machine.apply()
    with step("mcpwrap secret set token API_KEY"):
        machine.as_root("mcpwrap secret set token API_KEY", stdin=SECRET)


def make_project(machine: Machine) -> None:
    """Make a project of alice's, in a home that no other account can enter."""
    machine.as_user(
        "alice",
        f"chmod 700 .; mkdir {PROJECT}; cd {PROJECT}; git init -q; echo hello > readme.txt; "
        "echo private > ../diary.txt; printf 'true' > .git/hooks/pre-commit",
    )


def it_works(machine: Machine) -> Iterator[tuple[str, str]]:
    """Use each server as alice's agent, with the official client."""
    tour = machine.agent("handshake_tour", server="everything")
    yield (
        "server-everything (npm) answers its agent",
        f"{tour['echo']!r}, protocol {tour['version']}",
    )
    entity = {"name": "demo", "entityType": "t", "observations": ["lasting"]}
    machine.call_tool("memory", "create_entities", {"entities": [entity]})
    graph = json.loads(machine.call_tool("memory", "read_graph"))
    yield (
        "server-memory (npm) keeps data across sessions",
        graph["entities"][0]["observations"][0],
    )
    tour = machine.agent("stateless_tour", server="time")
    noon = json.loads(tour["noon"])["target"]["datetime"]
    yield (
        "mcp-server-time (PyPI) answers",
        f"noon is {noon[11:16]} in Tokyo, protocol {tour['version']}",
    )


def it_is_isolated(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show the boundary between the agent and the server."""
    env = json.loads(machine.call_tool("everything", "get-env"))
    yield "the server's whole environment", " ".join(sorted(env))
    with machine.session("everything") as session:
        session.initialize()
        pid = machine.pids("everything")[0]
        owner = machine.look(f"ps -o user:20=,uid= -p {pid}").split()
        yield (
            "the server runs as",
            f"{owner[0]}, UID {owner[1]}; alice is {machine.uid_of('alice')}",
        )
        yield "alice reads its environment", refused(machine, "alice", f"cat /proc/{pid}/environ")
        yield "alice kills it", refused(machine, "alice", f"kill -9 {pid}")
    yield (
        "mallory starts alice's server-memory",
        refused(machine, "mallory", "mcpwrap-connect memory", 77),
    )
    uid = machine.uid_of("mcpw-everything")
    probe = f"import socket; socket.create_connection(('127.0.0.1', 4000), {pace.WAIT_S})"
    as_server = f'setpriv --reuid {uid} --clear-groups python3 -c "{probe}"'
    serve = "import socket; s = socket.create_server(('', 4000)); print('up', flush=True); input()"
    with machine.session("", user="root", command=f'exec python3 -c "{serve}"') as listener:
        listener.read_line()
        machine.as_root(f'python3 -c "{probe}"')
        yield "root connects to a port of this machine", "connected, so the probe works"
        yield "the same probe as the server's account", refused(machine, "root", as_server)
        listener.send({})
    score = json.loads(machine.as_root("mcpwrap score everything --json").out)[0]
    yield "systemd-analyze security (0 best, 10 worst)", f"{score['exposure']} {score['verdict']}"


def it_keeps_secrets(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show that the server has the value, and no other account."""
    with machine.session("token") as session:
        session.initialize()
        pid = machine.pids("token")[0]
        environment = machine.read(f"/proc/{pid}/environ")
        yield (
            "the server's own API_KEY, as root sees it",
            expected("the value", SECRET in environment),
        )
        yield "alice reads its environment", refused(machine, "alice", f"cat /proc/{pid}/environ")
    said = json.loads(machine.call_tool("token", "get-env"))["API_KEY"]
    yield "the server sends it to its agent as", expected(said, said != SECRET)
    search = "grep -rlsFf /dev/stdin /etc /var /run 2>/dev/null; true"
    found = machine.as_user("alice", search, stdin=SECRET).out
    yield "alice searches /etc, /var and /run for it", expected(found or "nothing", not found)


def it_reaches(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show which hosts a server with an allowlist reaches."""
    with Internet(machine) as internet:
        url = "https://{}/small"
        said = machine.call_tool("fetch", "fetch", {"url": url.format("api.good.test")})
        yield (
            "mcp-server-fetch (PyPI) fetches from a listed host",
            expected(said[-56:], "true" in said),
        )
        seen = internet.hosts()
        yield (
            "hosts that received a connection",
            expected(", ".join(seen), seen == {"api.good.test"}),
        )
        internet.forget()
        said = machine.call_tool("fetch", "fetch", {"url": url.format("other.test")})
        yield (
            "it fetches from a host that is not listed",
            expected(said.rpartition(": ")[2], "403" in said),
        )
        packets, queries = internet.packets(), internet.queries()
        yield (
            "packets and DNS queries that left for that host",
            expected("none", not packets + queries),
        )
        rows = json.loads(machine.as_root("mcpwrap egress fetch --json").out)
        why = [row["why"] for row in rows if row["is_refused"]]
        yield "reason in `mcpwrap egress fetch`", expected(", ".join(why), bool(why))


def it_is_judged(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show which calls a policy refuses."""
    count = {"query": "SELECT count(*) AS n FROM t"}
    machine.call_tool("sqlite", "create_table", {"query": "CREATE TABLE t (id INTEGER)"})
    machine.call_tool("sqlite", "write_query", {"query": "INSERT INTO t VALUES (1), (2), (3)"})
    machine.write("/etc/mcpwrap/policy.yaml", POLICY)
    machine.as_root("systemctl reload mcpwrap-gate")
    said = machine.as_user("alice", "mcpwrap policy check").out.strip().splitlines()[-1]
    yield "mcpwrap policy check", expected(said, said.endswith("the gate uses this policy"))
    for query in ("SELECT/**/* FROM t -- LIMIT 5", "DELETE FROM t WHERE 1=1"):
        tool = "read_query" if query.startswith("SELECT") else "write_query"
        said = machine.call_tool("sqlite", tool, {"query": query})
        yield f"sqlite: {query}", expected(said, "Refused" in said)
    said = machine.call_tool("sqlite", "read_query", {"query": "SELECT id FROM t LIMIT 2"})
    yield "sqlite: SELECT id FROM t LIMIT 2", expected(said, said == "[{'id': 1}, {'id': 2}]")
    said = machine.call_tool("sqlite", "read_query", count)
    yield "sqlite: count of its 3 rows after that", expected(said, said == "[{'n': 3}]")


def it_is_written_down(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show the audit records of these calls, and that an edit is detected."""
    show = "mcpwrap audit show --server sqlite --decision blocked --json"
    records = [json.loads(line) for line in machine.as_root(show).out.splitlines()]
    tools = ", ".join(f"{record['target']} by {record['rule']}" for record in records)
    yield "calls that `mcpwrap audit show` has as blocked", expected(tools, len(records) == 2)
    said = machine.as_root("mcpwrap audit verify").out.strip().splitlines()[-1]
    yield "mcpwrap audit verify", expected(said, "untouched" in said)
    machine.as_root(
        "sed -i '1s/allowed/blocked/' $(ls /var/log/mcpwrap/audit/*/1-1.jsonl | tail -1)"
    )
    said = machine.as_root("mcpwrap audit verify", status=1).out.strip().splitlines()[0]
    yield (
        "mcpwrap audit verify, after one word is changed",
        expected(said, "is not record 0" in said),
    )


def it_sees(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show which of alice's files a server reaches."""
    read = {"path": f"{PROJECT}/readme.txt"}
    yield (
        "server-filesystem (npm) reads her project",
        machine.call_tool("files", "read_text_file", read).strip(),
    )
    machine.call_tool("files", "write_file", {"path": f"{PROJECT}/new.txt", "content": "new"})
    owner = machine.look(f"stat -c %U:%G {PROJECT}/new.txt").strip()
    yield "owner of a file that it writes", expected(owner, owner == "alice:alice")
    main_pid = machine.show("mcpwrap@files", "MainPID")["MainPID"]
    seen = machine.look(f"nsenter -t {main_pid} -m ls -A /home/alice")
    yield "her home, as the server sees it", expected(seen.strip(), seen == "project\n")
    hook = {"path": f"{PROJECT}/.git/hooks/pre-commit", "content": "curl evil"}
    said = machine.call_tool("files", "write_file", hook)
    kept = machine.as_user("alice", f"cat {hook['path']}").out == "true"
    yield "it overwrites her git hook", expected(said.splitlines()[0][:60], kept)


def expected(seen: str, is_so: bool) -> str:  # noqa: FBT001 - what was seen, and if it is right
    """Return what was seen.

    Raises:
        SystemExit: it is not as promised.
    """
    if not is_so:
        raise SystemExit(f"\nNOT as promised: {seen}")
    return " ".join(seen.split())


def refused(machine: Machine, user: str, command: str, status: int = 1) -> str:
    """Run a command that must fail with this status, and return the reason.

    Raises:
        SystemExit: the command succeeded, or failed with another status.
    """
    try:
        done = machine.as_user(user, command, status=status)
    except CommandFailedError as error:
        raise SystemExit(f"\nNOT as promised: {error}") from error
    return "refused: " + done.err.strip().splitlines()[-1].split(": ", 1)[-1][:80]


Proof = Callable[[Machine], Iterator[tuple[str, str]]]
PROOFS: dict[str, Proof] = {
    "Use: alice's agent uses the servers as before": it_works,
    "Isolation: what agent and server cannot do": it_is_isolated,
    "Secrets: only the server has the value": it_keeps_secrets,
    "Workspace: the server sees her project, and nothing else of her home": it_sees,
    "Policy: the gate judges every message": it_is_judged,
    "Audit: each decision is recorded, and an edit is detected": it_is_written_down,
    "Egress: the server reaches the listed hosts, and no others": it_reaches,
}


def prove(machine: Machine, report: Report) -> None:
    """Report each proof as soon as it is made."""
    for title, facts in PROOFS.items():
        report.add(Text(), Text(title, is_title=True))
        for what, seen in facts(machine):
            report.add(Fact(what, seen))


def main(argv: list[str]) -> int:
    """Run the demo; exit status 0 if everything was as promised."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the report as SVG too")
    options = parser.parse_args(argv)
    roots.need_root("make demo")
    start = time.monotonic()
    report = Report()
    report.add(Text("mcpwrap demo: real MCP servers, each under its own account", is_title=True))
    with boot() as machine:
        prepare(machine)
        prove(machine, report)
        say("\nmcpwrap status, as any account sees it")
        say(machine.as_user("alice", "mcpwrap status").out.rstrip())
    took_s = time.monotonic() - start
    report.add(Text(), Text(f"All as promised, in {took_s:.0f} s. The machine is removed."))
    say(LOOK_YOURSELF.rstrip())
    if options.record:
        options.record.write_text(recording.svg("make demo", report.lines))
        say(f"\n{options.record}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

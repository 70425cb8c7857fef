"""`make demo`: the main job end to end on a machine of the bed, and a report of each proof.

RUNS AS ROOT on the host, which it leaves as it was.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.shared import pace
from tests.system.bed import installed, package, roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support.servers import NODE_MODULES, SQLITE_SERVER, THREE_SERVERS

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
See it yourself: the same on your own Debian 12 or 13
  make deb
  apt install ./dist/mcpwrap_*+deb12_*.deb          # +deb13 on Debian 13
  editor /etc/mcpwrap/config.toml                   # man mcpwrap.toml; examples/config.toml
  usermod -aG mcpwrap YOU                           # then log in again
  mcpwrap plan                                      # what would be done
  mcpwrap apply                                     # do it
  mcpwrap status
and in your agent's configuration: "command": "mcpwrap-connect", "args": ["NAME"]
To take it off again: apt purge mcpwrap
"""


def say(text: str = "") -> None:
    """Print a line now."""
    print(text, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    print(f"  {what} …", end="", flush=True)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - start:.1f} s", flush=True)


def boot() -> Machine:
    """Build what is not there yet, and boot."""
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
    """Give alice a project, in a home that is hers alone."""
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
        "server-memory (npm) remembers in a later session",
        graph["entities"][0]["observations"][0],
    )
    tour = machine.agent("stateless_tour", server="time")
    noon = json.loads(tour["noon"])["target"]["datetime"]
    yield (
        "mcp-server-time (PyPI) answers",
        f"noon is {noon[11:16]} in Tokyo, protocol {tour['version']}",
    )


def it_is_apart(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show what stands between the agent and the server."""
    env = json.loads(machine.call_tool("everything", "get-env"))
    yield "the server's environment, whole", " ".join(sorted(env))
    with machine.session("everything") as session:
        session.initialize()
        pid = machine.pids("everything")[0]
        owner = machine.look(f"ps -o user:20=,uid= -p {pid}").split()
        yield "it runs as", f"{owner[0]}, UID {owner[1]}; alice is {machine.uid_of('alice')}"
        yield "alice reads its environment", refused(machine, "alice", f"cat /proc/{pid}/environ")
        yield "alice kills it", refused(machine, "alice", f"kill -9 {pid}")
    yield "mallory uses alice's memory", refused(machine, "mallory", "mcpwrap-connect memory", 77)
    uid = machine.uid_of("mcpw-everything")
    probe = f"import socket; socket.create_connection(('127.0.0.1', 4000), {pace.WAIT_S})"
    as_server = f'setpriv --reuid {uid} --clear-groups python3 -c "{probe}"'
    serve = "import socket; s = socket.create_server(('', 4000)); print('up', flush=True); input()"
    with machine.session("", user="root", command=f'exec python3 -c "{serve}"') as listener:
        listener.read_line()
        machine.as_root(f'python3 -c "{probe}"')
        yield "root reaches a port of this machine", "yes, so the probe works"
        yield "the same probe as the server's account", refused(machine, "root", as_server)
        listener.send({})
    score = json.loads(machine.as_root("mcpwrap score everything --json").out)[0]
    yield "systemd-analyze security (0 best, 10 worst)", f"{score['exposure']} {score['verdict']}"


def it_keeps_secrets(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show that the server has the value, and nobody else."""
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
    yield "what the server tells its agent of it", expected(said, said != SECRET)
    search = "grep -rlsFf /dev/stdin /etc /var /run 2>/dev/null; true"
    found = machine.as_user("alice", search, stdin=SECRET).out
    yield "alice searches /etc, /var and /run for it", expected(found or "nothing", not found)


def it_reaches(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show what a server with an allowlist reaches."""
    with Internet(machine) as internet:
        url = "https://{}/small"
        said = machine.call_tool("fetch", "fetch", {"url": url.format("api.good.test")})
        yield "mcp-server-fetch (PyPI) gets a listed host", expected(said[-56:], "true" in said)
        seen = internet.hosts()
        yield "who was connected to", expected(", ".join(seen), seen == {"api.good.test"})
        internet.forget()
        said = machine.call_tool("fetch", "fetch", {"url": url.format("other.test")})
        yield "it gets a host that is not listed", expected(said.rpartition(": ")[2], "403" in said)
        packets, queries = internet.packets(), internet.queries()
        yield "packets and DNS questions that left for it", expected("none", not packets + queries)
        rows = json.loads(machine.as_root("mcpwrap egress fetch --json").out)
        why = [row["why"] for row in rows if row["is_refused"]]
        yield "mcpwrap egress fetch says why", expected(", ".join(why), bool(why))


def it_is_judged(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show what a policy keeps from a server, and how it changes."""
    count = {"query": "SELECT count(*) AS n FROM t"}
    machine.call_tool("sqlite", "create_table", {"query": "CREATE TABLE t (id INTEGER)"})
    machine.call_tool("sqlite", "write_query", {"query": "INSERT INTO t VALUES (1), (2), (3)"})
    machine.write("/etc/mcpwrap/policy.yaml", POLICY)
    machine.as_root("systemctl reload mcpwrap-gate")
    said = machine.as_user("alice", "mcpwrap policy check").out.strip()
    yield "mcpwrap policy check", expected(said, said.endswith("the gate uses this policy"))
    for query in ("SELECT/**/* FROM t -- LIMIT 5", "DELETE FROM t WHERE 1=1"):
        tool = "read_query" if query.startswith("SELECT") else "write_query"
        said = machine.call_tool("sqlite", tool, {"query": query})
        yield f"mcp-server-sqlite (PyPI) is asked to {query}", expected(said, "Refused" in said)
    said = machine.call_tool("sqlite", "read_query", {"query": "SELECT id FROM t LIMIT 2"})
    yield "a SELECT with a LIMIT", expected(said, said == "[{'id': 1}, {'id': 2}]")
    said = machine.call_tool("sqlite", "read_query", count)
    yield "what is left of its 3 rows", expected(said, said == "[{'n': 3}]")


def it_is_written_down(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show what the audit has of that, and that nobody changes it unseen."""
    show = "mcpwrap audit show --server sqlite --decision blocked --json"
    records = [json.loads(line) for line in machine.as_root(show).out.splitlines()]
    tools = ", ".join(f"{record['target']} by {record['rule']}" for record in records)
    yield "mcpwrap audit show: refused", expected(tools, len(records) == 2)
    said = machine.as_root("mcpwrap audit verify").out.strip().splitlines()[-1]
    yield "mcpwrap audit verify", expected(said, "untouched" in said)
    machine.as_root(
        "sed -i '1s/allowed/blocked/' $(ls /var/log/mcpwrap/audit/*/1-1.jsonl | tail -1)"
    )
    said = machine.as_root("mcpwrap audit verify", status=1).out.strip().splitlines()[0]
    yield "after one word of it was changed", expected(said, "is not record 0" in said)


def it_sees(machine: Machine) -> Iterator[tuple[str, str]]:
    """Show which files of alice's a server has."""
    read = {"path": f"{PROJECT}/readme.txt"}
    yield (
        "server-filesystem (npm) reads her project",
        machine.call_tool("files", "read_text_file", read).strip(),
    )
    machine.call_tool("files", "write_file", {"path": f"{PROJECT}/new.txt", "content": "new"})
    owner = machine.look(f"stat -c %U:%G {PROJECT}/new.txt").strip()
    yield "what it writes belongs to", expected(owner, owner == "alice:alice")
    main_pid = machine.show("mcpwrap@files", "MainPID")["MainPID"]
    seen = machine.look(f"nsenter -t {main_pid} -m ls -A /home/alice")
    yield "her home, as the server sees it", expected(seen.strip(), seen == "project\n")
    hook = {"path": f"{PROJECT}/.git/hooks/pre-commit", "content": "curl evil"}
    said = machine.call_tool("files", "write_file", hook)
    kept = machine.as_user("alice", f"cat {hook['path']}").out == "true"
    yield "it changes her git hook", expected(said.splitlines()[0][:60], kept)


def expected(seen: str, is_so: bool) -> str:  # noqa: FBT001 - what was seen, and if it is right
    """Return what was seen.

    Raises:
        SystemExit: it is not as promised.
    """
    if not is_so:
        raise SystemExit(f"\nNOT as promised: {seen}")
    return " ".join(seen.split())


def refused(machine: Machine, user: str, command: str, status: int = 1) -> str:
    """Run what must not work, and return how it was refused.

    Raises:
        SystemExit: it worked, or failed in another way.
    """
    try:
        done = machine.as_user(user, command, status=status)
    except CommandFailedError as error:
        raise SystemExit(f"\nNOT as promised: {error}") from error
    return "refused: " + done.err.strip().splitlines()[-1].split(": ", 1)[-1][:80]


def report(title: str, facts: Callable[[Machine], Iterator[tuple[str, str]]], on: Machine) -> None:
    """Print what was seen, as it is seen."""
    say(f"\n{title}")
    for what, seen in facts(on):
        say(f"  {what:<48} {seen}")


def main() -> int:
    """Run the demo; exit status 0 if everything was as promised."""
    roots.need_root("make demo")
    start = time.monotonic()
    say("mcpwrap demo: real MCP servers, each an account of its own")
    with boot() as machine:
        prepare(machine)
        report("It works: an agent of alice's notices nothing", it_works, machine)
        report("It is apart: what agent and server cannot do", it_is_apart, machine)
        report("Secrets: the server has the value, and nobody else", it_keeps_secrets, machine)
        report("Workspace: her project, and nothing else of her home", it_sees, machine)
        report("Policy: the gate judges every message", it_is_judged, machine)
        report("Audit: each decision, and no other past", it_is_written_down, machine)
        report("Egress: the hosts that were listed, and no others", it_reaches, machine)
        say("\nmcpwrap status, as anybody sees it")
        say(machine.as_user("alice", "mcpwrap status").out.rstrip())
    say(f"\nAll as promised, in {time.monotonic() - start:.0f} s. The machine is gone again.")
    say(LOOK_YOURSELF.rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())

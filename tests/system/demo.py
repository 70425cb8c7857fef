"""`make demo`: the main job end to end on a machine of the bed, and a report of what was proven.

RUNS AS ROOT on the host, which it leaves as it was.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.system.bed import installed, package, roots
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.servers import THREE_SERVERS

SUITE = "bookworm"
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


def prepare() -> Machine:
    """Build what is not there yet, boot, install by apt, configure."""
    with step("Debian root with real MCP servers (built once, then cached)"):
        roots.ensure(roots.run_root(SUITE))
    with step("the .deb, built inside Debian (cached while the tree is unchanged)"):
        roots.ensure(roots.build_root(SUITE))
        package.build(SUITE)
    with step("boot a machine: systemd, nftables, a network of its own"):
        machine = installed.bare_machine(SUITE)
    try:
        with step("apt install ./mcpwrap.deb"):
            machine.as_root("apt-get install -y /root/mcpwrap.deb")
            machine.add_person("alice", groups="mcpwrap")
            machine.add_person("mallory")
        with step("list three servers in /etc/mcpwrap/config.toml; mcpwrap apply"):
            machine.configure(THREE_SERVERS)
            machine.apply()
    except BaseException:
        machine.remove()
        raise
    return machine


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
        owner = machine.as_root(f"ps -o user:20=,uid= -p {pid}").out.split()
        yield "it runs as", f"{owner[0]}, UID {owner[1]}; alice is {machine.uid_of('alice')}"
        yield "alice reads its environment", refused(machine, "alice", f"cat /proc/{pid}/environ")
        yield "alice kills it", refused(machine, "alice", f"kill -9 {pid}")
    yield "mallory uses alice's memory", refused(machine, "mallory", "mcpwrap-connect memory", 77)
    uid = machine.uid_of("mcpw-everything")
    probe = "import socket; socket.create_connection(('127.0.0.1', 4000), 2)"
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
    say("mcpwrap demo: three real MCP servers, each an account of its own")
    machine = prepare()
    try:
        report("It works: an agent of alice's notices nothing", it_works, machine)
        report("It is apart: what agent and server cannot do", it_is_apart, machine)
        say("\nmcpwrap status, as anybody sees it")
        say(machine.as_user("alice", "mcpwrap status").out.rstrip())
    finally:
        machine.remove()
    say(f"\nAll as promised, in {time.monotonic() - start:.0f} s. The machine is gone again.")
    say(LOOK_YOURSELF.rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`make messages`: record messages of clients and agents to real servers, for the gate's tests.

RUNS AS ROOT on the host, which it leaves as it was. Writes tests/shared/ordinary_messages anew: a
file for each pair of a client and a server, in which a conversation begins at `===`.
"""

import json
import shlex
import shutil
from pathlib import Path

from tests.system.bed import installed, roots
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.support.servers import NODE_MODULES

SUITE = "trixie"  # whose Node is new enough for the agents
FOLDER = Path(__file__).resolve().parents[2] / "shared/ordinary_messages"
GUEST = f"{BED_AT}/tests/system/guest/messages"
HOME = "/home/alice"
RECORDED = f"{HOME}/recorded"
PORT = 8765  # of the pages that are fetched
NODE, NPM = "/usr/bin/node", "/opt/mcp/npm"
MEMORY = f"{NODE_MODULES}/server-memory/dist/index.js"
CONFORMANCE = f"env PYTHONPATH={BED_AT} python3 -m tests.system.guest.conformance.server"
SERVERS = {
    "everything": f"{NODE} {NODE_MODULES}/server-everything/dist/index.js",
    "filesystem": f"{NODE} {NODE_MODULES}/server-filesystem/dist/index.js {HOME}/data/files",
    "memory": f"env MEMORY_FILE_PATH={HOME}/data/graph {NODE} {MEMORY}",
    "sqlite": f"/opt/mcp/sqlite/bin/mcp-server-sqlite --db-path {HOME}/data/db",
    "time": "/opt/mcp/pypi/bin/mcp-server-time --local-timezone UTC",
    "git": "/opt/mcp/pypi/bin/mcp-server-git",
    "fetch": "/opt/mcp/pypi/bin/mcp-server-fetch --allow-private-ips",
    "conformance": CONFORMANCE,
}
CLIENTS = ("python-1", "python-2", "typescript-1", "typescript-2")
AGENTS = ("claude-code", "gemini", "opencode", "inspector")
PROGRAMS = (
    f"/opt/mcp/sqlite/bin/python {GUEST}/python_1.py",
    f"{CLIENT} {GUEST}/python_2.py",
    f"{NODE} {NPM}/typescript_1.mjs",
    f"{NODE} {NPM}/typescript_2.mjs",
    f"env PYTHONPATH={BED_AT} python3 -m tests.system.guest.messages.agents",
)
# Data that the servers find each time: pages, files, and repositories with a change.
PREPARE = f"""
rm -rf data && mkdir -p recorded pages data/files && cd data
printf '<title>Seite</title><h1>Über uns</h1><p>Ein Satz.' > {HOME}/pages/index.html
for one in git-legacy git-modern; do
    git init -q -b main $one && cd $one
    git config user.name Alice && git config user.email alice@good.test
    mkdir 'dir with space' && echo one > a.txt && echo x > 'dir with space/ü.txt'
    git add . && git commit -q -m first && echo two >> a.txt && cd ..
done
"""


def main() -> None:
    """Boot a machine, run all conversations there, and write the recordings."""
    roots.need_root("make messages")
    with installed.bare_agents_machine(SUITE) as machine:
        prepare(machine)
        commands = {name: commands_of(name) for name in (*CLIENTS, *AGENTS)}
        for program in PROGRAMS:
            machine.as_user("alice", PREPARE)
            arguments = f"{shlex.quote(json.dumps(commands))} {GUEST}/conversations.json"
            machine.as_user("alice", f"{program} {arguments}")
        write(machine.path(RECORDED))


def prepare(machine: Machine) -> None:
    """Make alice, and serve pages to her only; Node finds its libraries next to a program."""
    machine.add_person("alice")
    machine.as_root(f"cp {GUEST}/*.mjs {NPM}")
    machine.as_user("alice", PREPARE)
    serve = f"python3 -m http.server {PORT} --bind 127.0.0.1 --directory {HOME}/pages"
    machine.as_root(f"systemd-run --quiet --collect --uid=alice {serve}")


def commands_of(client: str) -> dict[str, list[str]]:
    """Return the servers' commands, each with the recorder before it."""
    recorder = f"/usr/bin/python3 {GUEST}/recorder.py {RECORDED}/{client}"
    return {name: shlex.split(f"{recorder}-{name} {what}") for name, what in SERVERS.items()}


def write(recorded: Path) -> None:
    """Put the conversations of each pair into one file, in their order."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for path in sorted(recorded.iterdir()):
        file = FOLDER / f"{path.stem}.txt"
        with file.open("a") as out:
            out.write(f"===\n{path.read_text()}")
    for file in sorted(FOLDER.iterdir()):
        print(file.relative_to(FOLDER.parents[2]), file.stat().st_size)


if __name__ == "__main__":
    main()

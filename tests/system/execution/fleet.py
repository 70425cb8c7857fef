"""Workers on machines of their own behind HAProxy, and a Python server that uses them.

HAProxy has the file that docs/how-to/run-code-on-other-machines.md shows, and the certificates are
made by the commands of that page.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.lan import Lan
from tests.system.bed.machine import Machine
from tests.system.support import how_to

PAGE = Path(__file__).parents[3] / "docs/how-to/run-code-on-other-machines.md"
BALANCER = "10.0.0.10"
ADDRESSES = {f"worker{number}": f"10.0.0.1{number}" for number in (1, 2, 3)}
SLOTS = {"worker1": 2, "worker2": 1, "worker3": 2}
PORT = 9443
CERTIFICATE, KEY = "/etc/ssl/private/worker.pem", "/etc/ssl/private/worker.key"
AUTHORITY = "/usr/local/share/ca-certificates/workers.crt"
PYTHON_SERVER = f"""
[mcp_servers.python]
python = "/usr/bin/python3"
[mcp_servers.python.mcpwrap]
worker = "https://{BALANCER}:{PORT}"
worker_ca = "{AUTHORITY}"
"""
RUN = re.compile(r"run [0-9a-f]{16} of pool worker: code sha256:([0-9a-f]{64}) (.*)")
NOT_EXECUTED = "; executed no "
SHOW_RUNS = "journalctl --sync; journalctl -o cat --no-pager -u mcpwrap-worker"


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machine with the Python server and HAProxy, and the machines of the workers by name."""

    machine: Machine
    workers: dict[str, Machine]
    lan: Lan
    token: str

    def executed(self) -> dict[str, list[str]]:
        """Return the workers that have executed a code, by the hash of the code.

        A request that a worker has refused from its queue is in its journal too.
        """
        found: dict[str, list[str]] = {}
        for name, worker in self.workers.items():
            for line in worker.look(SHOW_RUNS).splitlines():
                run = RUN.fullmatch(line)
                if run and NOT_EXECUTED not in run[2]:
                    found.setdefault(run[1], []).append(name)
        return found

    def lines_about(self, code: str) -> list[str]:
        """Return the lines of all workers' journals about a code."""
        return [
            f"{name}: {line}"
            for name, worker in self.workers.items()
            for line in worker.look(SHOW_RUNS).splitlines()
            if digest(code) in line
        ]

    def is_up(self, worker: str) -> bool:
        """Return whether HAProxy sends requests to this worker."""
        text = self.machine.look_by("haproxy", "command", "show stat")
        rows = [line.split(",") for line in text.splitlines()]
        (status,) = {row[rows[0].index("status")] for row in rows if row[:2] == ["workers", worker]}
        return bool(status.startswith("UP"))

    def until_all_are_up(self) -> None:
        """Wait until HAProxy sends requests to each worker."""
        pace.until(lambda: all(map(self.is_up, self.workers)))


def runs_of(worker: Machine) -> dict[str, int]:
    """Return the numbers of running and queued requests of a worker."""
    (pool,) = json.loads(worker.look("mcpwrap worker status --json || true"))["pools"].values()
    return {name: pool[name] for name in ("running", "queued")}


def digest(code: str) -> str:
    """Return the hash by which a worker's journal names a code."""
    return sha256(code.encode()).hexdigest()


@contextmanager
def behind_haproxy(suite: str) -> Iterator[Fleet]:
    """Boot the four machines, and join them."""
    with ExitStack() as stack:
        lan = stack.enter_context(Lan())
        machine = stack.enter_context(installed.booted(suite))
        workers = {name: stack.enter_context(installed.booted(suite)) for name in ADDRESSES}
        lan.plug(machine, BALANCER)
        machine.add_person("alice", groups="mcpwrap")
        made, haproxy = _files_of_the_page(machine)
        for name, worker in workers.items():
            lan.plug(worker, ADDRESSES[name])
            _enable(worker, name, made)
        installed.add_haproxy(machine)
        machine.write("/etc/haproxy/haproxy.cfg", haproxy)
        pem = made["balancer.pem"] + made["balancer.key"]
        machine.write("/etc/haproxy/balancer.pem", pem, mode=0o600)
        for path in ("/etc/haproxy/authority.pem", AUTHORITY):
            machine.write(path, made["authority.pem"])
        machine.as_root("systemctl restart haproxy")
        machine.configure(PYTHON_SERVER)
        machine.apply()
        machine.as_root("mcpwrap secret set python WORKER_RPC_TOKEN", stdin=made["token"])
        fleet = Fleet(machine, workers, lan, made["token"].strip())
        fleet.until_all_are_up()
        yield fleet


def _files_of_the_page(machine: Machine) -> tuple[dict[str, str], str]:
    """Type the commands of the page that make certificates and token; return what they made.

    Also the file of HAProxy, with the weights of SLOTS.
    """
    steps = how_to.read(PAGE.read_text())
    (making,) = (
        step for step in steps if isinstance(step, how_to.Command) and "req -x509" in step.script
    )
    machine.as_user("alice", making.script)
    names = machine.look("ls /home/alice").split()
    made = {name: machine.read(f"/home/alice/{name}") for name in names}
    (haproxy,) = (
        step.text
        for step in steps
        if isinstance(step, how_to.File) and step.path == "/etc/haproxy/haproxy.cfg"
    )
    for name, slots in SLOTS.items():
        server = f"server {name} {ADDRESSES[name]}:{PORT} verifyhost {name} weight "
        assert haproxy.count(f"{server}2\n") == 1
        haproxy = haproxy.replace(f"{server}2\n", f"{server}{slots}\n")
    return made, haproxy


def _enable(worker: Machine, name: str, made: dict[str, str]) -> None:
    for path, text in ((CERTIFICATE, made[f"{name}.pem"]), (KEY, made[f"{name}.key"])):
        worker.write(path, text, mode=0o600)
    listen = f"--listen {ADDRESSES[name]}:{PORT} --certificate {CERTIFICATE} --key {KEY}"
    worker.as_root(f"mcpwrap worker enable {listen} --stdin", stdin=made["token"])
    file = "/etc/mcpwrap/conf.d/worker.toml"
    worker.write(file, worker.read(file) + f"runs = {{ at_once = {SLOTS[name]} }}\n")
    worker.apply()

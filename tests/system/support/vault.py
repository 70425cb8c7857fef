"""Machine whose servers have secrets, and the steps and checks that its stories share."""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.bed.session import Session
from tests.system.guest import search
from tests.system.support.servers import NODE_MODULES

# With characters that JSON, base64 and URLs each encode in a way of their own.
TOKEN = f'tok-{secrets.token_hex(16)}/+ "ü&'
KEY = f"key-{secrets.token_hex(16)}"
FILE = "".join(f"{secrets.token_hex(24)}\n" for _ in range(3))
OTHERS = f"others-{secrets.token_hex(16)}"
DECOY = f"decoy-{secrets.token_hex(16)}"  # not a secret: it is where any person finds it
VALUES = {
    ("vault", "TOKEN"): TOKEN,
    ("vault", "KEY"): KEY,
    ("vault", "FILE"): FILE,
    ("other", "TOKEN"): OTHERS,
    ("everything", "TOKEN"): TOKEN,
    ("straight", "TOKEN"): TOKEN,
    ("straight", "FILE"): FILE,
}
CONFIG = f"""
[mcp_servers.vault]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = {{ TOKEN = "${{TOKEN}}", URL = "https://host/?key=${{KEY}}", FILE = "${{FILE}}" }}
[mcp_servers.vault.mcpwrap]
agents = ["alice"]
secret_files = ["FILE"]

[mcp_servers.other]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.other.mcpwrap]
agents = ["alice"]

[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.everything.mcpwrap]
agents = ["alice"]

# The redactor alone, without the gate, which passes on nothing but messages.
[mcp_servers.straight]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = {{ TOKEN = "${{TOKEN}}", FILE = "${{FILE}}" }}
[mcp_servers.straight.mcpwrap]
agents = ["alice"]
secret_files = ["FILE"]
relay = "direct"
"""
DIGEST = "from tests.system.guest.secret_server import digest_of_token; result = digest_of_token()"


def prepare(machine: Machine) -> Machine:
    """Give a machine four servers with secrets. alice is there already."""
    machine.configure(CONFIG)
    machine.apply()
    for (name, key), value in VALUES.items():
        put(machine, name, key, value)
    return machine


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot such a machine for the time of the block."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        yield prepare(machine)


def put(machine: Machine, name: str, key: str, value: str) -> int:
    """Set a secret, and return its version."""
    out = machine.as_root(f"mcpwrap secret set {name} {key}", stdin=value).out
    (version,) = re.findall(rf"^{name}: {key} is set, version (\d+)$", out, re.MULTILINE)
    return int(version)


def sealed(name: str, key: str) -> str:
    """Return the path of a secret at rest."""
    return f"/var/lib/mcpwrap/sealed/{name}/{key}.sealed"


def stop(machine: Machine, *names: str) -> None:
    """Stop wrappers, which the next session starts, and the gate, whose backoff would refuse it."""
    units = " ".join(f"mcpwrap@{name}.service" for name in names)
    machine.as_root(f"{GATE_IS_UP}; systemctl stop {units} mcpwrap-gate.service")


def digest(value: str) -> str:
    """Return the result of DIGEST for a server that has this value."""
    return hashlib.sha256(value.encode()).hexdigest()


def has(session: Session, value: str) -> bool:
    """Return whether the server of this session has this value for its token."""
    return bool(session.evaluate(DIGEST) == digest(value))


def gives(machine: Machine, name: str, value: str) -> bool:
    """Return whether a server that is started now has this value for its token."""
    stop(machine, name)
    with machine.session(name) as session:
        return has(session, value)


def question(machine: Machine, *values: str) -> tuple[int, float, list[str]]:
    """Return the arguments of the search for these values."""
    since = int(machine.look('date -d "$(ps -o lstart= -p 1)" +%s'))
    return since - 1, pace.WAIT_S, [value[::-1] for value in values]


def places_of(machine: Machine, *values: str, user: str = "root") -> list[list[str]]:
    """Return the places at which a person finds each value."""
    found: list[list[str]] = machine.call(
        "search", "places", *question(machine, *values), user=user
    )
    return found


def places_by(machine: Machine, account: str, *values: str) -> list[list[str]]:
    """Return the places at which this account of the system finds each value."""
    search = machine.guest_command("search", "places", *question(machine, *values))
    unit = f"systemd-run --quiet --wait --pipe --uid={account} --gid={account}"
    found: list[list[str]] = json.loads(machine.as_root(f"{unit} {search}").out)
    return found


def expect_refused(machine: Machine, name: str, why: str) -> None:
    """Start a server in vain: agent and journal get the reason, and neither gets a value."""
    stop(machine, name)
    machine.announce(rf"mcpwrap@{name}\.service")
    cursor = machine.look("journalctl -n 0 --show-cursor -q")
    after = cursor.removeprefix("-- cursor: ").strip()
    err = machine.as_user("alice", f"mcpwrap-connect {name} </dev/null", status=70).err
    assert re.search(why, err), err
    unit = f"mcpwrap@{name}.service"
    shown = _await_failure(machine, unit)
    # Not by a match: journalctl of Debian 12 skips the first one that is after a cursor.
    journal = machine.journal(f"--after-cursor={after}")
    told = [str(entry["MESSAGE"]) for entry in journal if entry.get("_SYSTEMD_UNIT") == unit]
    assert [line for line in told if re.search(why, line)], told
    assert shown["MainPID"] == "0"
    assert machine.pids(name) == []
    for value in VALUES.values():
        assert not search.holds(f"{err}{journal}{shown}".encode(), value)


def _await_failure(machine: Machine, unit: str) -> dict[str, str]:
    """Wait until systemd has noted the end of a unit: the agent gets the error a moment before."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while True:
        shown = machine.show(unit, "MainPID", "ActiveState", "StatusText")
        if shown["ActiveState"] == "failed":
            return shown
        assert time.monotonic() < give_up_at, shown

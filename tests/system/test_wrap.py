"""From nothing to servers that are wrapped, by the README's own commands, and back again."""

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system import vault
from tests.system.bed import installed, package, search
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.wrapping import ANSWERS, HOME, UNWRAPS, add_alice

# Beside the tests of this file a layer is made, the first time.
pytestmark = pytest.mark.timeout(600)

README = Path(__file__).parents[2] / "README.md"
FILE = f"{HOME}/.cursor/mcp.json"
TOKEN = f"tok-{secrets.token_hex(16)}"
# Her own interpreter, and in it a server of PyPI's.
TOOLS = f"""
python3 -m venv ~/tools
echo /opt/mcp/pypi/lib/python3.13/site-packages > ~/tools/lib/python3.13/site-packages/servers.pth
sed '1s|.*|#!{HOME}/tools/bin/python3|' /opt/mcp/pypi/bin/mcp-server-time > ~/tools/bin/time-server
chmod +x ~/tools/bin/time-server; mkdir -p ~/.cursor
"""
PROBE_ENTRY = {"command": "python3", "args": ["/opt/probe.py"]}
TIME_ENTRY = {"command": f"{HOME}/tools/bin/time-server", "args": ["--local-timezone", "UTC"]}
ENTRIES: dict[str, object] = {
    "Time": TIME_ENTRY,
    "probe": {**PROBE_ENTRY, "env": {"TOKEN": TOKEN, "LEVEL": "info"}},
}
CONFIG = {"mcpServers": ENTRIES}
ENVIRONMENT = "import os; result = [os.environ['LEVEL'], os.getuid()]"


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Boot a machine without mcpwrap, on which alice has sudo, and an agent with two servers."""
    machine = installed.bare_agents_machine("trixie")
    try:
        add_alice(machine)
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/search.py", Path(search.__file__).read_text())
        machine.as_user("alice", TOOLS)
        machine.as_user("alice", f"umask 077; cat > {FILE}", stdin=json.dumps(CONFIG, indent=2))
        machine.as_user("alice", "mkdir -p dist")
        shutil.copy2(package.build("trixie"), machine.path(f"{HOME}/dist"))
        yield machine
        assert machine.unannounced() == []
    finally:
        machine.remove()


def commands() -> list[str]:
    """Return what the README says to type, from nothing to a server that is wrapped."""
    block = README.read_text().split("<!-- from nothing -->")[1].split("```")[1]
    lines = [line.partition("#")[0].strip() for line in block.splitlines()[1:]]
    return [line.replace("+deb12", "+deb13") for line in lines if line]


def typed(
    machine: Machine, command: str, answers: list[tuple[str, str]] = ANSWERS
) -> tuple[int, str]:
    """Type a command at a terminal of alice's, and answer what it asks."""
    return machine.typed(command, answers)


def entries(machine: Machine) -> dict[str, object]:
    found: dict[str, object] = json.loads(machine.read(FILE))["mcpServers"]
    return found


def test_five_commands_from_nothing(fresh: Machine) -> None:
    told = commands()
    assert len(told) <= 5
    begun = time.monotonic()
    for command in told:
        if command == "make deb":  # that is what the bed has done
            continue
        status, shown = typed(fresh, command)
        print(f"$ {command}\n{shown}")
        assert status == 0, shown
        assert TOKEN not in shown
    print(f"{len(told)} commands, {time.monotonic() - begun:.1f} s without the building")
    assert entries(fresh) == {
        "Time": {"command": "/usr/bin/mcpwrap-connect", "args": ["time"]},
        "probe": {"command": "/usr/bin/mcpwrap-connect", "args": ["probe"]},
    }
    answer = fresh.call_tool("time", "get_current_time", {"timezone": "UTC"})
    assert json.loads(answer)["timezone"] == "UTC"
    with fresh.session("time") as session:
        session.initialize()
        uid = fresh.uid_of("mcpw-time")
        running = fresh.as_root(f"pgrep -u {uid} -a -f time-server").out
    assert f"{HOME}/tools/bin/time-server" in running


def test_the_secret_is_in_the_server_and_the_backup_alone(fresh: Machine) -> None:
    with fresh.session("probe") as session:
        assert session.evaluate(ENVIRONMENT) == ["info", fresh.uid_of("mcpw-probe")]
        assert session.evaluate(vault.DIGEST) == vault.digest(TOKEN)
    (backup,) = fresh.as_user("alice", "ls ~/.local/state/mcpwrap/backup-*").out.split()
    assert fresh.as_user("alice", f"stat -c %a {backup}").out.strip() == "600"
    assert json.loads(fresh.read(backup)) == CONFIG
    fresh.await_end_of("probe")
    assert vault.places_of(fresh, TOKEN, user="alice") == [[backup]]
    assert vault.places_of(fresh, TOKEN) == [[backup]]
    assert fresh.as_root(f"ls {vault.sealed('probe', 'TOKEN')}").out


def test_twice_changes_nothing(fresh: Machine) -> None:
    before = fresh.read(FILE)
    status, shown = typed(fresh, "mcpwrap wrap --all")
    assert (status, shown.strip()) == (0, "nothing to do")
    assert fresh.read(FILE) == before


def test_back_to_what_was(fresh: Machine) -> None:
    (backup,) = fresh.as_user("alice", "ls ~/.local/state/mcpwrap/backup-*").out.split()
    before = fresh.path(backup).read_bytes()
    status, shown = typed(fresh, "mcpwrap unwrap cursor", UNWRAPS)
    assert status == 0, shown
    assert fresh.path(FILE).read_bytes() == before
    assert fresh.as_user("alice", f"stat -c '%a %U' {FILE}").out.strip() == "600 alice"


def test_somebody_says_no_and_nothing_has_changed(fresh: Machine) -> None:
    """To the first question, and to root's."""
    before, there = fresh.read(FILE), fresh.as_root("ls -la /etc/mcpwrap/conf.d").out
    status, shown = typed(fresh, "mcpwrap wrap cursor", [(r"Do this\?", "n")])
    assert (status, "nothing was changed" in shown) == (1, True)
    more = {"mcpServers": {**ENTRIES, "new": {"command": "true"}}}
    fresh.as_user("alice", f"cat > {FILE}", stdin=json.dumps(more))
    status, shown = typed(
        fresh, "mcpwrap wrap cursor", [(r"Do this\?", "y"), ("yes or no: ", "no")]
    )
    assert status == 1
    assert "no agent's file was changed" in shown
    assert re.search(r"sudo mcpwrap accept [0-9a-f]{64} ", shown)
    assert json.loads(fresh.read(FILE)) == more
    assert fresh.as_root("ls -la /etc/mcpwrap/conf.d").out == there
    fresh.as_user("alice", f"cat > {FILE}", stdin=before)


def test_a_machine_is_told_by_one_object_alone(fresh: Machine) -> None:
    """What root is asked and told goes to the terminal."""
    before = fresh.path(FILE).read_bytes()
    more = {"mcpServers": {**ENTRIES, "more": {"command": "true"}}}
    fresh.as_user("alice", f"cat > {FILE}", stdin=json.dumps(more))
    command = "mcpwrap wrap cursor --json --yes > ~/told.json"
    status, shown = typed(fresh, command, ANSWERS[1:])
    told = json.loads(fresh.read(f"{HOME}/told.json"))
    assert (status, told["done"], told["proposal"]) == (0, True, None), shown
    assert TOKEN not in json.dumps(told)
    assert "[mcp_servers.more]" in shown
    assert '"done"' not in shown
    [row] = told["files"]
    assert {s["name"]: (s["state"], s["server"], s["is_new"]) for s in row["servers"]} == {
        "Time": ("wrapped", "time", False),
        "probe": ("wrapped", "probe", False),
        "more": ("wrapped", "more", True),
    }
    assert json.loads(fresh.read(row["backup"])) == more
    assert typed(fresh, "mcpwrap unwrap cursor", UNWRAPS)[0] == 0
    fresh.as_user("alice", f"rm ~/told.json; cat > {FILE}", stdin=before.decode())


def test_with_secrets_taken_for_plain_values_they_would_be_everywhere(fresh: Machine) -> None:
    """What is looked for above is found, where the look at values is taken away."""
    value = f"tok-{secrets.token_hex(16)}"
    raw = {"mcpServers": {"leaky": {**PROBE_ENTRY, "env": {"TOKEN": value}}}}
    fresh.as_user("alice", f"cat > {FILE}", stdin=json.dumps(raw))
    with fresh.patched(
        "config/proposals/signs", "    if not value:\n        return False\n", "    return False\n"
    ):
        status, _ = typed(fresh, "mcpwrap wrap cursor")
    assert status == 0
    (places,) = vault.places_of(fresh, value, user="alice")
    assert "/etc/mcpwrap/conf.d/leaky.toml" in places
    assert typed(fresh, "mcpwrap unwrap cursor", UNWRAPS)[0] == 0

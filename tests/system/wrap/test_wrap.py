"""`mcpwrap wrap` from nothing to wrapped servers, by the README's own commands, and back again."""

import json
import re
import secrets
from pathlib import Path

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.roots import TESTING
from tests.system.support import vault
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines
from tests.system.wrap.people import ANSWERS, FIRST_RUN, HOME, UNWRAPS

STAGE = machines.without_mcpwrap
# Beside the tests of this file a layer is made, the first time.
pytestmark = on_release("trixie")

README = Path(__file__).parents[3] / "README.md"
FILE = f"{HOME}/.cursor/mcp.json"
TOKEN = f"tok-{secrets.token_hex(16)}"
# Her own interpreter, and in it a server from PyPI.
TOOLS = f"""
python3 -m venv ~/tools
for packages in ~/tools/lib/*/site-packages; do
    echo /opt/mcp/pypi/lib/python3.*/site-packages > $packages/servers.pth
done
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
def from_nothing(stage: Machine) -> list[tuple[str, int, str]]:
    """Type README's commands, as alice whose agent has two servers; return the outcome of each."""
    stage.as_user("alice", TOOLS)
    stage.as_user("alice", f"umask 077; cat > {FILE}", stdin=json.dumps(CONFIG, indent=2))
    # The bed has built the package.
    lines = [line for line in commands() if line != "sudo make deb"]
    if stage.suite == TESTING:  # which has no version yet
        lines = [line.replace("$(. /etc/os-release; echo $VERSION_ID)", "14") for line in lines]
    answers = {line: FIRST_RUN if "mcpwrap init" in line else ANSWERS for line in lines}
    return [(line, *typed(stage, line, answers[line])) for line in lines]


@pytest.fixture
def installed(machine: Machine, from_nothing: list[tuple[str, int, str]]) -> Machine:
    """Lend the machine on which all of that succeeded."""
    # The test at the end of `init` finds that a probe is not a server: it has no tools.
    expected = [int("mcpwrap init" in line) for line, _, _ in from_nothing]
    assert [status for _, status, _ in from_nothing] == expected, from_nothing
    return machine


@pytest.fixture
def fresh(installed: Machine) -> Machine:
    """Lend the machine with wrapped servers."""
    if not is_wrapped(installed):
        assert typed(installed, "mcpwrap wrap cursor")[0] == 0
    return installed


@pytest.fixture
def raw(installed: Machine) -> Machine:
    """Lend the machine with servers that were wrapped and are not now."""
    if is_wrapped(installed):
        assert typed(installed, "mcpwrap unwrap cursor", UNWRAPS)[0] == 0
    return installed


def is_wrapped(machine: Machine) -> bool:
    """Return whether the agent's servers are wrapped."""
    return "mcpwrap-connect" in machine.read(FILE)


def commands() -> list[str]:
    """Return README's commands, from nothing to a wrapped server."""
    block = README.read_text().split("<!-- from nothing -->")[1].split("```")[1]
    lines = [line.partition("#")[0].strip() for line in block.splitlines()[1:]]
    return [line for line in lines if line]


def typed(
    machine: Machine, command: str, answers: list[tuple[str, str]] = ANSWERS
) -> tuple[int, str]:
    """Type a command at a terminal of alice's, and answer its prompts."""
    return machine.typed(command, answers)


def entries(machine: Machine) -> dict[str, object]:
    found: dict[str, object] = json.loads(machine.read(FILE))["mcpServers"]
    return found


def test_five_commands_from_nothing(
    fresh: Machine, from_nothing: list[tuple[str, int, str]]
) -> None:
    assert len(commands()) <= 5
    for command, _, shown in from_nothing:
        print(f"$ {command}\n{shown}")
        assert TOKEN not in shown
    assert entries(fresh) == {
        "Time": {"command": "/usr/bin/mcpwrap-connect", "args": ["time"]},
        "probe": {"command": "/usr/bin/mcpwrap-connect", "args": ["probe"]},
    }
    answer = fresh.call_tool("time", "get_current_time", {"timezone": "UTC"})
    assert json.loads(answer)["timezone"] == "UTC"
    with fresh.session("time") as session:
        session.initialize()
        uid = fresh.uid_of("mcpw-time")
        running = fresh.look(f"pgrep -u {uid} -a -f time-server")
    assert f"{HOME}/tools/bin/time-server" in running


def backup_of(machine: Machine) -> str:
    """Return the one backup of the file."""
    (backup,) = machine.look(f"ls {HOME}/.local/state/mcpwrap/backup-*").split()
    return backup


def test_the_secret_is_in_the_server_and_the_backup_alone(fresh: Machine) -> None:
    with fresh.session("probe") as session:
        assert session.evaluate(ENVIRONMENT) == ["info", fresh.uid_of("mcpw-probe")]
        assert session.evaluate(vault.DIGEST) == vault.digest(TOKEN)
    backup = backup_of(fresh)
    assert fresh.look(f"stat -c '%a %U' {backup}") == "600 alice\n"
    assert json.loads(fresh.read(backup)) == CONFIG
    fresh.await_end_of("probe")
    assert vault.places_of(fresh, TOKEN, user="alice") == [[backup]]
    assert vault.places_of(fresh, TOKEN) == [[backup]]
    assert fresh.path(vault.sealed("probe", "TOKEN")).exists()


def test_twice_changes_nothing(fresh: Machine) -> None:
    before = fresh.read(FILE)
    status, shown = typed(fresh, "mcpwrap wrap --all")
    assert (status, shown.strip()) == (0, "nothing to do")
    assert fresh.read(FILE) == before


def test_back_to_what_was(fresh: Machine) -> None:
    backup = backup_of(fresh)
    before = fresh.path(backup).read_bytes()
    status, shown = typed(fresh, "mcpwrap unwrap cursor", UNWRAPS)
    assert status == 0, shown
    assert fresh.path(FILE).read_bytes() == before
    assert fresh.look(f"stat -c '%a %U' {FILE}") == "600 alice\n"


def test_somebody_says_no_and_nothing_has_changed(raw: Machine) -> None:
    """To the first question, and to root's."""
    before, there = raw.read(FILE), raw.look("ls -la /etc/mcpwrap/conf.d")
    status, shown = typed(raw, "mcpwrap wrap cursor", [(r"Do this\?", "n")])
    assert (status, "nothing was changed" in shown) == (1, True)
    more = {"mcpServers": {**ENTRIES, "new": {"command": "true"}}}
    raw.as_user("alice", f"cat > {FILE}", stdin=json.dumps(more))
    status, shown = typed(raw, "mcpwrap wrap cursor", [(r"Do this\?", "y"), ("yes or no: ", "no")])
    assert status == 1
    assert "no agent's file was changed" in shown
    assert re.search(r"sudo mcpwrap accept [0-9a-f]{64} ", shown)
    assert json.loads(raw.read(FILE)) == more
    assert raw.look("ls -la /etc/mcpwrap/conf.d") == there
    raw.as_user("alice", f"cat > {FILE}", stdin=before)


def test_a_machine_is_told_by_one_object_alone(raw: Machine) -> None:
    """Root's questions and messages go to the terminal."""
    before = raw.path(FILE).read_bytes()
    more = {"mcpServers": {**ENTRIES, "more": {"command": "true"}}}
    raw.as_user("alice", f"cat > {FILE}", stdin=json.dumps(more))
    command = "mcpwrap wrap cursor --json --yes > ~/told.json"
    status, shown = typed(raw, command, ANSWERS[1:])
    told = json.loads(raw.read(f"{HOME}/told.json"))
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
    assert json.loads(raw.read(row["backup"])) == more
    assert typed(raw, "mcpwrap unwrap cursor", UNWRAPS)[0] == 0
    raw.as_user("alice", f"rm ~/told.json; cat > {FILE}", stdin=before.decode())


@only_in_test_all("mutation twin: shows that the search above finds a value that is written")
def test_with_secrets_taken_for_plain_values_they_would_be_everywhere(raw: Machine) -> None:
    """The values searched above are found, if the check of values is taken away."""
    before, value = raw.read(FILE), f"tok-{secrets.token_hex(16)}"
    leaky = {"mcpServers": {"leaky": {**PROBE_ENTRY, "env": {"TOKEN": value}}}}
    raw.as_user("alice", f"cat > {FILE}", stdin=json.dumps(leaky))
    with raw.patched(
        "config/migration/secret_detection",
        "    if not value:\n        return False\n",
        "    return False\n",
    ):
        status, _ = typed(raw, "mcpwrap wrap cursor")
    assert status == 0
    (places,) = vault.places_of(raw, value, user="alice")
    assert "/etc/mcpwrap/conf.d/leaky.toml" in places
    assert typed(raw, "mcpwrap unwrap cursor", UNWRAPS)[0] == 0
    raw.as_user("alice", f"cat > {FILE}", stdin=before)

"""Configuration of another product's proxied servers, read as it is: one hub, and its members."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed, roots
from tests.system.bed.machine import GUEST, Machine
from tests.system.hub.machines import HUB, await_tools, call, opened, text_of
from tests.system.support.tiers import on_release
from tests.system.wrap.people import ANSWERS, HOME, add_alice

# Of the release whose root has sudo for alice.
pytestmark = on_release("trixie")

FILE = "proxied-mcp-servers.json"
MODULE = "/usr/local/lib/python{}/dist-packages/my_mcp_server.py"
AGENT = {
    "SONARQUBE_TOKEN": "secret123",
    "SONARQUBE_URL": "https://sonar.example.com",
    "API_URL": "https://prod.example.com",
    "API_TOKEN": "secret",
    "NOT_LISTED": "not-listed",
}
# By namespace: the variables that a member has beside those of each server.
EXPECTED = {
    "explicit": {"DEBUG": "true", "CUSTOM_VAR": "value"},
    "inheriting": {
        "DEBUG": "true",
        "SONARQUBE_TOKEN": "secret123",
        "SONARQUBE_URL": "https://sonar.example.com",
    },
    "overriding": {"DEBUG": "true", "API_URL": "", "API_TOKEN": "secret"},
    "plain": {},
}


@contextmanager
def with_the_file(suite: str) -> Iterator[Machine]:
    """Boot a machine on which alice has the file, and root the programs that it names."""
    with installed.agents_machine(suite) as machine:
        add_alice(machine)
        machine.as_root("usermod -aG mcpwrap alice; ln -s /usr/bin/python3 /usr/local/bin/python")
        module = MODULE.format(roots.PYTHON[suite])
        machine.write(module, (GUEST / "hub/my_mcp_server.py").read_text())
        machine.as_user("alice", f"cat > {FILE}", stdin=(GUEST / "hub" / FILE).read_text())
        yield machine


STAGE = with_the_file


@pytest.fixture(scope="module")
def wrapped(stage: Machine) -> str:
    """Have alice wrap the file, and root accept it; return what was shown."""
    status, shown = stage.typed(f"mcpwrap wrap --file {HOME}/{FILE} --hub {HUB}", ANSWERS)
    assert status == 0, shown
    return shown


def environments(machine: Machine) -> dict[str, dict[str, str]]:
    """Return the environment of each member's process, for an agent that has all variables."""
    given = [f"{name}={value}" for name, value in AGENT.items()]
    command = f"exec {shlex.join(['env', *given, 'mcpwrap-connect', HUB])}"
    with opened(machine, command=command) as session:
        await_tools(session, *(f"{namespace}__environment" for namespace in EXPECTED))
        return {
            namespace: json.loads(text_of(call(session, f"{namespace}__environment")))
            for namespace in EXPECTED
        }


def test_each_member_has_its_own_variables_and_no_other(machine: Machine, wrapped: str) -> None:
    """An explicit value wins over an inherited one, also the empty string."""
    found = environments(machine)
    for namespace, expected in EXPECTED.items():
        has = found[namespace]
        assert {name: has.get(name) for name in expected} == expected
        assert has.keys() - found["plain"].keys() == expected.keys()
        foreign = [v for name, v in AGENT.items() if name not in expected]
        assert [value for value in has.values() if value in foreign] == []


def test_root_was_shown_what_each_member_inherits(wrapped: str) -> None:
    assert 'inherits_any = ["SONARQUBE_TOKEN", "SONARQUBE_URL"]' in wrapped
    assert 'inherits_any = ["API_TOKEN"]' in wrapped  # of API_URL it has a value of its own
    assert "NOT_LISTED" not in wrapped


def test_the_journal_says_how_much_was_loaded(machine: Machine, wrapped: str) -> None:
    environments(machine)
    lines = [str(e["MESSAGE"]) for e in machine.journal(f"_SYSTEMD_UNIT=mcpwrap@{HUB}.service")]
    assert [line for line in lines if "tools from 4/4 servers" in line]


def test_convert_prints_the_same_servers_and_the_one_entry(machine: Machine) -> None:
    again = (GUEST / "hub" / FILE).read_text()  # `wrap` may have rewritten the other
    machine.as_user("alice", "cat > again.json", stdin=again)
    printed = machine.as_user("alice", f"mcpwrap convert again.json --hub {HUB}").out
    for namespace in EXPECTED:
        assert f'namespace = "{namespace}"' in printed
    client = machine.as_user("alice", f"mcpwrap convert again.json --hub {HUB} --client codex").out
    assert HUB in client
    assert "my-server" not in client

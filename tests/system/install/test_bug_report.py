"""Bug report of a machine with secrets and names everywhere: facts, and none of these."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from mcpwrap import __version__
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.guest import search
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

# What the report has of systemd, nft and Squid is a version each.
pytestmark = ON_ONE_RELEASE

FILE = "/root/report.md"


def a_secret(kind: str) -> str:
    """Return a secret with characters that base64 and URLs encode each in a way of their own."""
    return f"{kind}-{secrets.token_hex(12)}/+?ü"


SEALED, LITERAL, ARGUMENT, PRINTED, LOGGED, PASSWORD = (
    a_secret(kind) for kind in ("sealed", "env", "arg", "stderr", "logged", "password")
)
IN_URL, IN_WEBHOOK, NAMED = (secrets.token_hex(12) for _ in range(3))
SECRETS = [SEALED, LITERAL, ARGUMENT, PRINTED, LOGGED, PASSWORD, IN_URL, IN_WEBHOOK, NAMED]
# Names and places by which the machine or its owner can be recognized.
NAMES = [
    "ledger", "vaulted", "alice", "acme", "hooks.good.test", "api.good.test", "LEDGER_TOKEN",
    "/home/", "/home/alice/acme", "10.1.2.3", "mcpwrap-leak", "pelikan",
]  # fmt: skip
CONFIG = f"""
[approvals]
webhook = "https://hooks.good.test/T0/{IN_WEBHOOK}"

[mcp_servers.ledger]
command = "/bin/sh"
args = ["-c", "echo $0 >&2; exit 3", "{PRINTED}", "--token={ARGUMENT}"]
env = {{ LEDGER_TOKEN = "${{LEDGER_TOKEN}}", PLAIN = "{LITERAL}" }}
[mcp_servers.ledger.mcpwrap]
agents = ["alice"]
egress = ["api.good.test", "hooks.good.test:8443"]
direct = ["10.1.2.3:5432"]
workspace = ["/home/alice/acme:rw"]
state = true

[mcp_servers.vaulted]
url = "https://api.good.test/{IN_URL}/mcp"
[mcp_servers.vaulted.mcpwrap]
agents = ["alice"]

[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
agents = ["alice"]
"""
POLICY = f"""
version: 1
rules:
  - name: pelikan
    tool: "{NAMED}"
    action: allow_with_approval
"""


@contextmanager
def with_secrets(suite: str) -> Iterator[Machine]:
    """Boot a machine with secrets in all places that have them, and lines about some of them."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_root("hostname acme; install -d -o alice /home/alice/acme")
        machine.configure(CONFIG)
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.apply()
        machine.as_root("mcpwrap secret set ledger LEDGER_TOKEN", stdin=SEALED)
        machine.as_root("mcpwrap approvals passwd alice --stdin", stdin=f"{PASSWORD}\n")
        yield machine


STAGE = with_secrets


@pytest.fixture
def logged(machine: Machine) -> Iterator[Machine]:
    """Lend the machine while units log a secret, as an error of a program would."""
    machine.announce("mcpwrap|hooks|webhook")
    echo = f'echo "<3>Bearer {LOGGED} of ledger [E-POLICY-FILE-MISSING] E-{NAMED}" >&2'
    machine.as_root(f"systemd-run --quiet --wait --unit=mcpwrap-leak sh -c '{echo}'")
    drop_in = "/run/systemd/system/mcpwrap@ledger.service.d/leak.conf"
    machine.as_root(f"mkdir -p {drop_in.rpartition('/')[0]}")
    # A server's lines have no priority of their own; those of root's programs at its start have.
    lines = f"SyslogLevelPrefix=yes\nExecStartPre=+/bin/sh -c '{echo}'\n"
    machine.write(drop_in, f"[Service]\n{lines}")
    machine.as_root("systemctl daemon-reload; systemctl stop mcpwrap@ledger.service")
    yield machine
    machine.as_root(f"rm {drop_in}; systemctl daemon-reload")


def report(machine: Machine, *options: str) -> str:
    """Return a new report."""
    machine.as_root(f"rm -f {FILE}; mcpwrap doctor {' '.join(options)} --report {FILE}")
    return machine.read(FILE)


def leaks(text: str) -> list[str]:
    """Return the secrets that a text holds, plain or encoded."""
    content = text.encode()
    return [
        secret
        for secret in SECRETS
        for part in {secret, secret.split("/")[0], quote(secret, safe="")}
        if search.holds(content, part)
    ]


def test_a_report_has_facts_and_no_secret_and_no_name(logged: Machine) -> None:
    told = report(logged)
    print(told)
    assert leaks(told) == []
    assert [name for name in NAMES if name in told] == []
    assert not re.search(r"\buid\b", told.lower())

    # The facts, or the search would find nothing in an empty file either.
    facts = dict(re.findall(r"^- ([A-Za-z' ]+): (.*)$", told, re.MULTILINE))
    assert facts["mcpwrap"] == __version__
    assert re.fullmatch(r"deb [0-9].*\+deb1[0-9]", facts["package"])
    assert re.fullmatch(r"[0-9a-f]{8}(-modified)?", facts["commit"])
    for name in ("Python", "distribution", "kernel", "systemd", "nft", "Squid", "cgroup"):
        assert re.match(r"v?[0-9]|debian|hybrid", facts[name]), (name, facts[name])
    assert (facts["Squid with OpenSSL"], facts["Squid's certificate helper"]) == ("yes", "there")
    lines = told.splitlines()
    assert (
        "- server-1: Local: args (4), env (2), agents (1), egress (2), direct (1), workspace (1), "
        "state, secrets (1)"
    ) in lines
    assert "- other settings: approvals.webhook" in lines
    assert "- policy: 1 rules in 1 files" in lines
    # Failed, good, and by its name where it has one; no title is without a word.
    [failed] = [line for line in lines if "server-1: a session of" in line]
    assert re.fullmatch(r"- failed: server-1: a session of \[E-[A-Z-]+\]", failed)
    assert "- good: server-2: program" in lines
    assert "another check" not in told
    assert "- mcpwrap-gate.socket: active running success" in lines or (
        "- mcpwrap-gate.socket: active listening success" in lines
    )
    for unit in ("…", "mcpwrap@server-1.service"):
        pattern = rf"^- {re.escape(unit)}: [0-9]+ x E-POLICY-FILE-MISSING, the last 20"
        assert re.search(pattern, told, re.MULTILINE), unit


def test_it_is_a_new_file_of_root_alone(machine: Machine) -> None:
    machine.announce("mcpwrap")
    machine.as_root(f"rm -f {FILE}; umask 0; mcpwrap doctor probe --report {FILE}")
    assert machine.look(f"stat -c '%a %U' {FILE}") == "600 root\n"
    before = machine.read(FILE)
    err = machine.as_root(f"mcpwrap doctor probe --report {FILE}", status=2).err
    assert "exists already; nothing was changed [E-REPORT-EXISTS]" in err
    assert machine.read(FILE) == before
    # Without a file it is printed; from a machine with a broken configuration too.
    machine.write("/etc/mcpwrap/config.toml", f"x = 1\n{CONFIG}")
    told = machine.as_root("mcpwrap doctor --report").out
    machine.write("/etc/mcpwrap/config.toml", CONFIG)
    assert re.search(r"^- failed: configuration \[E-CONFIG-[A-Z-]+\]$", told, re.MULTILINE)
    assert f"- mcpwrap: {__version__}\n" in told


def test_names_of_servers_are_in_it_if_wanted(logged: Machine) -> None:
    told = report(logged, "ledger", "--names")
    assert "- ledger: Local: args (4)" in told
    assert leaks(told) == []
    assert [name for name in NAMES if name in told] == ["ledger", "vaulted"]


# Each list of what may be in a report, taken away.
COPIED = {
    "checks": ('return f"{label}: {start}"', "return what"),
    "logs": ('return " ".join(names)', "return entry.message"),
    "units": (
        "if template not in self.units:\n            return HIDDEN",
        "if False:\n            pass",
    ),
}


@only_in_test_all("mutation twin: a report that copies texts has secrets in it")
@pytest.mark.parametrize("what", COPIED)
def test_a_report_that_copies_texts_is_found_out(logged: Machine, what: str) -> None:
    with logged.patched("core/bug_report", *COPIED[what]):
        told = report(logged)
    print(told)
    assert leaks(told) or [name for name in NAMES if name in told]

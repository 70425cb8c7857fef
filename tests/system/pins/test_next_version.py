"""`mcpwrap tools diff NAME --next`: a new version is read before anything of it is trusted."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import GUEST, Done, Machine
from tests.system.support.servers import DOWNLOADED_SERVERS
from tests.system.support.tiers import only_in_test_all

PROGRAM = "/opt/next_version.py"
SECRET = "correct-horse-battery-staple"
PLACEHOLDER = "mcpwrap-gives-no-secret-to-the-next-version"
CONFIG = f"""
[mcp_servers.canary]
command = "/usr/bin/python3"
args = ["{PROGRAM}", "1.2.0", "lists"]
env = {{ TOKEN = "${{TOKEN}}", PLAIN = "as configured" }}
[mcp_servers.canary.mcpwrap]
agents = ["alice"]
state = true
workspace = ["/home/alice/project:rw"]
egress = ["api.good.test"]
direct = ["203.0.113.20:5432"]

[mcp_servers.quiet]
command = "/usr/bin/python3"
args = ["{PROGRAM}", "1.2.0", "lists"]
[mcp_servers.quiet.mcpwrap]
agents = ["alice"]

[mcp_servers.far]
url = "https://api.good.test/mcp"
{DOWNLOADED_SERVERS}"""
NEXT = f"--next python3 {PROGRAM} 1.3.0 lists"
SETS = ("next_addr", "next4", "next6")


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine on an internet, with a server that has state, a workspace and a secret."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_user("alice", "mkdir project; echo of alice > project/diary")
        machine.write(PROGRAM, (GUEST / "next_version.py").read_text())
        machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
        machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
        with Internet(machine) as internet:
            machine.configure(CONFIG)
            machine.apply()
            machine.as_root("mcpwrap secret set canary TOKEN", stdin=SECRET)
            machine.as_root("mcpwrap restart canary")
            yield Connected(machine, internet)


STAGE = booted


def difference(machine: Machine, name: str, rest: str = NEXT) -> Any:
    """Return the difference, as the command prints it for programs."""
    return json.loads(machine.as_root(f"mcpwrap tools diff {name} --json {rest}").out)


def report_in(found: Any) -> dict[str, Any]:
    """Return what the start-up code of the next version has seen."""
    [tool] = [one for one in found["changes"] if one["name"] == "report"]
    return dict(json.loads(tool["after"]["description"]))


def expect_nothing_left(machine: Machine) -> None:
    """Assert that nothing of a next version runs, and that its account reaches nothing."""
    assert machine.show("mcpwrap-next", "ActiveState") == {"ActiveState": "inactive"}
    assert machine.show("mcpwrap-next-egress", "ActiveState") == {"ActiveState": "inactive"}
    machine.as_root("pgrep -u mcpwrap-next", status=1)
    for name in SETS:
        assert "elements" not in machine.look(f"nft list set inet mcpwrap {name}")


@pytest.fixture
def running(machine: Machine) -> Iterator[Any]:
    """Hold a session of the server open, and its state; both are as before at the end."""
    state = "/var/lib/mcpwrap/state/canary"
    machine.as_root(f"echo of the server > {state}/notes; chown mcpw-canary: {state}/notes")
    with machine.session("canary") as session:
        session.initialize()
        machine.as_root("pgrep -u mcpw-canary -f 'next_version.py 1.2.0' > /run/canary.pid")
        machine.as_root("chmod 644 /run/canary.pid")
        yield session
        answer = session.answer_to(session.request("tools/call", {"name": "report"}))
        assert answer["result"]["content"] == [{"type": "text", "text": "this is 1.2.0"}]
    assert machine.as_root(f"ls {state}").out.split() == ["notes"]
    assert machine.as_root(f"cat {state}/notes").out == "of the server\n"


@pytest.mark.usefixtures("running")
def test_its_start_up_code_has_the_hosts_of_the_server_and_nothing_else(machine: Machine) -> None:
    number = machine.uid_of("mcpwrap-next")
    report = report_in(difference(machine, "canary"))
    assert report.pop("token") == hashlib.sha256(PLACEHOLDER.encode()).hexdigest()
    assert report.pop("ids") == [number]
    assert set(report.pop("groups")) == {number}
    assert "lo" in report.pop("interfaces")
    assert report == {
        "account": "mcpwrap-next",
        "diary": "PermissionError",
        "state": "FileNotFoundError",
        "pins": "FileNotFoundError",
        "root": "PermissionError",
        "request": "PermissionError",
        "signal": "PermissionError",
        "home": 15,
        "plain": "as configured",
        "permitted": "200",
        "unlisted": "403",
        "past the proxy": "ConnectionRefusedError",
        "database": "connected",
    }
    expect_nothing_left(machine)
    assert report_in(difference(machine, "canary"))["home"] == 15  # its file was not kept
    assert (
        "mcpwrap-next" not in machine.as_root("find / -xdev -user mcpwrap-next -printf '%u %p'").out
    )


def test_the_difference_is_shown_and_nothing_changes(machine: Machine, running: Any) -> None:
    listed = running.answer_to(running.request("tools/list", {}))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["report"]  # at first use
    before = machine.read("/var/lib/mcpwrap/pins/canary.json")
    said = machine.as_root(f"mcpwrap tools diff canary {NEXT}").out
    assert "version 1.2.0 -> 1.3.0" in said
    assert 'changed: tool "report"' in said
    assert "new: " not in said
    assert machine.read("/var/lib/mcpwrap/pins/canary.json") == before
    assert "nothing of 'canary' is held back" in machine.as_root("mcpwrap tools diff canary").out
    same = machine.as_root(f"mcpwrap tools diff canary --next python3 {PROGRAM} 1.2.0 lists").out
    assert same.splitlines()[-1] == "the next version lists what is accepted"


def test_a_server_without_a_network_has_a_next_version_without(machine: Machine) -> None:
    report = report_in(difference(machine, "quiet"))
    assert report["interfaces"] == ["lo"]
    assert {report[key] for key in ("past the proxy", "database")} == {"OSError"}
    assert report["permitted"] == "KeyError"  # it has no proxy to ask
    expect_nothing_left(machine)


def answered(machine: Machine, answer: str) -> tuple[int, str, str, str]:
    """Type the command with the secrets, and this answer to its question."""
    plan = {
        "command": f"mcpwrap tools diff canary --json --with-secrets {NEXT}",
        "given": "",
        "early": "",
        "question": "Type `yes` to give it these secrets: ",
        "answer": answer,
        "meanwhile": "",
    }
    status, shown, out, err = machine.call("root_terminal", "answer", plan)
    assert SECRET not in shown + out + err
    return status, shown, out, err


def test_it_gets_the_secrets_if_a_person_says_yes(machine: Machine) -> None:
    status, shown, out, _ = answered(machine, "yes\n")
    assert "secrets: TOKEN" in shown
    assert "program: /usr/bin/python3 /opt/next_version.py 1.3.0 lists" in shown
    assert status == 0
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    assert report_in(json.loads(out))["token"] == digest
    expect_nothing_left(machine)


def test_after_another_answer_nothing_starts(machine: Machine) -> None:
    status, _, out, err = answered(machine, "y\n")
    assert (status, out) == (1, "")
    assert "[E-NEXT-NOT-CONFIRMED]" in err
    assert machine.show("mcpwrap-next", "ActiveState") == {"ActiveState": "inactive"}


def test_without_a_terminal_nobody_can_say_so(machine: Machine) -> None:
    said = machine.as_root(f"mcpwrap tools diff canary --with-secrets {NEXT}", status=2)
    assert "[E-USAGE-NO-TERMINAL]" in said.err


@pytest.mark.parametrize(
    "killed",
    ["bin/mcpwrap tools", "libexec/mcpwrap/mcpwrap-root next", "libexec/mcpwrap/mcpwrap-next"],
)
def test_whichever_process_is_killed_nothing_of_it_is_left(machine: Machine, killed: str) -> None:
    hanging = f"mcpwrap tools diff canary --next python3 {PROGRAM} 1.3.0 hangs"
    machine.as_root(f"systemd-run --quiet --collect --unit=hanging {hanging}")
    pace.until(lambda: "next_version.py" in machine.look("pgrep -a -u mcpwrap-next || true"))
    assert "127.77." in machine.look("nft list set inet mcpwrap next_addr")
    machine.as_root(f"pkill -KILL -f '^/usr/bin/python3 -I /usr/{killed}'")
    pace.until(
        lambda: machine.show("mcpwrap-next-egress", "ActiveState")["ActiveState"] == "inactive"
    )
    expect_nothing_left(machine)
    assert report_in(difference(machine, "canary"))["account"] == "mcpwrap-next"


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        (f"mcpwrap tools diff far {NEXT}", 2, "E-NEXT-NOT-LOCAL"),
        (f"mcpwrap tools diff none {NEXT}", 2, "E-PINS-NO-SERVER"),
        ("mcpwrap tools diff canary --next", 2, "E-NEXT-NO-COMMAND"),
        ("mcpwrap tools diff canary --next no-such-program", 2, "E-NEXT-NO-COMMAND"),
        ("mcpwrap tools diff canary --next true", 1, "E-NEXT-FAILED"),
        ("mcpwrap tools diff canary --next yes", 1, "E-NEXT-FAILED"),
    ],
)
def test_the_refusal_names_the_reason(
    machine: Machine, command: str, status: int, code: str
) -> None:
    assert f"[{code}]" in machine.as_root(command, status=status).err
    expect_nothing_left(machine)


def test_only_root_starts_it(machine: Machine) -> None:
    said: Done = machine.as_user("alice", f"mcpwrap tools diff canary {NEXT}", status=2)
    assert "[E-USAGE-NEEDS-ROOT]" in said.err


@only_in_test_all("a download takes seconds, and no other mechanism")
@pytest.mark.parametrize("server", ["npx", "uvx"])
def test_the_version_is_downloaded_into_its_own_home(
    machine: Machine, internet: Internet, server: str
) -> None:
    internet.forget()
    rest = "npx -y bed-echo" if server == "npx" else "uvx bed-echo"
    found = difference(machine, server, f"--next {rest}")
    names = [one["name"] for one in found["changes"]]
    assert "echo" in names
    assert internet.hosts() == {{"npx": "npm.good.test", "uvx": "pypi.good.test"}[server]}
    expect_nothing_left(machine)

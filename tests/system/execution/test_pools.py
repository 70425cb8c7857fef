"""Changes of the configuration of Python servers, and of the machine below them."""

import json
import shutil
from collections.abc import Callable

import pytest

from tests.shared import pace
from tests.system.bed import package
from tests.system.bed.machine import Machine
from tests.system.execution.session_calls import Calls
from tests.system.support import emptied
from tests.system.support.python_servers import run_python
from tests.system.support.tiers import only_in_test_all

STAGE = emptied.booted
WHO = "import os, time\ntime.sleep(2)\nprint(os.getuid())"  # longer than requests come apart
MARKS = (  # of slot N of the server
    "getent passwd mcpj-python-{n}",
    "getent group mcpj-python-{n}",
    "systemctl is-active mcpwrap-job@python-{n}.socket",
    "systemctl is-enabled mcpwrap-job@python-{n}.socket",
    "ls -d /etc/systemd/system/mcpwrap-job@python-{n}.service.d",
    "ls /run/mcpwrap/job/python-{n}.sock",
)
OF_THE_WORKER = (
    "systemctl is-active mcpwrap-worker.socket",
    "systemctl is-active mcpwrap-worker.service",
    "ls /var/lib/mcpwrap/worker.json",
    "nft -n list set inet mcpwrap worker_clients | grep elements",
    "getent passwd mcpw-python",
)


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend the machine without a server of an earlier story."""
    emptied.empty(machine)
    return machine


def configure(machine: Machine, at_once: int, name: str = "python") -> None:
    """Apply a Python server with so many run slots."""
    machine.configure(
        f'[mcp_servers.{name}]\npython = "/usr/bin/python3"\n'
        f'[mcp_servers.{name}.mcpwrap]\nagents = ["alice"]\n'
        f"runs = {{ seconds = 20, at_once = {at_once} }}\n"
    )
    machine.apply()


def slots(machine: Machine) -> dict[int, int]:
    """Return the number of marks that each run slot has; of one that is there it is all."""
    return {
        number: sum(is_there(machine, mark.format(n=number)) for mark in MARKS)
        for number in range(4)
    }


def is_there(machine: Machine, command: str) -> bool:
    """Return whether a command succeeds."""
    return bool(machine.look(f"{command} >/dev/null 2>&1 && echo there || true"))


def uids_of_runs(machine: Machine, number: int) -> set[int]:
    """Return the UIDs of so many runs at once."""
    codes = [f"{WHO}  # {each}" for each in range(number)]
    with machine.session("python") as session:
        session.initialize()
        calls = Calls(session, codes)
        calls.until(number)
    return {int(calls.stdout_of(code)) for code in codes}


@only_in_test_all("other stories of `apply` are in make test, and other runs")
def test_run_slots_come_and_go_with_the_configuration(machine: Machine) -> None:
    every = len(MARKS)
    configure(machine, 1)
    assert slots(machine) == {0: every, 1: 0, 2: 0, 3: 0}
    first = machine.uid_of("mcpj-python-0")
    assert uids_of_runs(machine, 3) == {first}
    configure(machine, 3)
    assert slots(machine) == {0: every, 1: every, 2: every, 3: 0}
    uids = {machine.uid_of(f"mcpj-python-{number}") for number in range(3)}
    assert uids_of_runs(machine, 3) == uids
    assert first in uids
    configure(machine, 2)
    assert slots(machine) == {0: every, 1: every, 2: 0, 3: 0}
    assert len(uids_of_runs(machine, 4)) == 2
    assert machine.apply() == "nothing to do\n"

    assert all(is_there(machine, mark) for mark in OF_THE_WORKER)
    machine.configure("")
    machine.apply()
    assert slots(machine) == dict.fromkeys(range(4), 0)
    assert [mark for mark in OF_THE_WORKER if is_there(machine, mark)] == []
    machine.as_user("alice", "mcpwrap-connect python </dev/null", status=78)
    assert machine.apply() == "nothing to do\n"
    token = "ls /var/lib/mcpwrap/worker/python"  # its hash, without effect now
    assert is_there(machine, token)
    machine.as_root("mcpwrap apply --purge")
    assert not is_there(machine, token)


def runs(machine: Machine) -> tuple[int, int]:
    """Return the numbers of runs and of requests that wait, as `status` shows them."""
    (row,) = json.loads(machine.as_root("mcpwrap status --json").out)
    return row["runs"]["running"], row["runs"]["queued"]


@only_in_test_all("other stories of a reboot are in make test")
def test_after_a_reboot_a_python_server_works(boot: Callable[..., Machine]) -> None:
    machine = boot()
    configure(machine, 2)
    machine.reboot()
    assert machine.apply() == "nothing to do\n"
    assert slots(machine) == {0: len(MARKS), 1: len(MARKS), 2: 0, 3: 0}
    assert run_python(machine, "print(1)").stdout == "1\n"
    assert doctor(machine) <= {"good"}


@only_in_test_all("other stories of a purge are in make test")
def test_purge_removes_what_executes_code(boot: Callable[..., Machine]) -> None:
    machine = boot()
    configure(machine, 2)
    run_python(machine, "print(1)")
    machine.as_root("DEBIAN_FRONTEND=noninteractive apt-get purge -y mcpwrap")
    assert machine.look("getent passwd | grep mcp || true") == ""
    assert machine.look("getent group | grep mcp || true") == ""
    units = "systemctl list-units --all --no-legend --type=service,slice,socket,timer 'mcpwrap*'"
    assert machine.look(units) == ""
    assert machine.look("find /etc /run /var -name '*mcpw*' -not -path '/var/log/journal/*'") == ""


@only_in_test_all("builds the package of 0.1.0 too")
def test_a_machine_from_an_earlier_release_gets_a_python_server(
    boot: Callable[..., Machine],
) -> None:
    machine = boot(package=False)
    shutil.copy2(package.build_release("0.1.0", machine.suite), machine.path("/root/old.deb"))
    machine.as_root("apt-get install -y /root/old.deb; usermod -aG mcpwrap alice")
    machine.configure(
        '[mcp_servers.time]\ncommand = "/opt/mcp/pypi/bin/mcp-server-time"\n'
        '[mcp_servers.time.mcpwrap]\nagents = ["alice"]\n'
    )
    machine.apply()
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    configure(machine, 2)
    assert run_python(machine, "print(1)").stdout == "1\n"
    assert doctor(machine) <= {"good"}


@only_in_test_all("other servers' status and doctor are in make test")
def test_status_and_doctor_describe_a_python_server(machine: Machine) -> None:
    configure(machine, 2)
    with machine.session("python") as session:
        session.initialize()
        Calls(session, [f"import time\ntime.sleep(60)\n{number}" for number in range(3)])
        pace.until(lambda: runs(machine) == (2, 1))
    pace.until(lambda: runs(machine) == (0, 0))  # the agent has gone
    assert doctor(machine) <= {"good"}
    machine.as_root("systemctl stop mcpwrap-worker.socket mcpwrap-worker.service")
    (row,) = json.loads(machine.as_root("mcpwrap status --json", status=1).out)
    assert row["state"] == "no-worker"
    assert "failed" in doctor(machine)
    failed = run_python(machine, "print(1)")
    assert failed.is_error
    assert "the code was not executed" in failed.text
    assert failed.text.endswith("[E-WORKER-UNREACHABLE]")
    machine.apply()
    assert run_python(machine, "print(1)").stdout == "1\n"


def doctor(machine: Machine) -> set[str]:
    """Return the verdicts of `mcpwrap doctor`, but for hosts and limits.

    The machine has no way to any host, and counts memory only where its own host lets it.
    """
    found = json.loads(machine.as_root("mcpwrap doctor --json || true").out)
    checks = {check["what"]: check["state"] for check in found}
    assert checks["python: run print(1)"]
    assert checks.pop("python: reach an address past Squid") == "unknown"
    assert checks.pop("python: limits of runs") in {"good", "warning"}
    return set(checks.values())

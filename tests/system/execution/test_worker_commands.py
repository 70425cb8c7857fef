"""`mcpwrap worker`: a machine executes code for others, by TLS and with a token, until it stops."""

import json
import re
from collections.abc import Callable

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.execution import one_worker
from tests.system.execution.one_worker import (
    CERTIFICATE,
    ENABLE,
    KEY,
    LISTEN,
    OWN_FILE,
    TOKEN,
    enable,
    execute,
    make_certificate,
    pool,
    reply,
    state_of,
)
from tests.system.support import emptied, kill_at_syscall
from tests.system.support.python_servers import PYTHON_SERVER, run_python
from tests.system.support.tiers import only_in_test_all

STAGE = one_worker.plugged


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend the machine without a worker of an earlier story."""
    emptied.empty(machine)
    return machine


def test_another_machine_has_code_executed_by_tls_and_with_the_token(machine: Machine) -> None:
    out = machine.as_root(f"mcpwrap {ENABLE}").out
    (token,) = (line.removeprefix("token: ") for line in out.splitlines() if "token: " in line)
    status, result = execute(machine, "print(6 * 7)", token)
    assert (status, result["stdout"]) == (200, "42\n")
    for wrong in ("", token[:-1], token.swapcase(), TOKEN):
        assert execute(machine, token=wrong)[0] == 401, wrong
        assert reply(machine, "metrics", wrong)[0] == 401, wrong
    assert reply(machine, "metrics", token)[0] == 200
    assert reply(machine, "healthz", token, "--tls-max", "1.2")[0] == 0
    assert reply(machine, "healthz", token, scheme="http")[0] == 0
    assert reply(machine, "healthz", "")[0] == 200  # totals, for load balancers
    assert token not in machine.look("grep -r . /etc/mcpwrap /var/lib/mcpwrap; journalctl -b")

    assert state_of(machine, 0)["listen"] == LISTEN
    machine.as_root("mcpwrap worker disable")
    assert reply(machine, "healthz", token)[0] == 0
    assert state_of(machine, 1)["state"] == "off"
    assert machine.look("ls /etc/mcpwrap/conf.d /var/lib/mcpwrap/worker; id mcpj-worker-0 || true")
    left = f"{OWN_FILE} /var/lib/mcpwrap/worker/worker /var/lib/mcpwrap/worker.json"
    assert machine.look(f"ls {left} 2>/dev/null || true") == ""
    assert machine.apply() == "nothing to do\n"


# What is there is prepared by a command, with `openssl`.
REFUSED = {
    "an address of another machine": (
        "true", ENABLE.replace("10.0.0.5", "10.0.0.6"), "E-WORKER-LISTEN",
    ),
    "a name": ("true", ENABLE.replace("10.0.0.5", "worker.example.com"), "E-WORKER-LISTEN"),
    "all addresses": ("true", ENABLE.replace("10.0.0.5", "0.0.0.0"), "E-WORKER-LISTEN"),
    "a file that is not there": ("true", ENABLE.replace(KEY, "/none.key"), "E-WORKER-TLS"),
    "the key of another certificate": (
        make_certificate("/root/c.pem", "/root/c.key"),
        ENABLE.replace(KEY, "/root/c.key"), "E-WORKER-TLS",
    ),
    "a key with a password": (
        make_certificate("/root/c.pem", "/root/c.key", "-passout pass:secret"),
        ENABLE.replace(CERTIFICATE, "/root/c.pem").replace(KEY, "/root/c.key"), "E-WORKER-TLS",
    ),
    "a key that all can read": (
        f"install -m 644 {KEY} /etc/open.key", ENABLE.replace(KEY, "/etc/open.key"),
        "E-WORKER-TLS",
    ),
    "a certificate that its owner can change": (
        f"install -o alice {CERTIFICATE} /etc/alice.pem",
        ENABLE.replace(CERTIFICATE, "/etc/alice.pem"), "E-WORKER-TLS",
    ),
}  # fmt: skip
CHANGED = (
    "find /etc/mcpwrap /var/lib/mcpwrap /etc/systemd/system -printf '%p %m %u %s %C@\\n' | sort"
)


@only_in_test_all("errors of the command line, whose rows are in the unit tests too")
def test_enable_refuses_what_cannot_be_used_and_changes_nothing(machine: Machine) -> None:
    before = machine.look(CHANGED)
    for what, (prepare, command, name) in REFUSED.items():
        machine.as_root(prepare)
        done = machine.as_root(f"mcpwrap {command} --stdin", stdin=TOKEN, status=2)
        assert f"[{name}]" in done.err, what
        assert "nothing was changed" in done.err, what
        assert machine.look(CHANGED) == before, what
    err = enable(machine, "too-short", status=2)
    assert "[E-WORKER-TOKEN-VALUE]" in err
    assert "too-short" not in err
    err = machine.as_user("alice", f"mcpwrap {ENABLE}", status=2).err
    assert "root" in err
    assert machine.look(CHANGED) == before
    enable(machine)  # the twin
    assert execute(machine)[0] == 200


@only_in_test_all("errors of the command line, whose rows are in the unit tests too")
def test_a_port_that_is_taken_is_refused_and_other_settings_are_kept(machine: Machine) -> None:
    listens = f"python3 -c \"import socket, sys; s = socket.create_server(('{LISTEN[:-5]}', 9443));"
    listens += " print('listens', flush=True); sys.stdin.read()\""
    with machine.session("", user="root", command=f"exec {listens}") as other:
        assert other.read_line() == "listens"
        assert "[E-WORKER-LISTEN]" in enable(machine, status=2)
    enable(machine)
    assert "the token stays as it is" in machine.as_root(f"mcpwrap {ENABLE}").out
    other_port = ENABLE.replace("9443", "9444")
    err = machine.as_root(f"mcpwrap {other_port}", status=2).err
    assert "[E-WORKER-CONFIGURED]" in err
    assert execute(machine)[0] == 200
    machine.write(OWN_FILE, machine.read(OWN_FILE) + "runs = { at_once = 1 }\n")
    assert "E-WORKER-CONFIGURED" in machine.as_root(f"mcpwrap {ENABLE}", status=2).err
    machine.apply()
    assert pool(machine)["slots"] == 1


@only_in_test_all("a variant of the first story")
def test_a_new_token_replaces_the_former_at_once(machine: Machine) -> None:
    machine.configure("")
    err = machine.as_root("mcpwrap worker token", status=2).err
    assert "[E-WORKER-NOT-ENABLED]" in err
    enable(machine)
    done = machine.as_root("mcpwrap worker token")
    token = done.out.strip()  # alone on standard output
    assert execute(machine)[0] == 401
    assert execute(machine, token=token)[0] == 200
    assert machine.as_root("mcpwrap worker token --stdin", stdin=f"{TOKEN}\n").out == ""
    assert execute(machine, token=token)[0] == 401
    assert execute(machine)[0] == 200


@only_in_test_all("a variant of the story behind a load balancer")
def test_a_draining_worker_ends_what_it_has_and_takes_nothing_new(machine: Machine) -> None:
    for verb in ("drain", "resume"):
        err = machine.as_root(f"mcpwrap worker {verb}", status=2).err
        assert "[E-WORKER-NOT-CONFIGURED]" in err
        assert "root" in machine.as_user("alice", f"mcpwrap worker {verb}", status=2).err
    enable(machine)
    path, code = f"https://{LISTEN}", "import time\ntime.sleep(2)\nprint('to the end')"
    held = machine.guest_command("held_requests", "results", path, CERTIFICATE, TOKEN, code, 3)
    with machine.session("", user="root", command=f"exec {held}") as session:
        pace.until(lambda: pool(machine)["queued"] == 1)
        machine.as_root("mcpwrap worker drain")
        assert state_of(machine, 1)["state"] == "draining"
        assert execute(machine)[0] == reply(machine, "healthz")[0] == 503
        assert json.loads(session.read_line()) == [[200, "to the end\n"]] * 3
    machine.as_root("mcpwrap worker resume")
    assert execute(machine)[0] == reply(machine, "healthz")[0] == 200
    assert pool(machine)["queued"] == 0


@only_in_test_all("a variant of the story before")
def test_a_run_in_a_slot_that_is_removed_has_an_answer(machine: Machine) -> None:
    enable(machine)
    code = f"import time\ntime.sleep({pace.promised(3.0)})\nprint('to the end')"  # beyond `apply`
    given = [f"https://{LISTEN}", CERTIFICATE, TOKEN, code, 3]
    held = machine.guest_command("held_requests", "results", *given)
    with machine.session("", user="root", command=f"exec {held}") as session:
        pace.until(lambda: (pool(machine)["running"], pool(machine)["queued"]) == (2, 1))
        machine.write(OWN_FILE, machine.read(OWN_FILE) + "runs = { at_once = 1 }\n")
        machine.apply()
        found = json.loads(session.read_line())
    (ended,) = (text for status, text in found if text != "to the end\n")
    assert "the run slot was removed or stopped by the operator" in ended
    # The run in the slot that stays goes on, and so does the request that waits for it.
    assert sorted(found) == sorted([[200, ended], *[[200, "to the end\n"]] * 2])
    assert pool(machine)["slots"] == 1
    assert machine.look("getent passwd mcpj-worker-1 || true") == ""
    assert machine.apply() == "nothing to do\n"


@only_in_test_all("a variant of test_operate.py")
def test_status_and_doctor_tell_a_worker_that_is_down(machine: Machine) -> None:
    enable(machine)
    machine.as_root("systemctl stop mcpwrap-worker.socket mcpwrap-worker.service")
    found = state_of(machine, 1)
    assert (found["state"], found["fix"]) == ("stopped", "`sudo mcpwrap apply`")
    checks = json.loads(machine.as_root("mcpwrap doctor --json", status=1).out)
    assert any("worker" in each["what"] for each in checks if each["state"] == "failed")
    assert reply(machine, "healthz")[0] == 0
    machine.apply()
    assert state_of(machine, 0)["state"] == "ready"
    assert execute(machine)[0] == 200
    machine.as_root("systemctl stop mcpwrap-job@worker-1.socket")
    assert pool(machine)["closed_slots"] == 1
    machine.apply()
    assert pool(machine)["closed_slots"] == 0
    machine.as_root("mcpwrap doctor")


@only_in_test_all("a variant of test_operate.py")
@pytest.mark.parametrize(
    ("damage", "flaw"),
    [
        (f"rm {KEY}", "a file that [worker] names is missing: key"),
        (f": >{KEY}", "what [worker] names is not a PEM certificate with its key"),
    ],
    ids=["missing", "empty"],
)
def test_a_key_that_cannot_be_used_keeps_only_other_machines_out(
    machine: Machine, damage: str, flaw: str
) -> None:
    machine.configure(PYTHON_SERVER)
    machine.apply()
    enable(machine)
    machine.announce(re.escape(f"other machines are refused: {flaw} [E-WORKER-TLS]"))
    restart = "systemctl restart mcpwrap-worker.service"
    machine.as_root(f"cp {KEY} /root/kept.key; {damage}; {restart}")
    assert run_python(machine, "6 * 7").value == "42"
    assert reply(machine, "healthz")[0] == 0
    found = state_of(machine, 1)
    assert (found["state"], found["listen"]) == ("ready", "")
    assert f"{flaw} [E-WORKER-TLS]" in found["status"]
    checks = json.loads(machine.as_root("mcpwrap doctor --json", status=1).out)
    assert [each["what"] for each in checks if each["state"] == "failed"] == ["worker: TLS"]
    machine.as_root(f"mv /root/kept.key {KEY}; {restart}")  # the twin
    assert execute(machine)[0] == 200
    assert state_of(machine, 0)["listen"] == LISTEN


PROGRAM = f"worker enable --stdin {LISTEN} {CERTIFICATE} {KEY}"


@only_in_test_all("the whole sweep; that of `apply` has some points in make test")
@pytest.mark.timeout(900)  # dozens of times: enable, kill, check, apply
def test_killed_anywhere_enable_leaves_the_old_state_or_one_that_apply_completes(
    machine: Machine,
) -> None:
    changes = {"rename": 8, "unlink": 0, kill_at_syscall.FORK: 5}
    found = kill_at_syscall.calls(machine, PROGRAM, stdin=f"{TOKEN}\n")
    kills = [call for call in kill_at_syscall.without_looks(found) if call.kind in changes]
    assert len(kills) >= sum(changes.values())
    ended: set[bool] = set()
    for call in kills:
        emptied.empty(machine)
        kill_at_syscall.kill_at(machine, call, PROGRAM, stdin=f"{TOKEN}\n")
        assert execute(machine, token=TOKEN[::-1])[0] in (0, 401), call
        is_configured = machine.look(f"ls {OWN_FILE} 2>/dev/null || true") != ""
        ended.add(is_configured)
        if is_configured:
            machine.apply()
        else:
            assert reply(machine, "healthz")[0] == 0, call
            enable(machine)
        assert execute(machine)[0] == 200, call
        assert machine.apply() == "nothing to do\n", call
    assert ended == {False, True}


@only_in_test_all("the whole sweep; that of `apply` has some points in make test")
@pytest.mark.timeout(900)
def test_killed_anywhere_disable_is_completed_by_the_same_command(machine: Machine) -> None:
    enable(machine)
    found = kill_at_syscall.calls(machine, "worker disable")
    kills = kill_at_syscall.without_looks(found)
    assert len(kills) >= 5
    for call in kills:
        emptied.empty(machine)
        enable(machine)
        kill_at_syscall.kill_at(machine, call, "worker disable")
        machine.as_root("mcpwrap worker disable")
        assert reply(machine, "healthz")[0] == 0, call
        assert machine.look("ls /var/lib/mcpwrap/worker/worker 2>/dev/null || true") == "", call
        assert machine.apply() == "nothing to do\n", call


@pytest.mark.parametrize("has_free_bind", [True, False], ids=["as it is", "without FreeBind="])
@only_in_test_all("boots a machine of its own")
def test_the_worker_listens_after_a_boot_before_its_address_is_there(
    boot: Callable[..., Machine], *, has_free_bind: bool
) -> None:
    machine = boot()
    machine.as_root(f"{one_worker.PLUG}; umask 077; {make_certificate(CERTIFICATE, KEY)}")
    enable(machine)
    if not has_free_bind:  # the mutation twin
        machine.announce("mcpwrap-worker.socket")
        drop_in = "/etc/systemd/system/mcpwrap-worker.socket.d/20-twin.conf"
        machine.write(drop_in, "[Socket]\nFreeBind=no\n")
    machine.reboot()
    assert state_of(machine, 0 if has_free_bind else 1)["state"] == (
        "ready" if has_free_bind else "failed"
    )
    machine.as_root(one_worker.PLUG)
    assert execute(machine)[0] == (200 if has_free_bind else 0)

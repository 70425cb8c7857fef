"""Whoever of a session is killed, nothing of it is left, and the next one works."""

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.servers import PROBE_SERVER

# What a hostile server does to stay: it ignores what it can, forks twice, and leaves its group.
STAY = """
import os, signal, time, glob
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 100)
            time.sleep(1000)
        os._exit(0)
    os.wait()
tried = []
for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
    for path in ("system.slice", "user.slice", "init.scope"):
        try:
            open(f"{root}/{path}/cgroup.procs", "w").write("0"); tried.append("left")
        except OSError: pass
for path in {groups!r}:
    try:
        open(path + "/cgroup.procs", "w").write("0"); tried.append("left")
    except OSError as error: tried.append(error.errno)
result = tried
"""
# Kills one process and looks until no other of the sessions' processes is left, by their pidfds.
KILL_AND_WATCH = """
import json, os, select, signal, subprocess, time
victim, watched = {victim}, {watched}
poll, left = select.poll(), {{}}
for pid in watched:
    try: fd = os.pidfd_open(pid); left[fd] = pid; poll.register(fd, select.POLLIN)
    except ProcessLookupError: pass
begin = time.monotonic()
os.kill(victim, signal.SIGKILL)
while left and (wait := begin + 2 - time.monotonic()) > 0:
    for fd, _ in poll.poll(wait * 1000): poll.unregister(fd); del left[fd]
print(json.dumps([sorted(left.values()), time.monotonic() - begin]))
"""
# A stand-in for an agent: it starts the stub as its child, hands it pipes, and can be killed.
AGENT = """
import os, pathlib, subprocess, sys, threading
stub = subprocess.Popen(["mcpwrap-connect", "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pathlib.Path("stub.pid").write_text(str(stub.pid))
def copy(from_fd, to_fd):
    while data := os.read(from_fd, 65536): os.write(to_fd, data)
    os.close(to_fd)
threading.Thread(target=copy, args=(0, stub.stdin.fileno()), daemon=True).start()
copy(stub.stdout.fileno(), 1)
sys.exit(stub.wait())
"""
RUN_AGENT = "python3 /opt/agent.py; tail --pid=$(cat stub.pid) -f /dev/null"


@pytest.fixture(scope="module", params=list(Profile), ids=lambda profile: profile.value)
def crashing(suite: str, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Boot a machine of each profile with the probe server alone."""
    from tests.system.bed import installed
    from tests.system.bed.session import PROBE

    machine = installed.installed_machine(suite, request.param)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/agent.py", AGENT)
        machine.configure(PROBE_SERVER)
        machine.apply()
        yield machine
    finally:
        machine.remove()


def groups_of(machine: Machine) -> list[str]:
    """Return the control groups of all sessions, as paths."""
    group = machine.show("mcpwrap@probe.service", "ControlGroup")["ControlGroup"]
    trees = [f"/sys/fs/cgroup{tree}{group}" for tree in ("", "/unified", "/systemd")]
    return machine.as_root(
        f"ls -d {' '.join(f'{t}/s-*' for t in trees)} 2>/dev/null; true"
    ).out.split()


def pid_of(machine: Machine, who: str) -> int:
    """Return the process that is to be killed."""
    if who in {"mcpwrap-gate", "mcpwrap@probe"}:
        return int(machine.show(f"{who}.service", "MainPID")["MainPID"])
    if who == "gate's child":
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        return min(map(int, machine.as_root(f"pgrep -P {gate}").out.split()))
    pattern = {
        "agent": "^python3 /opt/agent.py",
        "stub": "^/usr/bin/python3 -ISE .*mcpwrap-connect probe",
    }[who]
    return min(map(int, machine.as_root(f"pgrep -u alice -f '{pattern}'").out.split()))


@pytest.mark.parametrize("who", ["agent", "stub", "gate's child", "mcpwrap-gate", "mcpwrap@probe"])
def test_whoever_is_killed_takes_the_session_along(crashing: Machine, who: str) -> None:
    """Each of a session in turn, by SIGKILL; over all processes of the server's account."""
    ends_all = who in {"mcpwrap-gate", "mcpwrap@probe"}
    with crashing.session("probe", command=RUN_AGENT) as session:
        session.evaluate("result = 1")
        first = set(crashing.pids("probe"))
        victim = pid_of(crashing, who)
        with crashing.session("probe") as other:
            other.evaluate("result = 1")
            others = set(crashing.pids("probe")) - first
            tried = session.evaluate(STAY.replace("{groups!r}", repr(groups_of(crashing))))
            assert len(tried) >= 2
            assert set(tried) == {13}  # Landlock: not even its own group's file opens
            mine = set(crashing.pids("probe")) - others
            assert len(mine) == 4
            if ends_all:
                crashing.announce("mcpwrap")
            watched = sorted(mine | others if ends_all else mine)
            left, _ = crashing.probe(KILL_AND_WATCH.format(victim=victim, watched=watched))
            assert left == []
            if not ends_all:
                assert other.evaluate("result = 'alive'") == "alive"
                assert set(crashing.pids("probe")) == others
            other.close()
    if who == "mcpwrap@probe" and crashing.profile is Profile.LIMITS:
        # On cgroup v1 nobody tells a systemd in a container that a control group is empty.
        crashing.await_admission("probe")
    crashing.as_user("alice", "mcpwrap-connect probe </dev/null")


def test_without_its_control_group_a_session_would_be_left(crashing: Machine) -> None:
    """The mechanism taken away: a supervisor that ends the server's own process and no more."""
    kill = "        self._kill()\n        with suppress"
    crashing.announce("mcpwrap@probe.service")  # systemd is left with what the group did not end
    with crashing.patched("linux/cgroup", kill, "        return True\n        with suppress"):
        with crashing.session("probe") as session:
            session.evaluate(STAY.replace("{groups!r}", "[]"))
            mine = crashing.pids("probe")
            victim = pid_of(crashing, "stub")
            left, _ = crashing.probe(KILL_AND_WATCH.format(victim=victim, watched=mine))
            assert left
        crashing.as_root("systemctl kill --signal=KILL mcpwrap@probe")
    crashing.await_admission("probe")


def rows(machine: Machine) -> list[dict[str, object]]:
    out = machine.as_user("alice", "mcpwrap sessions --json").out
    found: list[dict[str, object]] = json.loads(out)
    return found


def test_an_operator_ends_one_session_and_no_other(crashing: Machine) -> None:
    with crashing.session("probe") as session, contextlib.ExitStack() as stack:
        session.evaluate("result = 1")
        first = [row["session"] for row in rows(crashing)]
        other = stack.enter_context(crashing.session("probe"))
        other.evaluate("result = 1")
        assert len(rows(crashing)) == 2
        row = next(row for row in rows(crashing) if row["session"] in first)
        assert (row["name"], row["agent"], row["agent_uid"]) == ("probe", "alice", 1000)
        assert row["tasks"] == 1
        assert str(row["since"]).startswith("20")
        assert "needs root" in crashing.as_user("alice", f"mcpwrap kill {first[0]}", status=2).err
        assert len(rows(crashing)) == 2
        crashing.as_root(f"mcpwrap kill {first[0]}")
        status, err = session.close()
        assert (status, "signal 9" in err) == (137, True)
        assert other.evaluate("result = 'alive'") == "alive"
    assert crashing.as_root("mcpwrap kill 0000000000000000", status=2).err.startswith("mcpwrap: ")


def test_a_failing_start_is_explained_and_held_back(boot: Callable[..., Machine]) -> None:
    """Five tries in a row: the agent is told why each time, and the server is started but twice."""
    machine = boot()
    machine.configure(
        PROBE_SERVER.replace("inherits =", 'env = { A = "${TOKEN}" }\ninherits =')
        + '[mcp_servers.probe.mcpwrap]\nagents = ["alice"]\n'
    )
    assert "secret set probe TOKEN" in machine.apply()
    machine.announce("mcpwrap@probe")
    errors = [
        machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70).err
        for _ in range(5)
    ]
    for err in errors:
        assert "the secret TOKEN cannot be used: it is not set; `sudo mcpwrap secret set" in err
    assert "next try in" not in errors[0]
    assert "next try in" in errors[-1]
    starts = [
        entry for entry in machine.journal("-u", "mcpwrap@probe.service")
        if str(entry["MESSAGE"]).startswith("Starting ")
    ]  # fmt: skip
    assert 2 <= len(starts) < 5
    status = machine.as_user("alice", "mcpwrap status probe", status=1).out
    assert "failed" in status
    assert "cannot start: the secret TOKEN cannot be used: it is not set" in status
    machine.as_root("mcpwrap secret set probe TOKEN", stdin="a-canary-value")
    machine.as_root("mcpwrap restart probe")  # which does not wait for the gate
    machine.as_user("alice", "until mcpwrap-connect probe </dev/null; do :; done 2>/dev/null")

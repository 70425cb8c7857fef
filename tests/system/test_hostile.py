"""A server that turns against its own supervisor, which has the same UID, ends no other session."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import PROBE, Session
from tests.system.releases import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE

# Like the probe, but it does not end when its agent leaves.
STUBBORN = PROBE + "\nimport time\ntime.sleep(1000)\n"
SERVERS = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/stubborn.py"]
env = { TOKEN = "${TOKEN}" }
[mcp_servers.probe.mcpwrap]
agents = ["alice", "bob"]
shared = true
limits = { sessions = 8 }
[mcp_servers.cat]
command = "/usr/bin/cat"
"""


@pytest.fixture(scope="module", params=list(Profile), ids=lambda profile: profile.value)
def machine_of_each_kind(suite: str, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Boot a machine of each profile, with a server that has a secret and does not heed its end."""
    machine = installed.installed_machine(suite, request.param)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("bob", groups="mcpwrap")
        machine.write("/opt/stubborn.py", STUBBORN)
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("mcpwrap secret set probe TOKEN", stdin="a-canary-value")
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def hostile(machine_of_each_kind: Machine) -> Iterator[Machine]:
    """Lend it to one test: the wrapper must live on, without an unannounced line."""
    machine = machine_of_each_kind
    machine.as_root("mcpwrap restart probe; mcpwrap restart cat")
    before = [machine.show(f"mcpwrap@{name}", "MainPID") for name in ("probe", "cat")]
    yield machine
    assert [machine.show(f"mcpwrap@{name}", "MainPID") for name in ("probe", "cat")] == before
    assert machine.unannounced() == []


STUBS = "'^/usr/bin/python3 -ISE .*mcpwrap-connect'"


@contextmanager
def opened(machine: Machine, count: int) -> Iterator[list[Session]]:
    """Open sessions one after the other; at the end kill their stubs: their server ignores it."""
    sessions = []
    try:
        for _ in range(count):
            sessions.append(machine.session("probe"))
            sessions[-1].evaluate("result = 1")
        yield sessions
    finally:
        machine.as_root(f"pkill -KILL -u alice -f {STUBS} || true")
        for session in sessions:
            session.close()


def test_a_stub_that_dies_takes_no_other_session_along(hostile: Machine) -> None:
    """Where there is a redactor, which ends with the server it copies from."""
    for _ in range(5):
        with opened(hostile, 2) as (other, _killed):
            hostile.as_root(f"pkill -KILL -u alice -n -f {STUBS}")
            assert other.evaluate("result = 'alive'") == "alive"


def test_many_that_end_at_once_do_not_trip_over_each_other(hostile: Machine) -> None:
    each = (
        "for i in 1 2 3 4 5 6 7; do sleep 1000 | mcpwrap-connect cat >/dev/null 2>&1 & done; wait"
    )
    until = "until test $(pgrep -cu mcpw-cat -x cat) = 7; do :; done"
    for _ in range(8):
        with hostile.session("", command=each) as crowd:
            hostile.as_root(f"timeout 20 sh -c '{until}'")
            hostile.as_root(f"pkill -KILL -u alice -f {STUBS}; pkill -u alice -x sleep")
            crowd.process.kill()  # its unit on v1 may not be told that it is empty
            crowd.close()
        hostile.await_end_of("cat")


HIDE = """
import glob, os, re
path = re.search("(?:name=systemd|^0:):(/.+)$", open("/proc/self/cgroup").read(), re.M)[1]
for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
    leaf = root + path
    if os.path.isdir(leaf):
        for file in ("cgroup.procs", "cgroup.kill", "cgroup.threads", "tasks"):
            try: os.chmod(leaf + "/" + file, 0)
            except OSError: pass
        os.chmod(leaf, 0)
        if {tree_too}: os.chmod(os.path.dirname(leaf), 0)
        try: result = os.listdir(leaf)
        except PermissionError: result = "hidden"
"""


LEAVE_A_CHILD = "import os, time\nif os.fork(): os._exit(3)\ntime.sleep(999)"


def test_a_server_cannot_hide_its_group_from_its_end(hostile: Machine) -> None:
    """chmod(2) of what it owns is nothing that Landlock refuses."""
    with opened(hostile, 1) as (session,):
        assert session.evaluate(HIDE.format(tree_too=False)) == "hidden"
        session.ask(LEAVE_A_CHILD)
        assert session.close()[0] == 3
        hostile.await_end_of("probe")
    with opened(hostile, 1) as (session,):
        assert session.evaluate(HIDE.format(tree_too=False)) == "hidden"
    hostile.await_end_of("probe")


def test_a_server_cannot_hide_the_groups_of_others(hostile: Machine) -> None:
    with opened(hostile, 1) as (session,):
        assert session.evaluate(HIDE.format(tree_too=True)) == "hidden"
        with opened(hostile, 2):
            pass
    with opened(hostile, 1) as (session,):
        assert "alice" in hostile.as_user("bob", "mcpwrap sessions").out
        assert session.evaluate(HIDE.format(tree_too=True)) == "hidden"
    hostile.await_end_of("probe")


SHUT = """
import glob, os
for place in glob.glob("/run/mcpwrap/rt/probe/*"): os.chmod(place, 0)
result = "shut"
"""


def test_a_server_cannot_shut_the_places_of_others(hostile: Machine) -> None:
    write = "import os; open(os.environ['TMPDIR'] + '/x', 'w'); open('x', 'w'); result = 'written'"
    with opened(hostile, 1) as (session,):
        assert session.evaluate(SHUT) == "shut"
    with opened(hostile, 3) as sessions:
        assert [session.evaluate(write) for session in sessions] == ["written"] * 3


def test_links_do_not_send_the_clearing_up_around_the_machine(hostile: Machine) -> None:
    links = "import os\nfor n in range(2000): os.symlink('/', f'/tmp/l{n}')\nresult = 'made'"
    with opened(hostile, 1) as (session,):
        assert session.evaluate(links) == "made"
    hostile.await_end_of("probe", within_s=10)
    with opened(hostile, 1) as (session,):
        assert session.evaluate("import os; result = os.listdir('/tmp')") == []


# An honest hello, and then it does not wait for the answer.
LEAVE_EARLY = """
import array, json, os, socket
for _ in range(30):
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gate.connect("/run/mcpwrap/gate.sock")
    (r, w), (r2, w2) = os.pipe(), os.pipe()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r, w2]))]
    gate.sendmsg([b"mcpwrap 1\\0probe"], rights)
    gate.send(b"more")
    gate.close()
    for fd in (r, w, r2, w2): os.close(fd)
print(json.dumps("left"))
"""


def test_one_who_leaves_early_holds_nobody_back(hostile: Machine) -> None:
    assert hostile.probe(LEAVE_EARLY, user="bob") == "left"
    for _ in range(5):
        with opened(hostile, 1):
            pass

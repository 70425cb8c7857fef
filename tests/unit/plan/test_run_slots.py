"""Run slots of Python servers: accounts, drop-ins, and the configuration of the worker."""

import msgspec
import pytest

from mcpwrap.core.wire.execution import worker_file
from mcpwrap.core.wire.execution.worker_file import MIB, Pool, RunLimits, Worker
from mcpwrap.core.wire.server_files import PythonSpec, SecretPart, decode_spec
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import LISTENING, NOTHING, PYTHON
from tests.unit.plan.machine import wanted

OURS = f"{PYTHON}[mcp_servers.py.mcpwrap]\n"
OPT = PYTHON.replace("/usr/bin", "/opt/python3.13/bin")
REMOTE = (
    f"{OURS}agents = ['alice']\nworker = 'https://10.0.0.9:9443'\nworker_ca = '/etc/ssl/ca.pem'\n"
)


def test_each_run_at_a_time_has_an_account_of_its_own() -> None:
    want = wanted(OURS + "runs = { at_once = 3 }", Observed())
    assert want.uid_by_slot.keys() == {"py/0", "py/1", "py/2"}
    uids = {want.uid_by_name["py"], *want.uid_by_slot.values()}
    assert len(uids) == 4
    assert want.uid_by_account().keys() == {"mcpw-py", "mcpj-py-0", "mcpj-py-1", "mcpj-py-2"}
    [text] = want.sysusers_files.values()
    for account, uid in want.uid_by_account().items():
        assert f"g {account} {uid}\nu {account} {uid}:{uid} " in text
    assert want.job_files.keys() == {"py-0", "py-1", "py-2"}


def test_a_slot_keeps_its_uid_when_others_come_and_go() -> None:
    two = wanted(OURS + "runs = { at_once = 2 }", Observed())
    left = Observed(files={paths.REGISTRY: msgspec.json.encode(two.registry).decode()})
    one = wanted(OURS + "runs = { at_once = 1 }", left)
    assert one.registry.by_name["py/1"].is_retired
    left = Observed(files={paths.REGISTRY: msgspec.json.encode(one.registry).decode()})
    again = wanted(OURS + "runs = { at_once = 2 }", left)
    assert again.uid_by_slot == two.uid_by_slot
    assert not again.registry.by_name["py/1"].is_retired


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            PYTHON,
            [
                f"MemoryMax={544 * MIB}",
                "TasksMax=257",
                "LimitNPROC=257",
                "CPUQuota=100%",
                "RuntimeMaxSec=180",
                "BindReadOnlyPaths=-/var/cache/mcpwrap/py:/packages",
                "SupplementaryGroups=mcpw-py",
                "Environment=MCPWRAP_INTERPRETER=/usr/bin/python3",
            ],
        ),
        (
            OURS + "runs = { memory = '1G', cpu = '250%', tasks = 16, seconds = 300 }",
            [
                f"MemoryMax={(1024 + 32) * MIB}",
                "TasksMax=17",
                "CPUQuota=250%",
                "RuntimeMaxSec=420",
                f"TemporaryFileSystem=/tmp:mode=1777,size={256 * MIB},nr_inodes=16k",
                f"TemporaryFileSystem=/out:mode=1777,size={128 * MIB},nr_inodes=16k",
                f"TemporaryFileSystem=/dev/shm:mode=1777,size={128 * MIB},nr_inodes=16k",
                f"TemporaryFileSystem=/var/tmp:mode=1777,size={64 * MIB},nr_inodes=16k",
                f"TemporaryFileSystem=/in:mode=1777,size={16 * MIB},nr_inodes=16k",
            ],
        ),
        (
            OPT,
            [
                "BindReadOnlyPaths=/opt/python3.13",
                "Environment=MCPWRAP_INTERPRETER=/opt/python3.13/bin/python3",
            ],
        ),
    ],
    ids=["usual", "limits", "another interpreter"],
)
def test_the_unit_of_a_slot_has_the_limits_of_one_run(text: str, lines: list[str]) -> None:
    [first, *others] = [
        t for files in wanted(text, Observed()).job_files.values() for t in files.values()
    ]
    assert set(others) == {first}
    assert set(lines) <= set(first.splitlines())


def test_slots_for_other_machines_have_no_packages_of_a_server() -> None:
    [text] = wanted(LISTENING, Observed()).job_files["worker-0"].values()
    assert "/packages" not in text
    assert "Environment=MCPWRAP_INTERPRETER=/usr/bin/python3\n" in text


def test_the_worker_is_told_its_pools_and_where_to_listen() -> None:
    want = wanted(LISTENING, Observed())
    assert worker_file.decode(want.worker.encode()) == Worker(
        pools={
            "py": Pool(limits=RunLimits(at_once=1, memory_bytes=1024 * MIB)),
            "worker": Pool(limits=RunLimits()),
        },
        listen="10.0.0.5:9443",
    )
    socket = want.worker_drop_ins[paths.WORKER_SOCKET_DROP_IN]
    service = want.worker_drop_ins[paths.WORKER_SERVICE_DROP_IN]
    assert "ListenStream=10.0.0.5:9443\n" in socket
    assert "FreeBind=yes\n" in socket
    assert "LoadCredential=certificate:/etc/a.pem\nLoadCredential=key:/etc/a.key\n" in service
    for name in ("certificate", "key"):  # without the file the worker starts nevertheless
        assert f"SetCredential={name}:missing\n" in service


def test_a_worker_for_this_machine_alone_has_no_other_socket() -> None:
    assert wanted(PYTHON, Observed()).worker_drop_ins == {}


@pytest.mark.parametrize("text", [NOTHING, REMOTE], ids=["nothing", "another machine's"])
def test_without_runs_here_there_is_no_worker(text: str) -> None:
    want = wanted(text, Observed())
    assert (want.worker, want.job_files, want.uid_by_slot) == ("", {}, {})


def test_a_wrapper_runs_our_server_with_the_token() -> None:
    want = wanted(LISTENING, Observed())
    spec = decode_spec(want.server_files["py"][paths.spec("py")].encode())
    assert (spec.command, spec.args) == ("/usr/libexec/mcpwrap/mcpwrap-python", ())
    assert spec.env == {"WORKER_RPC_TOKEN": (SecretPart("WORKER_RPC_TOKEN"),)}
    assert spec.secrets == ("WORKER_RPC_TOKEN",)
    assert spec.python == PythonSpec(
        python="/usr/bin/python3",
        packages=("numpy",),
        installs=True,
        limits=RunLimits(at_once=1, memory_bytes=1024 * MIB),
    )
    unit = want.server_files["py"][paths.drop_in("py")]
    assert "IPAddressAllow=127.79.0.1\n" in unit
    assert "CacheDirectory=mcpwrap/py\n" in unit
    assert "CacheDirectoryMode=0710\n" in unit
    assert "PrivateNetwork" not in unit


def test_a_worker_elsewhere_is_reached_at_its_address_alone() -> None:
    want = wanted(REMOTE, Observed())
    spec = decode_spec(want.server_files["py"][paths.spec("py")].encode())
    assert spec.python == PythonSpec(
        python="/usr/bin/python3",
        worker="https://10.0.0.9:9443",
        ca="/etc/ssl/ca.pem",
        limits=RunLimits(),
    )
    assert ("direct4", "28845 . 10.0.0.9 . 9443") in want.elements
    assert "worker_clients" not in {name for name, _ in want.elements}


def test_agents_share_a_python_server_which_has_nothing_of_theirs() -> None:
    rule = wanted(PYTHON, Observed()).admissions.by_server["py"]
    assert (rule.uids, rule.gids) == ((), (990,))


def test_a_workspace_is_still_shared_only_on_purpose() -> None:
    text = "[mcp_servers.git]\ncommand = '/x'\n[mcp_servers.git.mcpwrap]\ncache = true\n"
    with pytest.raises(UsageError, match="share this server's cache"):
        wanted(text, Observed())

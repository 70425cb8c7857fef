"""Run slots: for each run of a pool at a time an account, a socket and a unit of its own."""

from mcpwrap.config.model import Config, Python
from mcpwrap.core.names import account_of, slot_name
from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire.execution import job_frames, worker_file
from mcpwrap.core.wire.execution.worker_file import (
    CERTIFICATE,
    KEY,
    LISTENER_POOL,
    MIB,
    NO_CREDENTIAL,
    RunLimits,
)
from mcpwrap.plan import paths

_SUPERVISOR_TASKS = 1
_SUPERVISOR_BYTES = 32 * MIB  # of the run supervisor, beside the memory of the run
# A slot is started before its run, and waits for it for a minute; then the run; then its end.
_BESIDE_RUN_S = 120
# The part of the memory that files in each folder may take; together 9/16.
_PART_BY_FOLDER = {"/tmp": 4, "/out": 8, "/dev/shm": 8, "/var/tmp": 16}  # noqa: S108 - of the slot
_IN_BYTES = 2 * job_frames.MAX_IN_BYTES


def names(config: Config) -> tuple[str, ...]:
    """Return the names of all run slots of this machine."""
    return tuple(
        slot_name(pool, number)
        for pool, limits in config.pools().items()
        for number in range(limits.at_once)
    )


def instance(name: str) -> str:
    """Return the instance of a slot's units: `python-0` for `python/0`."""
    return name.replace("/", "-")


def files(config: Config) -> dict[str, dict[str, str]]:
    """Return the drop-ins of all slots, by instance."""
    found: dict[str, dict[str, str]] = {}
    for pool, limits in config.pools().items():
        text = _drop_in(config, pool, limits)
        for number in range(limits.at_once):
            of_slot = instance(slot_name(pool, number))
            found[of_slot] = {paths.job_drop_in(of_slot): text}
    return found


def worker(config: Config) -> str:
    """Return the text of the worker's configuration; "" if there is nothing to execute."""
    pools = {pool: worker_file.Pool(limits=limits) for pool, limits in config.pools().items()}
    if not pools:
        return ""
    listen = paths.place(config.worker.listen) if config.worker else ""
    return specs.encode(worker_file.Worker(pools=pools, listen=listen))


def worker_drop_ins(config: Config) -> dict[str, str]:
    """Return the drop-ins of the worker's units, if other machines reach it."""
    if config.worker is None:
        return {}
    listen = [
        f"ListenStream={paths.place(config.worker.listen)}",
        "# At boot the network may have the address only later.",
        "FreeBind=yes",
    ]
    keys = [
        "# Otherwise the worker would not start without these files, also not for this machine.",
        *(f"SetCredential={name}:{NO_CREDENTIAL}" for name in (CERTIFICATE, KEY)),
        f"LoadCredential={CERTIFICATE}:{config.worker.certificate}",
        f"LoadCredential={KEY}:{config.worker.key}",
    ]
    reason = "# For Python servers of other machines, by TLS."
    return {
        paths.WORKER_SOCKET_DROP_IN: _text(["[Socket]", reason, *listen]),
        # Their addresses are not known. The worker opens no connections: see the packet rules.
        paths.WORKER_SERVICE_DROP_IN: _text(["[Service]", reason, *keys, "IPAddressAllow=any"]),
    }


def _drop_in(config: Config, pool: str, limits: RunLimits) -> str:
    return _text(
        [
            "[Service]",
            "# The limits of one run, and its supervisor.",
            f"MemoryMax={limits.memory_bytes + _SUPERVISOR_BYTES}",
            f"TasksMax={limits.tasks + _SUPERVISOR_TASKS}",
            "# The same by account, for machines that do not count tasks by control group.",
            f"LimitNPROC={limits.tasks + _SUPERVISOR_TASKS}",
            f"CPUQuota={limits.cpu_percent}%",
            "# The run supervisor ends a run earlier; this is for one that was stopped.",
            f"RuntimeMaxSec={limits.seconds + _BESIDE_RUN_S}",
            "# Files are memory of the run: all of these are full before the memory is.",
            *(_tmpfs(path, limits.memory_bytes // n) for path, n in _PART_BY_FOLDER.items()),
            _tmpfs("/in", _IN_BYTES),
            *_interpreter(config, pool),
        ]
    )


def _tmpfs(path: str, size_bytes: int) -> str:
    return f"TemporaryFileSystem={path}:mode=1777,size={size_bytes},nr_inodes=16k"


def _interpreter(config: Config, pool: str) -> list[str]:
    if pool == LISTENER_POOL and config.worker:
        path, binds = config.worker.interpreter, []
    else:
        runs = config.servers[pool].runs
        path = runs.interpreter if isinstance(runs, Python) else ""
        binds = [
            "# The packages that the server has downloaded. The folder above this one is root's:",
            "# a link that the server makes in this one leads nowhere in the view of a run.",
            f"BindReadOnlyPaths=-{paths.CACHES}/{pool}:/packages",
            f"SupplementaryGroups={account_of(pool)}",
        ]
    if path.startswith("/opt/"):
        binds.append(f"BindReadOnlyPaths=/opt/{path.split('/')[2]}")
    return [*binds, f"Environment=MCPWRAP_INTERPRETER={path}"]


def _text(lines: list[str]) -> str:
    return paths.WRITTEN + "\n".join(lines) + "\n"

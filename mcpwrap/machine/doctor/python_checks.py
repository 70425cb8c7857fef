"""Health check of code execution: the worker, run slots, and runs of Python servers. Needs root."""

import ssl
from collections.abc import Iterator

from mcpwrap.config.model import Config, Server, WorkerListener
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.core.execution.probe_code import CODE_BY_ATTEMPT
from mcpwrap.core.names import slot_name
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.errors import with_name
from mcpwrap.linux.executables.look import ExecutableScan
from mcpwrap.linux.systemd.systemctl import NOT_COUNTED, UP, properties
from mcpwrap.machine import worker
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.doctor import live_probes
from mcpwrap.machine.doctor.live_probes import TrialResult, TrialStatus
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.machine.program_check import changeable_by_worker
from mcpwrap.machine.worker import ObservedWorker
from mcpwrap.plan import paths, run_slots

_TOOL = "run_python"
_TITLES = {"print": "run print(1)", "connect": "reach the network from a run"}
_APPLY = "`sudo mcpwrap apply`"
_AGAIN = "try again; if it fails again, fix the cause named above"


def machine(config: Config) -> Iterator[Check]:
    """Yield the checks of this machine's worker; no check if it executes no code."""
    if not config.pools():
        return
    found = worker.observe()
    yield _worker(found)
    yield _slots(found)
    if config.worker:
        yield _interpreter(config.worker)
        yield _limits(worker_file.LISTENER_POOL)
        yield _certificate(config.worker, found)


def runs(server: Server, agent: str) -> Iterator[Check]:
    """Yield the checks of a Python server, made as one of its agents."""
    for attempt, verdict in (("print", _prints), ("connect", _has_no_network)):
        what = f"{server.name}: {_TITLES[attempt]}"
        if why := _held_by_policy(server.name, CODE_BY_ATTEMPT[attempt]):
            yield unknown(what, why, "`mcpwrap policy explain` shows the rule")
        else:
            tried = live_probes.session(agent, server.name, attempt)
            yield verdict(server.name, what, tried)
    if server.uses_local_worker():
        yield _is_closed_to(server.name, agent)
        yield _limits(server.name)


def certificate_flaw(certificate: str, key: str) -> str:
    """Return why this certificate and key cannot be used for TLS; "" if they can."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # also errors of ssl
        return f"{certificate} and {key} cannot be used: {error}"
    return ""


def _no_password() -> str:
    """Refuse a key with a password: the worker starts without a person."""
    raise ValueError("the key has a password")


def _worker(found: ObservedWorker) -> Check:
    what = "worker"
    match found.state:
        case "failed" | "stopped" | "off":  # off: the configuration was not applied
            text = f"{found.status}; no code is executed [E-DOCTOR-UNIT-DOWN]"
            return failed(what, text, found.fix or _APPLY)
        case "draining":
            return warned(what, f"new runs are refused ({found.status})", found.fix)
        case "starting":
            return unknown(what, found.status, "run doctor again in a moment")
        case _:
            return good(what, found.status)


def _slots(found: ObservedWorker) -> Check:
    closed = [unit for pool in found.pools.values() for unit in pool.closed]
    slots = sum(pool.slots for pool in found.pools.values())
    if closed:
        text = f"{len(closed)} of {slots} do not listen, such as {closed[0]} [E-DOCTOR-UNIT-DOWN]"
        return failed("run slots", text, found.reopen)
    return good("run slots", f"{slots} listen")


def _interpreter(listener: WorkerListener) -> Check:
    what = "worker: python"
    if found := changeable_by_worker(listener, ExecutableScan()):
        text = f"{found}: that account decides what runs return [E-PROGRAM-WRITABLE]"
        return failed(what, text, "`mcpwrap plan` shows what to do")
    return good(what, f"only root can change {listener.interpreter}")


def _certificate(listener: WorkerListener, found: ObservedWorker) -> Check:
    """Check the files as they are now, and those that the worker has loaded."""
    what = "worker: TLS"
    if flaw := certificate_flaw(listener.certificate, listener.key):
        return failed(what, f"{flaw} [E-WORKER-TLS]", worker.TLS_FIX)
    if found.listener_flaw:
        return failed(what, f"other machines are refused: {found.listener_flaw}", worker.TLS_FIX)
    return good(what, f"{listener.certificate} and its key can be used")


def _held_by_policy(server: str, code: str) -> str:
    """Return why an agent's call would not run at once; "" if the policy allows it.

    Doctor neither asks a person for an approval, nor counts a refusal as a failure.
    """
    # Imported here: sqlglot, which judges conditions, takes 0.2 s to load.
    from mcpwrap.core.policy.compiled import CALL, compile_policy  # noqa: PLC0415
    from mcpwrap.core.policy.explain import explain  # noqa: PLC0415

    policy = compile_policy(shipped.extended(parse_policy(policy_files())), server)
    found = explain(policy, CALL, {"name": _TOOL, "arguments": {"code": code}}).judgement
    if found.decision is Decision.ALLOW:
        return ""
    by = f"the rule {found.rule}" if found.rule else "its default"
    return f"the policy does not allow the call at once, by {by}"


def _prints(name: str, what: str, tried: TrialResult) -> Check:
    match tried.ended:
        case TrialStatus.WORKED:
            return good(what, tried.line)
        case TrialStatus.UNKNOWN:
            return unknown(what, tried.line, _AGAIN)
        case _ if "E-WORKER-BUSY" in tried.line:
            return unknown(what, tried.line, "run doctor again when fewer runs wait")
        case _:
            logs = f"`sudo mcpwrap logs {name}` and `journalctl -u mcpwrap-worker` show why"
            return failed(what, with_name(tried.line, code="E-DOCTOR-RUN"), logs)


def _has_no_network(_: str, what: str, tried: TrialResult) -> Check:
    match tried.ended:
        case TrialStatus.REFUSED | TrialStatus.NO_ROUTE:
            return good(what, f"refused ({tried.line})")
        case TrialStatus.WORKED:
            text = f"{tried.line}; it must be refused [E-DOCTOR-NOT-REFUSED]"
            fix = "remove what loosens mcpwrap-job@.service: `systemctl cat` shows its drop-ins"
            return failed(what, text, fix)
        case _:
            return unknown(what, tried.line, _AGAIN)


def _is_closed_to(name: str, agent: str) -> Check:
    """Check that an agent cannot reach the worker itself, past policy and audit."""
    what = f"{name}: reach the worker as {agent}"
    if (found := worker.observe()).state in {"failed", "stopped", "off"}:
        return unknown(what, found.status, found.fix or _APPLY)  # nothing listens there
    port = str(worker_file.PORT)
    tried = live_probes.try_as(agent, "connect", worker_file.ADDRESS, port)
    match tried.ended:
        case TrialStatus.REFUSED:
            return good(what, f"refused ({tried.line})")
        case TrialStatus.WORKED:
            text = "WORKED, and must be refused [E-DOCTOR-NOT-REFUSED]"
            return failed(what, text, f"`sudo systemctl restart mcpwrap-nft`, then {_APPLY}")
        case _:
            return unknown(what, tried.line, _AGAIN)


def _limits(pool: str) -> Check:
    """Check that the runs of a pool have limits, and that this machine enforces them.

    The slice of all slots shows what the machine counts. It is there since the first run.
    """
    what = f"{pool}: limits of runs"
    slot = paths.job_service(run_slots.instance(slot_name(pool, 0)))
    names = ["ActiveState", "MemoryCurrent", "MemoryMax", "TasksMax"]
    shown = properties([slot, paths.JOB_SLICE], names)
    for limit in ("MemoryMax", "TasksMax"):
        if shown[slot][limit] == "infinity":
            text = f"{slot} has no {limit}= [E-DOCTOR-RUN-LIMITS]"
            return failed(what, text, f"{_APPLY}; `systemctl cat {slot}` shows what removes it")
    if shown[paths.JOB_SLICE]["ActiveState"] not in UP:
        text = "no code was executed since the boot: it is not known whether memory is counted"
        return warned(what, text, "run doctor again after a run")
    if shown[paths.JOB_SLICE]["MemoryCurrent"] in NOT_COUNTED:
        text = "this machine counts no memory by control group: a run can use up all of it"
        return warned(what, text, "boot it with the memory controller of cgroup v2")
    return good(what, "of memory and tasks")

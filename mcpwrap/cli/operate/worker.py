"""`mcpwrap worker`: the service that executes code of Python servers. `status` needs no root."""

import click
import msgspec

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.cli.operate.run_status import COLUMNS, RunsStatus, runs_by_pool
from mcpwrap.cli.setup import worker as setup
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import worker
from mcpwrap.machine.worker import State
from mcpwrap.plan import paths


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json`."""

    state: State
    status: str
    fix: str
    listen: str  # ADDRESS:PORT for other machines; "" if they do not reach it
    pools: dict[str, RunsStatus]  # of each Python server, and as `worker` of other machines


@click.group("worker")
def command() -> None:
    """Operate the worker, which executes the code of Python servers, here or of other machines.

    \b
    Example:  mcpwrap worker status
    A Python server of this machine needs none of these commands: `mcpwrap apply` starts its worker.
    """


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> int:
    """Show whether the worker takes runs, and the runs of each pool of run slots.

    \b
    Example:  mcpwrap worker status --json | jq -r .state
    A pool has the name of its Python server; that of other machines is `worker`.
    Exit status: 0 it takes runs, or starts at the first; 1 it does not, or the configuration needs
    no worker.
    """
    found = worker.observe()
    row = WorkerStatus(
        state=found.state,
        status=found.status,
        fix=found.fix,
        listen="" if found.listener_flaw else found.listen,
        pools=runs_by_pool(found),
    )
    if as_json:
        print_json(row)
    else:
        _print(row)
    is_good = found.state == "ready" and not found.listener_flaw
    is_good = is_good and not any(pool.closed_slots for pool in row.pools.values())
    return EXIT_OK if is_good else EXIT_FAILED


@command.command("drain")
def drain() -> int:
    """Refuse new runs, and let the present ones end, before maintenance. Needs root.

    \b
    Example:  sudo mcpwrap worker drain
    A load balancer then uses other machines. It lasts until `mcpwrap worker resume`, or until the
    worker is restarted. `mcpwrap worker status` shows when the last run has ended.
    Exit status: 0 done; 1 the worker cannot be started; 2 the configuration needs no worker.
    """
    _signal("drain", "SIGUSR1")
    tty.say("the worker refuses new runs until `sudo mcpwrap worker resume`")
    return EXIT_OK


@command.command("resume")
def resume() -> int:
    """Accept runs again after `mcpwrap worker drain`. Needs root.

    \b
    Example:  sudo mcpwrap worker resume
    Exit status: as of `drain`.
    """
    _signal("resume", "SIGUSR2")
    tty.say("the worker accepts runs")
    return EXIT_OK


for each in (setup.enable, setup.disable, setup.token):
    command.add_command(each)


def _signal(verb: str, signal: str) -> None:
    """Start the worker, if it does not run yet, and send it a signal."""
    expect_root(f"worker {verb}")
    if not worker.configuration().pools:
        raise UsageError(
            "the configuration needs no worker; nothing was changed",
            where=f"mcpwrap worker {verb}",
            fix="`mcpwrap worker status` shows its state",
            code="E-WORKER-NOT-CONFIGURED",
        )
    unit = paths.WORKER_SERVICE
    systemctl.run(systemctl.SYSTEMCTL, "start", "--", unit)
    systemctl.run(systemctl.SYSTEMCTL, "kill", "--kill-whom=main", f"--signal={signal}", "--", unit)


def _print(row: WorkerStatus) -> None:
    tty.say(f"{row.state}: {row.status}")
    if row.fix:
        tty.say(f"  fix: {row.fix}")
    if row.listen:
        tty.say(f"listens for other machines at {row.listen}")
    if row.pools:
        print_table(["POOL", *COLUMNS], [[name, *runs.cells()] for name, runs in row.pools.items()])

"""`mcpwrap doctor [NAME]`: live probes of what servers can and must not reach. As root."""

import signal
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import chain

import click

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.common.server_argument import expect_server
from mcpwrap.cli.operate import bug_report, client_forms
from mcpwrap.config.model import Config, Server
from mcpwrap.config.parse import parse
from mcpwrap.core.doctor import Check, failed
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_UNKNOWN, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import observer
from mcpwrap.machine.doctor import (
    approval_checks,
    foreign_rules,
    machine_checks,
    python_checks,
    trial_wrappers,
)
from mcpwrap.machine.doctor.server_checks import guarded, server_checks

_APPLY = "`sudo mcpwrap apply`"
_COLOURS: dict[str, tty.Style] = {
    "good": "green", "warning": "yellow", "failed": "red", "unknown": "cyan",
}  # fmt: skip


@click.command("doctor")
@click.argument("name", required=False)
@click.option("--user", "is_user", is_flag=True, help="Only about your own `mcpwrap run`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--report",
    is_flag=False,
    flag_value=bug_report.STDOUT,
    metavar="[FILE]",
    help="Write a bug report without secrets to FILE, or print it.",
)
@click.option("--names", "with_names", is_flag=True, help="Leave servers' names in the report.")
@click.pass_obj
def command(  # noqa: PLR0913 - one parameter for each option
    environ: Mapping[str, str],
    *,
    name: str | None,
    is_user: bool,
    as_json: bool,
    report: str | None,
    with_names: bool,
) -> int:
    """Test every server, or NAME, as its agent and as its account. Needs root, but for --user.

    \b
    Opens a session and lists the tools; requests the first host of the allowlist through Squid;
    writes, renames and removes a file in each `:rw` workspace. Then tries a host that is not in the
    allowlist, an address past Squid, and files of root and of the agent: all must be refused. Tests
    eight servers at a time, and stops the wrappers that it started and no agent uses. A Python
    server executes print(1), and code that tries to reach the network, which must be refused. A hub
    reports its members, and each agent of the account what its model sees, and what is over its
    limits. Lists the clients that were asked for approval by a form, and whether they draw it; with
    --user those of your own `mcpwrap run`, and tests nothing.
    Example:  sudo mcpwrap doctor git --json
    --report prints a bug report to send to others, or writes it to FILE: versions, states, names of
    errors, and settings by name; no value, path, host, argument, account or text of a log.
    Exit status: 0 no check failed, 1 something is broken or open, 2 there is no server NAME,
    3 nothing was found broken or open, but a check could not be made.
    """
    bug_report.expect_alone(report, is_user=is_user, as_json=as_json, with_names=with_names)
    if is_user:
        if name is not None:
            raise UsageError(
                "--user tests no server",
                where="mcpwrap doctor",
                fix=f"leave out --user, or {name}",
                code="E-USAGE-EXCLUSIVE-OPTIONS",
            )
        return _shown(client_forms.of_user(environ), as_json=as_json)
    expect_root("doctor")
    if report is not None:
        _end_as_by_ctrl_c()
        return bug_report.write(report, partial(_reported, name=name), with_names=with_names)
    config = parse(observer.config_files())
    if name is not None:
        expect_server(name, config.servers, "mcpwrap doctor")
    _end_as_by_ctrl_c()
    with closing(_checks(config, name)) as checks:
        return _shown(checks, as_json=as_json)


def _reported(config: Config, name: str | None) -> Iterable[Check]:
    """Return the checks for a report. A configuration with errors has no servers to choose from."""
    if name is not None and config.servers:
        expect_server(name, config.servers, "mcpwrap doctor")
    return _checks(config, name)


def _shown(checks: Iterable[Check], *, as_json: bool) -> int:
    """Print the checks as they come, or all as JSON; return the exit status."""
    found: list[Check] = []
    for check in checks:
        found.append(check)
        if not as_json:
            _show(check)
    if as_json:
        print_json(found)
    return status_of([check.state for check in found])


def status_of(states: Collection[str]) -> int:
    """Return the exit status for checks in these states."""
    if "failed" in states:
        return EXIT_FAILED
    return EXIT_UNKNOWN if "unknown" in states else EXIT_OK


def _end_as_by_ctrl_c() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that the started wrappers are stopped first."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup(1)
            signal.signal(number, signal.default_int_handler)


def _show(check: Check) -> None:
    tty.say(tty.styled(f"{check.state:8}", _COLOURS[check.state]), f" {check.what}: {check.found}")
    if check.fix:
        tty.say(f"  fix: {check.fix}")


def _checks(config: Config, name: str | None) -> Generator[Check]:
    yield from guarded("the machine", machine_checks.machine(config))
    yield from guarded("packet rules of others", foreign_rules.checks(config))
    yield from guarded("approvals", approval_checks.approvals(config))
    yield from guarded("approval forms", client_forms.of_gate())
    yield from guarded("worker", python_checks.machine(config))
    uid_by_name = {n: a.uid for n, a in observer.registry().by_name.items() if not a.is_retired}
    asked = [server for server in config.servers.values() if name in {None, server.name}]
    with trial_wrappers.side_by_side() as pool:
        found = pool.map(partial(_of_server, uid_by_name), asked)
        yield from chain.from_iterable(_with_progress(found, len(asked)))


def _with_progress(found: Iterator[list[Check]], count: int) -> Iterator[list[Check]]:
    """Yield the checks of each server, and print how many servers have them while one is tested."""
    try:
        for number in range(count):
            tty.progress(f"testing servers: {number} of {count} done, each takes some seconds")
            checks = next(found)
            tty.progress("")
            yield checks
    finally:
        tty.progress("")


def _of_server(uid_by_name: Mapping[str, int], server: Server) -> list[Check]:
    if server.name not in uid_by_name:
        return [failed(server.name, "is not applied [E-DOCTOR-NOT-APPLIED]", _APPLY)]
    checks = _ending_what_it_starts(server, uid_by_name[server.name])
    return list(guarded(server.name, checks))


def _ending_what_it_starts(server: Server, uid: int) -> Iterator[Check]:
    with trial_wrappers.ended_afterwards(server.name):
        yield from server_checks(server, uid)

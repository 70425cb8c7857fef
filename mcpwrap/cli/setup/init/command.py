"""`mcpwrap init`: the guided first run of a machine, which can be repeated at any time."""

from collections.abc import Callable, Iterable

import click
import msgspec

from mcpwrap.cli.common.become_root import expect_installed, expect_root
from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.setup.init import account_steps, agents_step, machine_steps
from mcpwrap.cli.setup.init.guide import Guide, StepResult
from mcpwrap.cli.setup.init.person import PersonAccount, again, person_of
from mcpwrap.config.model import Server
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError, UsageError, file_error
from mcpwrap.linux import accounts, tty

_NEXT = ("mcpwrap status", "mcpwrap approvals")
_NEXT_WITHOUT_SERVERS = ("mcpwrap wrap --all", "mcpwrap clients")

Step = Callable[[Guide, PersonAccount], None]


class InitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whole output of `--json`."""

    account: str
    steps: list[StepResult]  # in their order; those after an interruption are left out
    servers: list[str]  # configured ones that the account's agents may use
    is_changed: bool
    is_interrupted: bool
    next: list[str]  # commands: of steps that are open, then others


@click.command("init")
@click.option(
    "--for", "account", envvar="SUDO_USER", default="", metavar="USER",
    help="Account that runs the agents. Default: the account that called sudo.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask; root still confirms new servers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; needs --yes.")
def command(*, account: str, yes: bool, as_json: bool) -> int:
    """Set this machine up, one step after the other. Needs root.

    \b
    Example:  sudo mcpwrap init
    Steps: the account in the group that may use servers; Squid; an approver, with a password; the
    configuration, by `apply`; the servers in the files of the account's agents, by `mcpwrap wrap`;
    a test, by `doctor`. Each shows its state and the command that it stands for, and asks; Enter is
    yes. What is set up already is not changed: run it again at any time.
    With --yes no step asks, but a password and the `yes` to new servers are typed at the
    terminal of the process, whatever standard input is: without one these are skipped.
    Exit status: 0 no step failed, 1 a step failed, 2 wrong usage, and nothing was changed,
    130 interrupted: what is done stays, and the next run continues.
    """
    expect_root("init")
    expect_installed()
    if as_json and not yes:
        raise UsageError(
            "needs `--yes`, as a program that reads JSON cannot be asked; nothing was changed",
            where="--json",
            fix="add `--yes`",
            code="E-INIT-JSON-CONFIRM",
        )
    who = person_of(account)
    if not yes and not tty.is_interactive():
        raise UsageError(
            "this command asks before each change, and there is no terminal; nothing was changed",
            where="standard input",
            fix="run it in a terminal, or give `--yes`",
            code="E-USAGE-NO-TERMINAL",
        )
    guide, name = Guide(is_agreed=yes, is_json=as_json), account_steps.GROUP
    try:
        for name, step in _steps():
            _taken(guide, who, name, step)
    except (click.Abort, KeyboardInterrupt):
        guide.say()
        _end(guide, who, as_json=as_json, interrupted=name)
        raise click.Abort from None
    _end(guide, who, as_json=as_json, interrupted="")
    return EXIT_FAILED if any(r.state == "failed" for r in guide.results) else EXIT_OK


def _steps() -> Iterable[tuple[str, Step]]:
    yield account_steps.GROUP, account_steps.group
    yield machine_steps.SQUID, lambda guide, _: machine_steps.squid(guide)
    yield account_steps.APPROVER, account_steps.approver
    # Before the agents' files: an entry is rewritten when its server is applied, and a run that was
    # interrupted may have left it unapplied. New servers are applied as root accepts them.
    yield machine_steps.APPLY, lambda guide, _: machine_steps.apply(guide)
    yield agents_step.AGENTS, agents_step.agents
    yield machine_steps.DOCTOR, lambda guide, _: machine_steps.doctor(guide)


def _taken(guide: Guide, who: PersonAccount, name: str, step: Step) -> None:
    """Take one step. An error ends the step, and not the command."""
    try:
        step(guide, who)
    except McpwrapError as error:
        _fail(guide, name, error)
    except OSError as error:
        _fail(guide, name, file_error(error))


def _fail(guide: Guide, name: str, error: McpwrapError) -> None:
    tty.fail(error)
    guide.end(name, "failed", "", f"{error.where}: {error.named_problem}")


def _end(guide: Guide, who: PersonAccount, *, as_json: bool, interrupted: str) -> None:
    """Print the report; `interrupted` is the name of the step that was."""
    servers = _servers(who)
    typed = f"sudo {again(who)}"
    following = [typed] if interrupted else []
    following += [step.command or typed for step in guide.results if _is_open(step)]
    following += _NEXT if servers else _NEXT_WITHOUT_SERVERS
    report = InitReport(
        account=who.account,
        steps=guide.results,
        servers=servers,
        is_changed=any(_is_change(result) for result in guide.results),
        is_interrupted=bool(interrupted),
        next=list(dict.fromkeys(following)),
    )
    if interrupted:
        text = f"interrupted at the step {interrupted}: what is done stays; `{typed}` continues"
        guide.say(tty.styled(text, "yellow"))
    if as_json:
        print_json(report)
    else:
        _show(report)


def _is_change(step: StepResult) -> bool:
    return step.state == "done" and step.name != machine_steps.DOCTOR


def _is_open(step: StepResult) -> bool:
    is_untested = step.name == machine_steps.DOCTOR and step.state == "skipped"
    return step.state in {"skipped", "failed"} and not is_untested


def _servers(who: PersonAccount) -> list[str]:
    """Return the configured servers that the person's agents may use; none if it has errors."""
    config = machine_steps.configuration()
    servers = config.servers.values() if config else []
    return sorted(server.name for server in servers if _may_use(server, who))


def _may_use(server: Server, who: PersonAccount) -> bool:
    groups = {accounts.gid_of(name[1:]) for name in server.agents if name.startswith("@")}
    return who.account in server.agents or bool(groups & who.groups)


def _show(report: InitReport) -> None:
    tty.say()
    still_open = [step for step in report.steps if _is_open(step)]
    if not report.is_changed and not report.is_interrupted:
        text = "nothing was changed" if still_open else "nothing to do"
        tty.say(tty.styled(text, "bold"))
    count = len(report.servers)
    names = f": {', '.join(report.servers)}" if count else ""
    tty.say(f"{report.account} has {count} server{'s' * (count != 1)} behind the gate{names}")
    for step in still_open:
        typed = f"; `{step.command}`" if step.command else ""
        tty.say(f"open: {step.name}: {step.why}{typed}")
    tty.say(f"next: {', '.join(f'`{one}`' for one in report.next)}")

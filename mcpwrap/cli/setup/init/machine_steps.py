"""Steps for the machine: Squid, the configuration, and a test of what was set up."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.cli.setup.init.guide import ENVIRON, MCPWRAP, Guide
from mcpwrap.config.model import Config
from mcpwrap.config.parse import parse
from mcpwrap.core.doctor import Check
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.os_release import distribution
from mcpwrap.machine import observer, planning
from mcpwrap.machine.doctor import machine_checks
from mcpwrap.plan.diff.diff import RetirementPolicy

SQUID, APPLY, DOCTOR = "squid", "apply", "doctor"
_NO_EGRESS = "without it a server reaches no host, and npx and uvx no registry"
_NO_CONFIGURATION = "no server is configured yet"


def squid(guide: Guide) -> None:
    """Install Squid where the package was installed without what it recommends."""
    words = distribution()
    install = words.install_command("squid")
    guide.title("Squid: the way of servers to the hosts that are listed for them")
    check = machine_checks.squid_program()
    # The name alone: sudo(8) searches for it.
    command = " ".join(["sudo", Path(install[0]).name, *install[1:]]) if install else ""
    if check.state != "failed":
        old = f": {check.found}; {check.fix}" if check.state == "warning" else f" {check.found}"
        guide.end(SQUID, "already", command, f"Squid{old}")
        return
    guide.say(f"   {check.found}")
    if not install:
        guide.end(SQUID, "failed", "", f"{words.install('squid')}; {_NO_EGRESS}")
        return
    if not guide.offers(command, "Install it?"):
        guide.end(SQUID, "skipped", command, _NO_EGRESS)
        return
    status = guide.ran(install)
    if status == EXIT_OK and Path(machine_checks.SQUID).exists():
        guide.end(SQUID, "done", command, "mcpwrap starts instances of its own")
    else:
        guide.end(
            SQUID, "failed", command, f"{Path(install[0]).name} could not install it; {_NO_EGRESS}"
        )


def configuration() -> Config | None:
    """Return the configuration of the machine; None if there is none, or it has errors.

    The step for the configuration reports these.
    """
    if not observer.has_configuration():
        return None
    try:
        return parse(observer.config_files())
    except UsageError:
        return None


def apply(guide: Guide) -> None:
    """Make the machine match its configuration, where it has one."""
    command = "sudo mcpwrap apply"
    guide.title("Configuration: /etc/mcpwrap")
    if not observer.has_configuration():
        guide.end(APPLY, "already", command, "there is nothing to apply yet")
        return
    todo = planning.planned(RetirementPolicy.KEEP).steps
    if not todo:
        guide.end(APPLY, "already", command, "the machine matches it")
        return
    if guide.is_asking:  # else the command prints them
        for step in todo:
            guide.say(f"   {step.describe()}")
    if not guide.offers(command, "Apply it?"):
        guide.end(APPLY, "skipped", command, "the machine does not match it yet")
    elif guide.ran([MCPWRAP, "apply"]) == EXIT_OK:
        guide.end(APPLY, "done", command, "the machine matches it")
    else:
        guide.end(APPLY, "failed", command, "a step failed; the command continues from there")


def doctor(guide: Guide) -> None:
    """Test what was set up, and print what is not good."""
    command = "sudo mcpwrap doctor"
    guide.title("Test of the machine and of each server")
    if not observer.has_configuration():
        guide.end(DOCTOR, "skipped", command, _NO_CONFIGURATION)
        return
    if not any(result.state == "done" for result in guide.results):
        guide.end(DOCTOR, "skipped", command, "no step has completed a change")
        return
    guide.show(command)
    guide.say("   each server is started and tried, which takes some seconds")
    done = subprocess.run(
        [MCPWRAP, "doctor", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=ENVIRON,
        check=False,
    )
    checks: list[Check] = []
    with suppress(msgspec.MsgspecError):
        checks = msgspec.json.decode(done.stdout, type=list[Check])
    for check in shown(checks):
        colour: tty.Style = "red" if check.state == "failed" else "yellow"
        guide.say("   ", tty.styled(check.state, colour), f" {check.what}: {check.found}")
        guide.say(f"     fix: {check.fix}")
    count = Counter(check.state for check in checks)
    why = ", ".join(f"{number} {state}" for state, number in sorted(count.items()))
    is_broken = not checks or done.returncode == EXIT_FAILED
    guide.end(DOCTOR, "failed" if is_broken else "done", command, why or "it gave no result")


def shown(checks: list[Check]) -> Iterator[Check]:
    """Yield the checks that are not good.

    Of a server that is broken those that could not be made are left out: they are made after the
    repair of what is shown.
    """
    broken = {_subject(check) for check in checks if check.state == "failed"}
    for check in checks:
        is_consequence = check.state == "unknown" and _subject(check) in broken
        if check.state != "good" and not is_consequence:
            yield check


def _subject(check: Check) -> str:
    return check.what.partition(":")[0]

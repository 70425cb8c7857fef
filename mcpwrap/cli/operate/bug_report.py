"""`mcpwrap doctor --report`: a bug report that has nothing of the machine's owner in it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import mcpwrap
from mcpwrap.cli.common import version
from mcpwrap.config.model import Config, ConfigError
from mcpwrap.config.parse import parse
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core import bug_report
from mcpwrap.core.bug_report import Vocabulary
from mcpwrap.core.doctor import Check, failed
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError, file_error
from mcpwrap.linux import tty
from mcpwrap.machine import observer
from mcpwrap.machine.doctor import report_facts
from mcpwrap.machine.policy_files import policy_files

STDOUT = "-"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PREFACE = """\
# mcpwrap bug report

Left out: accounts, paths, hosts, arguments, values, the texts of messages and logs, and, without
`--names`, names of servers. `man mcpwrap-errors` has the text of each name in brackets."""


def write(file: str, checks: Callable[[Config], Iterable[Check]], *, with_names: bool) -> int:
    """Write the report to standard output, or to a new file that the caller alone can read.

    Raises:
        McpwrapError: the file exists, or cannot be written.
    """
    if file == STDOUT:
        tty.say_lines(_report(checks, with_names=with_names))
        return EXIT_OK
    try:
        fd = os.open(file, _NEW_FILE, 0o600)
    except FileExistsError as error:
        raise UsageError(
            "exists already; nothing was changed",
            where=file,
            fix="name a file that does not exist, or leave it out to print the report",
            code="E-REPORT-EXISTS",
        ) from error
    except OSError as error:
        raise file_error(error, "nothing was changed") from error
    try:
        with os.fdopen(fd, "w") as target:
            target.writelines(f"{line}\n" for line in _report(checks, with_names=with_names))
    except BaseException:
        with suppress(OSError):
            Path(file).unlink()
        raise
    tty.say(f"{file} is written; read it before you send it")
    return EXIT_OK


def _report(checks: Callable[[Config], Iterable[Check]], *, with_names: bool) -> Iterator[str]:
    config, faults = _configuration()
    names = {*config.servers, *_registered()}
    errors, modules = report_facts.own_words()
    words = Vocabulary(
        label_by_server=bug_report.labels(names, with_names=with_names),
        units=report_facts.unit_files(),
        errors=errors,
        modules=modules,
    )
    yield from _PREFACE.splitlines()
    yield from _section("Versions", bug_report.fact_lines(_own_version() | report_facts.versions()))
    yield from _section("Configuration", _shape(config, words))
    found = [*faults, *checks(config)]
    yield from _section("Checks", bug_report.check_lines(found, words))
    yield from _section("Units", _told(lambda: bug_report.unit_lines(report_facts.units(), words)))
    journal = _told(lambda: bug_report.journal_lines(report_facts.journal(), words))
    yield from _section("Warnings and errors in the journal, of a week", journal)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    found = list(lines)
    yield from found or ["none"]


def _told(lines: Callable[[], Iterable[str]]) -> list[str]:
    """Return the lines; one that says so if a tool failed, and not why."""
    try:
        return list(lines())
    except McpwrapError as error:
        return [f"- not known [{error.code}]"]


def _own_version() -> dict[str, str]:
    build = version.build()
    return {
        "mcpwrap": mcpwrap.__version__,
        "package": build.package,
        "commit": build.commit,
        "Python": version.PYTHON,
    }


def _configuration() -> tuple[Config, list[Check]]:
    """Return the configuration; an empty one with its errors, if it has any."""
    try:
        return parse(observer.config_files()), []
    except ConfigError as error:
        problems = [f"[{problem.code}]" for problem in error.problems]
    except McpwrapError as error:
        problems = [f"[{error.code}]"]
    nothing = Config(servers={}, file_by_server={})
    return nothing, [failed("configuration", text, "") for text in problems]


def _registered() -> set[str]:
    """Return the servers of the last `apply`, of which units may be left."""
    try:
        return set(observer.registry().by_name)
    except McpwrapError:
        return set()


def _shape(config: Config, words: Vocabulary) -> Iterator[str]:
    """Yield a line for each server, one for all other settings, and one for the policy."""
    for name, server in config.servers.items():
        label = words.label_by_server[name]
        yield bug_report.server_line(label, server, server.runs, len(server.secrets()))
    others = [name for name in bug_report.settings(config) if not name.startswith(_OF_ALL_SERVERS)]
    yield f"- other settings: {', '.join(others) or 'none'}"
    try:
        files = policy_files()
        rules = len(parse_policy(files).rules)
        yield f"- policy: {rules} rules in {len(files)} files"
    except PolicyError as error:
        yield f"- policy: {len(error.flaws)} errors"
    except (McpwrapError, OSError):
        yield "- policy: cannot be read"


_OF_ALL_SERVERS = ("servers ", "file_by_server ")


def expect_alone(file: str | None, *, is_user: bool, as_json: bool, with_names: bool) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: as above.
    """
    if file is None and not with_names:
        return
    wrong = "--names" if file is None else "--user" * is_user or "--json" * as_json
    if wrong:
        problem = f"{wrong} is for a report" if file is None else f"a report has no {wrong}"
        raise UsageError(
            problem,
            where="mcpwrap doctor",
            fix=f"leave out {wrong}",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )

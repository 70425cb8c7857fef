"""`mcpwrap policy convert FILE`: print a policy of MCP Sentinel as a policy of mcpwrap."""

from collections.abc import Callable
from pathlib import Path

import click

from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy import value_parsers
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_with_warnings
from mcpwrap.config.policy.sentinel.conversion import USUAL_CALLS, ConvertedPolicy, convert
from mcpwrap.config.policy.sentinel.sentinel_file import parse_sentinel
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.errors import EXIT_OK, EXIT_USAGE, UsageError, file_error
from mcpwrap.linux import tty

NO_LIMIT = "none"


@click.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--server", default="", metavar="GLOB", help="Servers that the rules are for.")
@click.option(
    "--calls",
    default=USUAL_CALLS,
    show_default=True,
    metavar="RATE",
    help="Calls of one tool, or `none`.",
)
@click.option(
    "--to", "out", type=click.Path(path_type=Path), metavar="OUT", help="Write a new file, OUT."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, server: str, calls: str, out: Path | None, *, as_json: bool) -> int:
    """Print the policy of MCP Sentinel in FILE as one of mcpwrap, which decides as that does.

    What Sentinel decides by its environment is given here: its limit of calls by --calls, and the
    server that it was started for by --server. Warnings tell what differs.

    \b
    Example:  mcpwrap policy convert security_policy.yaml --server sqlite --to policy.yaml
    Exit status: 0 done, also with warnings; 2 FILE has errors, and nothing was written.
    """
    _expect(value_parsers.glob, server, "--server")
    limit = "" if calls == NO_LIMIT else calls
    _expect(value_parsers.rate, limit, "--calls")
    try:
        found = convert(parse_sentinel(input_file.read(file)), server=server, calls=limit)
    except PolicyError as error:
        if not as_json:
            raise
        print_json({"flaws": error.flaws, "warnings": [], "policy": ""})
        return EXIT_USAGE
    parse_with_warnings([SourceFile("the converted policy", found.text.encode())])
    if out:
        _write(out, found.text)
    _print(found, is_written=out is not None, as_json=as_json)
    return EXIT_OK


def _expect(parse: Callable[[str], object], text: str, option: str) -> None:
    try:
        if text:
            parse(text)
    except BadValueError as bad:
        raise UsageError(bad.problem, where=option, fix=bad.fix, code=bad.code) from bad


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            "exists already; it was not changed",
            where=str(out),
            fix="name a new file, and compare the two",
            code="E-POLICY-CONVERT-EXISTS",
        ) from error
    except OSError as error:
        raise file_error(error) from error


def _print(found: ConvertedPolicy, *, is_written: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "flaws": [],
                "warnings": found.warnings,
                "rules": [{"name": rule.name, "line": rule.line} for rule in found.rules],
                "policy": found.text,
            }
        )
        return
    for warning in found.warnings:
        first, *more = warning.lines()
        tty.warn_lines([f"warning: {first}", *more])
    if not is_written:
        tty.say_lines(found.text.removesuffix("\n").split("\n"))

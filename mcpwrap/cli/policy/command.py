"""`mcpwrap policy check | test | explain | replay`: try a policy before use. Reads only."""

import os
import sys
from pathlib import Path

import click

from mcpwrap.cli.audit import filters
from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy, parse_with_warnings
from mcpwrap.core.policy.rules import Policy, digest
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.errors import EXIT_OK, EXIT_USAGE
from mcpwrap.gate_client import queries
from mcpwrap.linux import tty
from mcpwrap.machine.policy_files import policy_files

_JSON = click.option("--json", "as_json", is_flag=True, help="Print for machines.")


@click.group("policy")
def command() -> None:
    """Check, try and explain what agents may ask of servers.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    """


@command.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_JSON
def check(files: tuple[Path, ...], *, as_json: bool) -> int:
    """Say everything that is wrong with FILES, or with this machine's policy.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    Exit status: 0 nothing is wrong, 2 something is; each with line and column. Warnings leave 0.
    """
    try:
        found = parse_with_warnings([input_file.read(path) for path in files] or policy_files())
    except PolicyError as error:
        if not as_json:
            raise
        print_json({"flaws": error.flaws, "warnings": []})
        return EXIT_USAGE
    policy, warnings = found
    if as_json:
        print_json({"flaws": [], "warnings": warnings})
    else:
        for warning in warnings:
            first, *more = warning.lines()
            tty.say_lines([f"warning: {first}", *more])
        tty.say(
            f"nothing wrong; {len(policy.rules)} rules, {len(policy.results)} on results,"
            f" {len(policy.limits)} limits; default: {policy.default}"
        )
        if not files:
            tty.say(_standing(policy))
    return EXIT_OK


def _standing(policy: Policy) -> str:
    """Return whether the gate judges by the policy of this machine's files."""
    try:
        said = queries.policy_in_force()
    except (OSError, ProtocolError) as error:
        return f"the gate does not say what it judges by ({error}): `systemctl status mcpwrap-gate`"
    if said == f"policy {digest(policy)}":
        return "the gate judges by it"
    return f"the gate has another ({said}): `sudo systemctl reload mcpwrap-gate`"


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("cases", type=click.Path(path_type=Path))
@_JSON
def test(file: Path, cases: Path, *, as_json: bool) -> int:
    """Try the policy in FILE with the messages in CASES, and compare.

    \b
    Example:  mcpwrap policy test ./policy.yaml ./policy.cases.yaml
    Exit status: 0 all as expected, 1 one differs or more, 2 a file is wrong.
    """
    from mcpwrap.cli.policy.judge import run_cases  # noqa: PLC0415 - sqlglot takes 0.2 s to load

    return run_cases(parse_policy([input_file.read(file)]), input_file.read(cases), as_json=as_json)


@command.command("explain")
@click.argument("name")
@click.argument("tool")
@click.argument("args")
@click.option("--policy", "file", type=click.Path(path_type=Path), help="Not the machine's.")
@_JSON
def explain(name: str, tool: str, args: str, *, file: Path | None, as_json: bool) -> int:
    """Say how a call of TOOL of server NAME with ARGS, a JSON object, is judged, and why.

    With `-` for ARGS they are read from standard input. A TOOL with a slash in it is a method, and
    ARGS are its params.

    \b
    Example:  mcpwrap policy explain sqlite read_query '{"query": "SELECT * FROM t"}'
    """
    from mcpwrap.cli.policy.judge import run_explain  # noqa: PLC0415 - as above

    text = sys.stdin.buffer.read() if args == "-" else os.fsencode(args)
    policy = parse_policy([input_file.read(file)] if file else policy_files())
    return run_explain(policy, (name, tool), text, as_json=as_json)


@command.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@filters.since
@click.option("--server", default="", metavar="G", help="Of this server alone.")
@_JSON
def replay(file: Path, since: str, server: str, *, as_json: bool) -> int:
    """Say what the policy in FILE would have decided otherwise on what agents have asked so far.

    \b
    Example:  mcpwrap policy replay --since 7d ./policy.yaml
    """
    from mcpwrap.cli.policy.replay import run_replay  # noqa: PLC0415 - as above

    at = filters.time_of(since) if since else 0.0
    return run_replay(parse_policy([input_file.read(file)]), server, at, as_json=as_json)

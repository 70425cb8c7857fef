"""`mcpwrap policy check | test | explain | replay`: try a policy before use. Reads only."""

import os
import sys
from pathlib import Path

import click

from mcpwrap.cli.audit import filters
from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.policy import hub_call
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy, parse_with_warnings
from mcpwrap.core.policy.rules import Policy, digest
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.errors import EXIT_OK, EXIT_USAGE
from mcpwrap.gate_client import queries
from mcpwrap.linux import tty
from mcpwrap.machine.policy_files import policy_files

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("policy")
def command() -> None:
    """Check, test and explain policies: the rules for what agents may request.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    """


@command.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_JSON
def check(files: tuple[Path, ...], *, as_json: bool) -> int:
    """Report every error in the policy FILES, or in this machine's policy.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    Exit status: 0 no errors, also with warnings; 2 errors, each with line and column.
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
            f"no errors; {len(policy.rules)} rules, {len(policy.results)} on results,"
            f" {len(policy.limits)} limits; default: {policy.default}"
        )
        if not files:
            tty.say(_gate_policy_text(policy))
    return EXIT_OK


def _gate_policy_text(policy: Policy) -> str:
    """Return the line that says whether the gate uses the policy of this machine's files."""
    try:
        said = queries.policy_in_force()
    except (OSError, ProtocolError) as error:
        state = "`systemctl status mcpwrap-gate` shows its state"
        return f"the gate does not answer which policy it uses ({error}): {state}"
    if said == f"policy {digest(policy)}":
        return "the gate uses this policy"
    return f"the gate uses another one ({said}): `sudo systemctl reload mcpwrap-gate`"


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("cases", type=click.Path(path_type=Path))
@_JSON
def test(file: Path, cases: Path, *, as_json: bool) -> int:
    """Judge the messages in CASES by the policy in FILE, and compare with what they expect.

    \b
    Example:  mcpwrap policy test ./policy.yaml ./policy.cases.yaml
    Exit status: 0 all decisions are as expected, 1 at least one differs, 2 a file has errors.
    """
    from mcpwrap.cli.policy.judge import run_cases  # noqa: PLC0415 - sqlglot takes 0.2 s to load

    return run_cases(parse_policy([input_file.read(file)]), input_file.read(cases), as_json=as_json)


@command.command("explain")
@click.argument("name")
@click.argument("tool")
@click.argument("args")
@click.option(
    "--policy", "file", type=click.Path(path_type=Path), help="Use this policy, not this machine's."
)
@_JSON
def explain(name: str, tool: str, args: str, *, file: Path | None, as_json: bool) -> int:
    """Show how a call of TOOL of server NAME with ARGS is judged, and why.

    ARGS is a JSON object; `-` reads it from standard input. A TOOL with a slash in it is a method,
    and ARGS are its params. For a hub, TOOL is the name that the agent sees: the hub's rules judge
    the call, and then the member's rules that of its own tool.

    \b
    Example:  mcpwrap policy explain sqlite read_query '{"query": "SELECT * FROM t"}'
    """
    from mcpwrap.cli.policy.judge import (  # noqa: PLC0415 - as above
        run_explain,
        run_explain_hub,
    )

    text = sys.stdin.buffer.read() if args == "-" else os.fsencode(args)
    policy = parse_policy([input_file.read(file)] if file else policy_files())
    hub = hub_call.hub_of(name) if "/" not in tool else None
    if hub and (behind := hub_call.member_call(name, hub, tool)):
        return run_explain_hub(policy, (name, tool), text, behind, as_json=as_json)
    return run_explain(policy, (name, tool), text, as_json=as_json)


@command.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@filters.since
@click.option("--server", default="", metavar="G", help="Only requests to this server.")
@_JSON
def replay(file: Path, since: str, server: str, *, as_json: bool) -> int:
    """Show which recorded requests of agents the policy in FILE would decide differently.

    \b
    Example:  mcpwrap policy replay --since 7d ./policy.yaml
    """
    from mcpwrap.cli.policy.replay import run_replay  # noqa: PLC0415 - as above

    at = filters.time_of(since) if since else 0.0
    return run_replay(parse_policy([input_file.read(file)]), server, at, as_json=as_json)

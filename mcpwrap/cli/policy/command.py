"""`mcpwrap policy check | test | explain | replay`: try a policy before use. They read only."""

import os
import sys
from pathlib import Path

import click

from mcpwrap.cli.audit import filters
from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.policy import accept, convert, default_policy, hub_call, live, rules, suggest
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy, parse_with_warnings
from mcpwrap.core.policy.default_policy import short_names
from mcpwrap.core.policy.rules import Policy, digest, is_disabled
from mcpwrap.core.text.counts import counted
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.errors import EXIT_OK, EXIT_USAGE, UsageError
from mcpwrap.gate_client import queries
from mcpwrap.linux import tty
from mcpwrap.machine import accepted_rules
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.policy_files import policy_files

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("policy")
def command() -> None:
    """Check, test and explain policies: the rules for what agents may request.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    """


command.add_command(convert.command)


@command.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--live", "is_live", is_flag=True, help="Name rules that no listed tool meets.")
@_JSON
def check(files: tuple[Path, ...], *, is_live: bool, as_json: bool) -> int:
    """Report every error in the policy FILES, or in this machine's policy.

    With --live, the rules are compared with the tools that this machine's servers have listed, as
    they were accepted: a rule that meets none of them is named, and a condition on an argument that
    no tool has.

    \b
    Example:  mcpwrap policy check ./policy.yaml
    Exit status: 0 no errors, also with warnings; 1 with --live, a rule or a condition that has no
    effect; 2 errors, each with line and column.
    """
    read = [input_file.read(path) for path in files] or policy_files()
    names = short_names(shipped.load())
    try:
        found = parse_with_warnings(read, names)
    except PolicyError as error:
        if not as_json:
            raise
        print_json({"flaws": error.flaws, "warnings": []})
        return EXIT_USAGE
    policy, warnings = found
    if is_live:
        return live.run(policy, as_json=as_json)
    if as_json:
        print_json({"flaws": [], "warnings": warnings})
    else:
        for warning in warnings:
            first, *more = warning.lines()
            tty.say_lines([f"warning: {first}", *more])
        tty.say(
            f"no errors; {counted(len(policy.rules), 'rule')}, {len(policy.results)} on results,"
            f" {counted(len(policy.limits), 'limit')}; default: {policy.default}"
        )
        tty.say(_default_policy_text(policy))
        if not files:
            tty.say(_gate_policy_text(shipped.extended(policy)))
    return EXIT_OK


def _default_policy_text(policy: Policy) -> str:
    """Return the line that says how much of the default policy is in force."""
    if not policy.has_default_policy:
        return "default policy: disabled"
    rules = shipped.load().rules
    for_all = [entry for entry in policy.disabled if "*" in entry.servers]
    off = [rule for rule in rules if is_disabled(for_all, rule.name)]
    for_some = [rule for rule in rules if is_disabled(policy.disabled, rule.name)]
    only = len(for_some) - len(off)
    some = f", {only} more for some servers" if only else ""
    return f"default policy: {len(rules)} rules, {len(off)} disabled{some}"


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
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.argument("cases", required=False, type=click.Path(path_type=Path))
@click.option("--accepted", "is_accepted", is_flag=True, help="The cases of accepted rules.")
@_JSON
def test(file: Path | None, cases: Path | None, *, is_accepted: bool, as_json: bool) -> int:
    """Judge the messages in CASES by the policy in FILE, and compare with what they expect.

    The default policy judges them too, unless FILE disables it. Without arguments, the cases of the
    default policy are judged by it alone. With --accepted, the cases that `mcpwrap policy accept`
    has written are judged by this machine's policy; root alone may read them.

    \b
    Example:  mcpwrap policy test ./policy.yaml ./policy.cases.yaml
    Exit status: 0 all decisions are as expected, 1 at least one differs, 2 a file has errors.
    """
    from mcpwrap.cli.policy.judge import run_cases  # noqa: PLC0415 - sqlglot takes 0.2 s to load

    if is_accepted:
        return run_cases(_extended_policy(None), accepted_rules.cases(), as_json=as_json)
    if file is None:
        return run_cases(shipped.extended(Policy()), shipped.cases(), as_json=as_json)
    if cases is None:
        raise UsageError(
            "a policy without its cases",
            where="mcpwrap policy test",
            fix="name both files, or none for the cases of the default policy",
            code="E-POLICY-TEST-NO-CASES",
        )
    return run_cases(_extended_policy(file), input_file.read(cases), as_json=as_json)


def _extended_policy(file: Path | None) -> Policy:
    """Return the policy of a file, or of this machine, as it is in force."""
    return shipped.extended(parse_policy([input_file.read(file)] if file else policy_files()))


@command.command("explain")
@click.argument("name")
@click.argument("tool")
@click.argument("args")
@click.option("--policy", "file", type=click.Path(), help="Use this policy, not this machine's.")
@click.option("--project", default="", metavar="PATH", help="Of a session that sees this project.")
@_JSON
def explain(name: str, tool: str, args: str, *, as_json: bool, **options: str | None) -> int:
    """Show how a call of TOOL of server NAME with ARGS is judged, and why.

    ARGS is a JSON object; `-` reads it from standard input. A TOOL with a slash in it is a method,
    and ARGS are its params. For a hub, TOOL is the name that the agent sees: the hub's rules judge
    the call, and then the member's rules that of its own tool.

    \b
    Example:  mcpwrap policy explain sqlite read_query '{"query": "SELECT * FROM t"}'
    """
    from mcpwrap.cli.policy.judge import (  # noqa: PLC0415 - as above
        ExplainedCall,
        run_explain,
        run_explain_hub,
    )

    called, file = ExplainedCall(name, tool, options["project"] or ""), options["file"]
    text = sys.stdin.buffer.read() if args == "-" else os.fsencode(args)
    policy = _extended_policy(Path(file) if file else None)
    hub = hub_call.hub_of(name) if "/" not in tool else None
    if hub and (behind := hub_call.member_call(name, hub, tool)):
        return run_explain_hub(policy, called, text, behind, as_json=as_json)
    return run_explain(policy, called, text, as_json=as_json)


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
    return run_replay(_extended_policy(file), server, at, as_json=as_json)


for one in (default_policy.command, suggest.command, accept.command, rules.command):
    command.add_command(one)

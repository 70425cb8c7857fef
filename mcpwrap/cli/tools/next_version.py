"""Next version of a server: what `mcpwrap tools diff NAME --next COMMAND…` starts and compares.

Root's program starts it under an account of its own. This process gives up root before it parses
what the version lists.
"""

import subprocess
from collections.abc import Sequence

import click
import msgspec

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.core.pins.next_version import NextVersionDifference, difference
from mcpwrap.core.pins.pins_file import ServerPins
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire import next_version_pipe
from mcpwrap.core.wire.next_version_pipe import MAX_ANSWER_BYTES, NextVersionAnswer
from mcpwrap.errors import McpwrapError, UsageError, split_name
from mcpwrap.linux.isolation.privileges import give_up_root
from mcpwrap.plan import paths

_VERB = "tools diff"
_FLAG = "--next"


class DiffCommand(click.Command):
    """Command `diff`: all behind `--next` is the command of the next version, options too."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line."""
        return [*super().collect_usage_pieces(ctx), f"[{_FLAG} COMMAND...]"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is before `--next`; the parameter `next_command` has the rest, if any."""
        at = args.index(_FLAG) if _FLAG in args else len(args)
        rest = super().parse_args(ctx, args[:at])
        ctx.params["next_command"] = tuple(args[at + 1 :]) if at < len(args) else None
        return rest


def next_difference(
    report: PinsReport, command: Sequence[str], *, with_secrets: bool
) -> NextVersionDifference:
    """Start the command in the server's place; return how it differs from what is accepted.

    From then on this process runs as `nobody`: what is needed of the gate is in the report.

    Raises:
        McpwrapError: it does not list its definitions.
        click.exceptions.Exit: root's program has printed why.
    """
    name = report.server
    expect_root(f"{_VERB} {name} {_FLAG} …")
    if not command:
        raise UsageError(
            "no command",
            where=f"mcpwrap {_VERB} {name} {_FLAG}",
            fix=f"write the command of the next version behind `{_FLAG}`, as in "
            f"`{_FLAG} npx -y @scope/server@1.3.0`",
            code="E-NEXT-NO-COMMAND",
        )
    untrusted = _answer_of(name, command, with_secrets=with_secrets)
    give_up_root("", "")
    return _compared(untrusted, report)


def _answer_of(name: str, command: Sequence[str], *, with_secrets: bool) -> bytes:
    """Run root's program, and return its output.

    Raises:
        click.exceptions.Exit: it has printed why there is none.
    """
    flags = ["--with-secrets"] if with_secrets else []
    argv = [paths.ROOT_PROGRAM, "next", *flags, name, *command]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as root_program:
        text = root_program.stdout.read(MAX_ANSWER_BYTES + 1) if root_program.stdout else b""
    if root_program.returncode:
        raise click.exceptions.Exit(root_program.returncode)
    return text


def _compared(untrusted: bytes, report: PinsReport) -> NextVersionDifference:
    name = report.server
    pins = ServerPins(accepted=report.accepted, rejected=report.rejected)
    if not untrusted:
        raise _failure(NextVersionAnswer(problem="it was ended before it had answered"), name)
    try:
        answer = next_version_pipe.decode_answer(untrusted)
        if answer.problem:
            raise _failure(answer, name)
        return difference(pins, answer.pages, report.foreign_names)
    except (msgspec.MsgspecError, strict_json.NotJsonError, strict_json.TooDeepError) as error:
        raise McpwrapError(
            f"it lists what the gate would not forward: {str(error) or 'it is not strict JSON'}",
            where=f"the next version of {name}",
            fix="read its code before it is used: it may be an attack",
            code="E-NEXT-NOT-MCP",
        ) from error


def _failure(answer: NextVersionAnswer, name: str) -> McpwrapError:
    problem, code = split_name(visible(answer.problem), code="E-NEXT-FAILED")
    written = answer.stderr.strip().splitlines()
    return McpwrapError(
        f"does not list its definitions: {problem}",
        where=f"the next version of {name}",
        fix="correct the command behind `--next`; a version that needs a secret to list its tools "
        "gets it by `--with-secrets`",
        more=[f"| {visible(line)[:500]}" for line in written],
        code=code,
    )

"""Command line of `mcpwrap run` in an agent's entry, recognized by its form."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from mcpwrap.config.agent_files.transport import StdioTransport, Transport

PROGRAM = "mcpwrap"
_VERB = "run"
_FLAGS = frozenset({"--network", "--allow-degraded", "--no-approver"})
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_BY_OPTION = {
    "--inherit": re.compile(_VARIABLE),
    "--bearer-from": re.compile(_VARIABLE),
    "--header-from": re.compile(rf"[A-Za-z][A-Za-z0-9-]*={_VARIABLE}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRunLine:
    """Options of a line that matter outside `run`, and the command or the URL of its server."""

    name: str = ""  # "": the default of `run`
    inherits: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # empty for a server at a URL
    url: str = ""
    variable_by_header: Mapping[str, str] = field(default_factory=dict)
    bearer_variable: str = ""

    def variables(self) -> frozenset[str]:
        """Return all variables that the line names."""
        return frozenset({*self.inherits, *self.variable_by_header.values(), self.bearer_variable})


def is_run_line(launch: Transport) -> bool:
    """Return whether an entry starts a program of mcpwrap's name with `run`, wherever it is."""
    return (
        isinstance(launch, StdioTransport)
        and launch.command.rpartition("/")[2] == PROGRAM
        and launch.args[:1] == (_VERB,)
    )


def parse_run_line(args: tuple[str, ...]) -> ParsedRunLine:
    """Parse the arguments of mcpwrap, of which the first is `run`, as `run` itself does."""
    words = iter(args[1:])
    options: list[tuple[str, str]] = []
    command: list[str] = []
    for word in words:
        if word == "--":
            command = [*words]
        elif not word.startswith("--"):
            command = [word, *words]
        elif word not in _FLAGS:
            options.append(_option(word, words))
    by_key = dict(options)
    headers = (value.partition("=") for key, value in options if key == "--header-from")
    return ParsedRunLine(
        name=by_key.get("--name", ""),
        inherits=tuple(value for key, value in options if key == "--inherit"),
        command=tuple(command),
        url=by_key.get("--url", ""),
        variable_by_header={name: variable for name, _, variable in headers},
        bearer_variable=by_key.get("--bearer-from", ""),
    )


def _option(word: str, following: Iterator[str]) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    return key, value if equals else next(following, "")


def variable_arguments(args: tuple[str, ...]) -> list[int]:
    """Return the numbers, from 1, of arguments that have the form of a variable's name, of a line.

    Those of the server's command are never among them.
    """
    own = args[: len(args) - len(parse_run_line(args).command)]
    return [
        number
        for number, (option, text) in enumerate(pairwise(own), start=2)
        if option in _VARIABLE_BY_OPTION and _VARIABLE_BY_OPTION[option].fullmatch(text)
    ]


def run_arguments(
    name: str, options: tuple[str, ...], command: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the arguments of mcpwrap by which `run` starts a server."""
    return (_VERB, "--name", name, *options, *(("--", *command) if command else ()))

"""Lines of `mcpwrap run` in entries: recognized by form, parsed as `run` parses them."""

import pytest

from mcpwrap.config.agent_files.run_line import (
    ParsedRunLine,
    is_run_line,
    parse_run_line,
    run_arguments,
)
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, Transport


@pytest.mark.parametrize(
    ("launch", "is_one"),
    [
        (StdioTransport("/usr/bin/mcpwrap", ("run", "--", "npx")), True),
        (StdioTransport("mcpwrap", ("run",)), True),
        (StdioTransport("/home/a/venv/bin/mcpwrap", ("run", "x")), True),
        (StdioTransport("/usr/bin/mcpwrap", ("wrap", "--all")), False),
        (StdioTransport("/usr/bin/mcpwrap"), False),
        (StdioTransport("/usr/bin/mcpwrap-connect", ("run",)), False),
        (HttpTransport("https://mcpwrap"), False),
    ],
)
def test_a_line_is_recognized_by_its_form(launch: Transport, *, is_one: bool) -> None:
    assert is_run_line(launch) == is_one


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("npx -y x", ParsedRunLine(command=("npx", "-y", "x"))),  # `--` may be left out
        ("-- npx -- x", ParsedRunLine(command=("npx", "--", "x"))),
        ("--network -- npx", ParsedRunLine(command=("npx",))),
        ("--allow-degraded --no-approver npx", ParsedRunLine(command=("npx",))),
        ("--name a --network npx", ParsedRunLine(name="a", command=("npx",))),
        ("--name=a -- npx", ParsedRunLine(name="a", command=("npx",))),
        (
            "--inherit A --read /x --inherit=B --write /y --policy p -- npx --name b",
            ParsedRunLine(inherits=("A", "B"), command=("npx", "--name", "b")),
        ),
        ("", ParsedRunLine()),
        ("--name", ParsedRunLine()),
        (
            "--url https://x/ --bearer-from T --header-from X-A=B --header-from C=D",
            ParsedRunLine(
                url="https://x/",
                bearer_variable="T",
                variable_by_header={"X-A": "B", "C": "D"},
            ),
        ),
    ],
)
def test_its_options_and_command(words: str, expected: ParsedRunLine) -> None:
    assert parse_run_line(("run", *words.split())) == expected


def test_all_variables_of_a_line() -> None:
    words = "--inherit A --url https://x/ --bearer-from T --header-from X=B"
    assert parse_run_line(("run", *words.split())).variables() == {"A", "B", "T"}


@pytest.mark.parametrize(
    ("options", "command"), [(("--network",), ("npx", "x")), (("--url", "https://x/"), ())]
)
def test_what_is_written_is_what_is_read(
    options: tuple[str, ...], command: tuple[str, ...]
) -> None:
    args = run_arguments("one", options, command)
    assert parse_run_line(args).name == "one"
    assert parse_run_line(args).command == command
    assert ("--" in args) == bool(command)

"""Options of `mcpwrap run` that go together, and those that do not."""

import pytest

from mcpwrap.as_agent.run import command as commands
from mcpwrap.as_agent.run import session
from mcpwrap.as_agent.run.sandbox.layers import Network
from mcpwrap.as_agent.run.session import RunOptions
from mcpwrap.errors import UsageError

URL = "https://mcp.example.com/mcp"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Record the options of runs in place of running anything."""
    found: list[RunOptions] = []

    def run(options: RunOptions, _environ: dict[str, str]) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(session, "run", run)
    monkeypatch.setenv("TOKEN", "tok-0123456789")
    return found


def typed(*words: str) -> None:
    commands.command.main([*words], standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("--", "true"),
        ("true", "--url", URL),  # an option of the program
        ("--read", "/", "--write", "/", "--inherit", "X", "--network", "--", "true"),
        ("--url", URL),
        ("--url", URL, "--name", "board", "--policy", "x", "--allow-degraded", "--no-approver"),
        ("--url", URL, "--bearer-from", "TOKEN", "--header-from", "X-Api-Key=TOKEN"),
    ],
)
def test_options_of_a_program_or_of_a_url(
    words: tuple[str, ...], started: list[RunOptions]
) -> None:
    typed(*words)
    (options,) = started
    assert (options.remote is not None) == (words[0] == "--url")
    assert (options.network is Network.ALL) == ("--network" in words)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "neither COMMAND nor --url is given"),
        (("--network",), "neither COMMAND nor --url is given"),
        (("--bearer-from", "TOKEN"), "neither COMMAND nor --url is given"),
        *(
            (("--url", URL, *more), "are not for --url")
            for more in (
                ("--", "true"),
                ("--read", "/"),
                ("--write", "/"),
                ("--inherit", "X"),
                ("--network",),
            )
        ),
        (("--bearer-from", "TOKEN", "--", "true"), "are for --url"),
        (("--header-from", "X-Api-Key=TOKEN", "--", "true"), "are for --url"),
    ],
)
def test_options_of_both_are_refused(
    words: tuple[str, ...], problem: str, started: list[RunOptions]
) -> None:
    with pytest.raises(UsageError) as caught:
        typed(*words)
    assert problem in caught.value.problem
    assert caught.value.code == "E-RUN-URL"
    assert started == []


def test_an_empty_url_is_not_left_out(started: list[RunOptions]) -> None:
    with pytest.raises(UsageError, match="not an https URL"):
        typed("--url", "")
    assert started == []

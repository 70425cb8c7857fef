"""Status of an entry: wrapped if it leads to an applied server, drifted if it only seems to."""

import re

import pytest

from mcpwrap.config.agent_files.entry_schema import STUB
from mcpwrap.config.agent_files.transport import (
    HttpTransport,
    StdioTransport,
    Transport,
    UnknownTransport,
)
from mcpwrap.config.agent_files.wrap_status import (
    LINK,
    AppliedServers,
    WrapStatus,
    is_ours,
    wrap_status,
)
from mcpwrap.plan import paths

KNOWN = AppliedServers(
    {"git": frozenset({"TZ"}), "web": frozenset()}, {"http://127.78.0.1:52100": "web"}
)


MCPWRAP = "/home/a/venv/bin/mcpwrap"


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        (StdioTransport(MCPWRAP, ("run", "--name", "a", "npx")), WrapStatus("run", "a")),
        (StdioTransport(MCPWRAP, ("run", "npx")), WrapStatus("run")),
        (StdioTransport(MCPWRAP, ("wrap", "--all")), WrapStatus("raw")),
        (  # a stranger's file may name any program so
            StdioTransport("/proj/bin/mcpwrap", ("run", "npx")),
            WrapStatus(
                "raw",
                "",
                "'/proj/bin/mcpwrap' is not this mcpwrap: `mcpwrap unwrap` restores the entry, "
                "then wrap it again [E-WRAP-RUN-OTHER]",
            ),
        ),
    ],
)
def test_a_line_of_run_is_that_of_a_known_mcpwrap(launch: Transport, expected: WrapStatus) -> None:
    known = AppliedServers({}, run_programs=frozenset({MCPWRAP}))
    assert wrap_status(launch, known) == expected
    assert is_ours(launch) == (launch.args[0] == "run" if isinstance(launch, StdioTransport) else 0)


def test_the_paths_are_those_of_the_plan() -> None:
    assert paths.STUB == STUB
    assert paths.link("git") == f"{LINK}git"


@pytest.mark.parametrize(
    ("launch", "state", "server", "why"),
    [
        (StdioTransport(STUB, ("git",)), "wrapped", "git", ""),
        (StdioTransport("mcpwrap-connect", ("git",)), "wrapped", "git", ""),
        (StdioTransport(f"{LINK}git"), "wrapped", "git", ""),
        (
            StdioTransport(STUB, ("git",), {"TZ": "UTC"}, "/x"),
            "wrapped",
            "git",
            "",
        ),  # it inherits TZ
        (
            StdioTransport(STUB, ("git",), {"TZ": "UTC", "T": "s"}),
            "drifted",
            "git",
            "partly wrapped: .* T",
        ),
        (StdioTransport(STUB, ("git",), inherits=("TZ",)), "wrapped", "git", ""),
        (
            StdioTransport(STUB, ("git",), inherits=("TZ", "X")),
            "drifted",
            "git",
            "partly wrapped: .* X",
        ),
        (
            StdioTransport(STUB, ("git",), {}, "", ("envFile",)),
            "drifted",
            "git",
            "partly wrapped: .* `envFile`",
        ),
        (StdioTransport(STUB), "drifted", "", "takes one argument"),
        (StdioTransport(STUB, ("git", "-y")), "drifted", "", "takes one argument"),
        (StdioTransport(f"{LINK}git", ("x",)), "drifted", "", "takes no arguments"),
        (StdioTransport(STUB, ("gone",)), "drifted", "", "no server 'gone' was applied"),
        (StdioTransport(f"{LINK}gone"), "drifted", "", "no server 'gone' was applied"),
        (StdioTransport("/home/alice/mcpwrap-connect", ("git",)), "raw", "", ""),
        (StdioTransport("npx", ("mcpwrap-connect",)), "raw", "", ""),
        (HttpTransport("http://127.78.0.1:52100/"), "wrapped", "web", ""),
        (HttpTransport("http://127.78.0.1:52100"), "wrapped", "web", ""),
        (
            HttpTransport("http://127.78.0.1:52100/", {"Cookie": "x"}),
            "drifted",
            "web",
            "partly .* Cookie",
        ),
        (HttpTransport("http://127.78.0.2:52100/"), "drifted", "", "no server listens there"),
        (HttpTransport("http://127.78.0.1:52100.evil.example/"), "raw", "", ""),
        (HttpTransport("https://x.example/mcp"), "raw", "", ""),
        (UnknownTransport("odd"), "not understood", "", "odd"),
    ],
)
def test_an_entry_stands(launch: Transport, state: str, server: str, why: str) -> None:
    found = wrap_status(launch, KNOWN)
    assert isinstance(found, WrapStatus)
    assert (found.state, found.server) == (state, server)
    assert (not found.why) == (not why)
    assert re.search(why, found.why)


@pytest.mark.parametrize(
    ("launch", "is_so"),
    [
        (StdioTransport(STUB, ("git",)), True),
        (StdioTransport(STUB, ("gone",), {"A": "x"}, "/x"), True),
        (StdioTransport("mcpwrap-connect"), True),
        (StdioTransport(f"{LINK}gone"), True),
        (HttpTransport("http://127.78.9.9:52100/"), True),
        (HttpTransport("http://127.78.9.9:52101/"), False),
        (HttpTransport("http://127.0.0.1:52100/"), False),
        (StdioTransport("npx", (STUB, "git")), False),
        (UnknownTransport("odd"), False),
    ],
)
def test_ours_is_what_leads_to_us_whatever_is_applied(launch: Transport, *, is_so: bool) -> None:
    assert is_ours(launch) == is_so


def test_another_program_of_the_stubs_name_is_no_stub() -> None:
    """A name alone is searched in PATH, in which a person's own folder can come first."""
    known = AppliedServers(
        {"time": frozenset()}, other_stub="/home/alice/.local/bin/mcpwrap-connect"
    )
    found = wrap_status(StdioTransport("mcpwrap-connect", ("time",)), known)
    assert (found.state, found.server) == ("drifted", "time")
    assert "/home/alice/.local/bin/mcpwrap-connect" in found.why
    assert (
        wrap_status(StdioTransport("/usr/bin/mcpwrap-connect", ("time",)), known).state == "wrapped"
    )

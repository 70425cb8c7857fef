"""State of an entry: wrapped if it leads to an applied server, drifted if it only looks so."""

import re

import pytest

from mcpwrap.config.agent_files.entry_schema import STUB
from mcpwrap.config.agent_files.transport import HttpTransport, NotUnderstood, Stdio, Transport
from mcpwrap.config.agent_files.wrap_status import LINK, Known, Standing, is_ours, standing
from mcpwrap.plan import paths

KNOWN = Known({"git": frozenset({"TZ"}), "web": frozenset()}, {"http://127.78.0.1:52100": "web"})


def test_the_paths_are_those_of_the_plan() -> None:
    assert paths.STUB == STUB
    assert paths.link("git") == f"{LINK}git"


@pytest.mark.parametrize(
    ("launch", "state", "server", "why"),
    [
        (Stdio(STUB, ("git",)), "wrapped", "git", ""),
        (Stdio("mcpwrap-connect", ("git",)), "wrapped", "git", ""),
        (Stdio(f"{LINK}git"), "wrapped", "git", ""),
        (Stdio(STUB, ("git",), {"TZ": "UTC"}, "/x"), "wrapped", "git", ""),  # it inherits TZ
        (Stdio(STUB, ("git",), {"TZ": "UTC", "T": "s"}), "drifted", "git", "half ours: .* T"),
        (Stdio(STUB, ("git",), inherits=("TZ",)), "wrapped", "git", ""),
        (Stdio(STUB, ("git",), inherits=("TZ", "X")), "drifted", "git", "half ours: .* X"),
        (Stdio(STUB, ("git",), {}, "", ("envFile",)), "drifted", "git", "half ours: .* `envFile`"),
        (Stdio(STUB), "drifted", "", "wants one argument"),
        (Stdio(STUB, ("git", "-y")), "drifted", "", "wants one argument"),
        (Stdio(f"{LINK}git", ("x",)), "drifted", "", "takes no arguments"),
        (Stdio(STUB, ("gone",)), "drifted", "", "no server 'gone' was applied"),
        (Stdio(f"{LINK}gone"), "drifted", "", "no server 'gone' was applied"),
        (Stdio("/home/alice/mcpwrap-connect", ("git",)), "raw", "", ""),
        (Stdio("npx", ("mcpwrap-connect",)), "raw", "", ""),
        (HttpTransport("http://127.78.0.1:52100/"), "wrapped", "web", ""),
        (HttpTransport("http://127.78.0.1:52100"), "wrapped", "web", ""),
        (
            HttpTransport("http://127.78.0.1:52100/", {"Cookie": "x"}),
            "drifted",
            "web",
            "half .* Cookie",
        ),
        (HttpTransport("http://127.78.0.2:52100/"), "drifted", "", "no server listens there"),
        (HttpTransport("http://127.78.0.1:52100.evil.example/"), "raw", "", ""),
        (HttpTransport("https://x.example/mcp"), "raw", "", ""),
        (NotUnderstood("odd"), "not understood", "", "odd"),
    ],
)
def test_an_entry_stands(launch: Transport, state: str, server: str, why: str) -> None:
    found = standing(launch, KNOWN)
    assert isinstance(found, Standing)
    assert (found.state, found.server) == (state, server)
    assert (not found.why) == (not why)
    assert re.search(why, found.why)


@pytest.mark.parametrize(
    ("launch", "is_so"),
    [
        (Stdio(STUB, ("git",)), True),
        (Stdio(STUB, ("gone",), {"A": "x"}, "/x"), True),
        (Stdio("mcpwrap-connect"), True),
        (Stdio(f"{LINK}gone"), True),
        (HttpTransport("http://127.78.9.9:52100/"), True),
        (HttpTransport("http://127.78.9.9:52101/"), False),
        (HttpTransport("http://127.0.0.1:52100/"), False),
        (Stdio("npx", (STUB, "git")), False),
        (NotUnderstood("odd"), False),
    ],
)
def test_ours_is_what_leads_to_us_whatever_is_applied(launch: Transport, *, is_so: bool) -> None:
    assert is_ours(launch) == is_so


def test_another_program_of_the_stubs_name_is_no_stub() -> None:
    """The name alone is looked for in PATH, and somebody's own folder can come first there."""
    known = Known({"time": frozenset()}, other_stub="/home/alice/.local/bin/mcpwrap-connect")
    found = standing(Stdio("mcpwrap-connect", ("time",)), known)
    assert (found.state, found.server) == ("drifted", "time")
    assert "/home/alice/.local/bin/mcpwrap-connect" in found.why
    assert standing(Stdio("/usr/bin/mcpwrap-connect", ("time",)), known).state == "wrapped"

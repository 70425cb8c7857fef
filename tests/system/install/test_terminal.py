"""Terminal escapes in names of files, accounts, servers and hosts: none reaches a terminal."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.system.bed.machine import Machine
from tests.system.support import servers
from tests.system.support.how_to import PROGRESS
from tests.system.support.tiers import only_in_test_all

STAGE = servers.wrapped
FORGED = "good     all is well"  # the beginning of a line of `doctor`
PLAIN = "日本é"
# Names the window, clears the screen by one 8-bit character, returns to the left edge, begins a
# line that imitates our output, and reverses the text after it.
NAME = f"\x1b]0;owned\x07\x9b2J\r{FORGED}\n{FORGED}\u202e\u200b{PLAIN}"
WORD = NAME.replace("\n", "")
COLOUR = re.compile(r"\x1b\[(0|[0-9;]{1,5})m")
EVERYTHING = "mcpwrap doctor everything"


@pytest.fixture
def planted(machine: Machine) -> Iterator[Machine]:
    machine.call("hostile_names", "plant", NAME)
    try:
        yield machine
    finally:
        machine.call("hostile_names", "remove", NAME)


def sent(machine: Machine, command: str, user: str = "root") -> str:
    """Return the text sent to a terminal, without our colours and progress, by lines."""
    text = machine.call("hostile_names", "shown", command, user=user).encode("latin-1").decode()
    return PROGRESS.sub("", COLOUR.sub("", text).replace("\r\n", "\n"))


def expect_harmless(text: str, *shown: str) -> None:
    """No escape in it is executed, no line is a name's, and these texts are readable."""
    assert {c for c in text if c != "\n" and not c.isprintable()} == set()
    assert not re.search(f"^{FORGED}", text, re.MULTILINE)
    for each in shown:
        assert each in text


def test_doctor_shows_a_file_and_an_account_to_root(planted: Machine) -> None:
    text = sent(planted, EVERYTHING)
    escaped = r"\x1b]0;owned\x07\x9b2J\r"
    expect_harmless(text, f"read /home/alice/{escaped}", f"a session of {escaped}", PLAIN)
    assert re.search("^good     everything: ", text, re.MULTILINE)  # the twin: our own lines
    assert re.search(r"\\n" + FORGED + r"\\u202e\\u200b" + PLAIN, text)


def alices(command: str) -> tuple[str, str]:
    return command, "alice"


@only_in_test_all("each other source of a name")
@pytest.mark.parametrize(
    ("command", "user", "shown"),
    [
        (*alices("mcpwrap check hostile.toml"), r"\x1b]0;owned"),
        (*alices("mcpwrap policy check hostile.yaml"), r"\x1b]0;owned"),
        (*alices(f"mcpwrap policy check {shlex.quote(NAME)}"), PLAIN),
        (*alices(f"mcpwrap check /home/alice/nosuch{shlex.quote(NAME)}"), PLAIN),
        (*alices("mcpwrap clients"), PLAIN),
        (*alices("mcpwrap wrap --all --dry-run"), PLAIN),
        (*alices(f"CODEX_HOME=~/{shlex.quote(NAME)}.d mcpwrap clients"), rf"{PLAIN}.d/config.toml"),
        (*alices(f"mcpwrap {shlex.quote(NAME)}"), "No such command"),
        (*alices(f"mcpwrap stop {shlex.quote(NAME)}"), "needs root"),
        (*alices(f"mcpwrap run --name {shlex.quote(NAME)} -- true"), PLAIN),
        # Of its own stderr a server may write any number of lines.
        (*alices(f"mcpwrap run -- sh -c 'echo \" $0\" >&2' {shlex.quote(WORD)}"), PLAIN),
        (f"mcpwrap kill {shlex.quote(NAME)}", "root", PLAIN),
        (f"mcpwrap secret remove x {shlex.quote(NAME)}", "root", PLAIN),
        (f"mcpwrap accept 0 {shlex.quote(NAME)}", "root", "SHA-256"),
        ("mcpwrap egress probe", "root", r"\x1b]0;owned"),
    ],
)
def test_a_name_is_shown_and_not_obeyed(
    planted: Machine, command: str, user: str, shown: str
) -> None:
    expect_harmless(sent(planted, command, user), shown)


@only_in_test_all("each other source of a name")
def test_what_an_account_asked_for_is_shown_and_not_obeyed(planted: Machine) -> None:
    with planted.session("everything") as session:
        session.initialize()
        session.answer_to(session.request("tools/call", {"name": NAME, "arguments": {}}))
        expect_harmless(sent(planted, "mcpwrap sessions"), PLAIN)
    text = sent(planted, "mcpwrap audit show -n 20")
    expect_harmless(text, r"\x1b]0;owned")
    assert text.count("tools/call") > 0


@only_in_test_all("each other source of a name")
def test_logs_show_what_the_journal_has(planted: Machine) -> None:
    planted.as_root("mcpwrap restart everything")
    pid = planted.show("mcpwrap@everything.service", "MainPID")["MainPID"]
    planted.call("hostile_names", "log", f"\u202e\u2066{PLAIN}", int(pid))
    expect_harmless(sent(planted, "mcpwrap logs everything"), rf"\u202e\u2066{PLAIN}")
    text = planted.as_root("mcpwrap logs --json everything").out
    assert text.isascii()
    assert r"\u202e\u2066" in text


@only_in_test_all("mutation twin")
def test_the_door_is_what_makes_it_harmless(planted: Machine) -> None:
    line = 'return visible(text).replace("\\n", "\\\\n")'
    with planted.patched("linux/tty", line, "return text"):
        text = sent(planted, EVERYTHING)
    assert "\x1b]0;owned\x07\x9b2J" in text
    assert f"\n{FORGED}" in text

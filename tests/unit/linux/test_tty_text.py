"""Terminal output: no name in it controls a terminal."""

import os
import pty
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from mcpwrap.cli.common import output
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import tty
from mcpwrap.linux.systemd import stderr_log
from tests.shared import pace

ROOT = Path(__file__).parents[3]

# A hostile name, its form on one line, and its effect on a terminal.
HOSTILE = [
    ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),  # clears the screen
    ("\x1b]0;root\x07", r"\x1b]0;root\x07"),  # sets the window's title
    ("\x1b]8;;https://evil.test\x1b\\ok", r"\x1b]8;;https://evil.test\x1b\ok"),  # a link
    ("\x1b]52;c;cm0K\x07", r"\x1b]52;c;cm0K\x07"),  # fills the clipboard
    ("\x9b2J", r"\x9b2J"),  # C1, for 8-bit terminals
    ("a\rgood", r"a\rgood"),  # overwrites the start of the line
    ("a\x08\x7f", r"a\x08\x7f"),
    ("a\ngood    git: all is well", r"a\ngood    git: all is well"),  # a line like mcpwrap's own
    ("a\u2028b\u2029c\x85d\x0be", r"a\u2028b\u2029c\x85d\x0be"),
    ("a\u202eb\u2066c", r"a\u202eb\u2066c"),  # Trojan Source
    ("a\u200bb\u2060", r"a\u200bb\u2060"),
    ("\U000e0041", r"\U000e0041"),  # a tag
    (os.fsdecode(b"\xff\x9b"), r"\udcff\udc9b"),  # a file name that is not UTF-8
]
PLAIN = ["é ü ß", "日本語", "кириллица", "עברית", "👩💻", r"C:\x1b", "e\u0301"]
CASES = [*HOSTILE, *((text, text) for text in PLAIN)]


@pytest.mark.parametrize(("name", "shown"), CASES)
def test_a_name_is_shown_on_one_line(
    name: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tty.say(f"{name}: is there")
    tty.say(tty.styled(name, "red"), " is red")
    tty.say_lines([name, "x"])
    tty.warn("note: ", name)
    tty.warn_lines([name])
    out, err = capsys.readouterr()
    assert out.split("\n") == [f"{shown}: is there", f"{shown} is red", shown, "x", ""]
    assert err.split("\n") == [f"note: {shown}", shown, ""]


@pytest.mark.parametrize(("name", "shown"), HOSTILE)
def test_only_our_colours_are_sent(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tty, "is_coloured", lambda _: True)
    tty.say(tty.styled(name, "bold", "red"), f" {name}")
    assert capsys.readouterr().out == f"\x1b[1;31m{shown}\x1b[0m {shown}\n"


@pytest.mark.parametrize(("name", "shown"), CASES)
def test_a_failure_has_only_the_lines_of_its_format(
    name: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tty.fail(
        McpwrapError(
            f"no {name}", where=name, fix=f"make {name}", more=[f"| {name}"], code="E-FILE-ACCESS"
        )
    )
    assert capsys.readouterr().err.split("\n") == [
        f"mcpwrap: {shown}: no {shown} [E-FILE-ACCESS]",
        f"  | {shown}",
        f"  fix: make {shown}",
        "",
    ]


@pytest.mark.parametrize(("name", "shown"), CASES)
def test_a_table_and_json_have_the_same(
    name: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output.print_table(["NAME"], [[name], ["next"]])
    assert [line.rstrip() for line in capsys.readouterr().out.split("\n")] == [
        "NAME", shown.rstrip(), "next", "",
    ]  # fmt: skip
    output.print_json({name: [name]})
    output.print_json_line(name)
    assert capsys.readouterr().out.isascii()


@pytest.mark.parametrize(("name", "shown"), HOSTILE)
def test_a_log_line_of_a_service_is_harmless(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    stderr_log.log_line(f"{name} is there")
    assert stream.getvalue() == f"{shown} is there\n".replace("\\n", " ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_characters_that_the_terminal_cannot_show_are_escaped(encoding: str, errors: str) -> None:
    script = (
        "from mcpwrap.cli.common import output; from mcpwrap.linux import tty; tty.guard();"
        r"tty.say('é 日 \udc9b'); output.print_table(['é 日 \udc9b'], [])"
    )
    environ = {"PYTHONIOENCODING": f"{encoding}:{errors}"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environ)
    shown = "é 日 ".encode(encoding, "backslashreplace") + b"\\udc9b"
    assert (done.stderr, [line.rstrip() for line in done.stdout.split(b"\n")]) == (
        b"",
        [shown, shown, b""],
    )


def at_a_terminal(*argv: str) -> bytes:
    """Return the output that a terminal receives; it adds a carriage return to each newline."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", *argv], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other side is closed
            pass
        process.wait(timeout=pace.WAIT_S)
    os.close(ours)
    return seen.replace(b"\r\n", b"\n")


MAIN = "import sys; from mcpwrap.cli.main import main; sys.exit(main())"
BUG = """
import logging
from mcpwrap.linux import tty
tty.guard()
logging.getLogger("aiohttp").error("\\x1b[2J\\nmcpwrap: logged")
raise RuntimeError("\\x1b]0;x\\x07\\nmcpwrap: all is well")
"""


def test_bugs_and_logs_of_libraries_keep_their_lines_and_are_marked() -> None:
    lines = at_a_terminal(BUG).decode().split("\n")
    assert lines[:3] == [
        r"| \x1b[2J", "| mcpwrap: logged", "| Traceback (most recent call last):"
    ]  # fmt: skip
    assert lines[-3:] == [r"| RuntimeError: \x1b]0;x\x07", "| mcpwrap: all is well", ""]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{}"], "No such command"),
        (["--{}"], "No such option"),
        (["status", "--x{}"], "No such option"),
        (["status", "a", "{}"], "unexpected extra argument"),
        (["audit", "show", "-n", "{}"], "Invalid value"),
        (["convert", "x", "--client", "{}"], "Invalid value"),
        (["policy", "check", "/nosuch/{}"], "cannot be read"),
        (["status", "{}"], "no server"),
        (["run", "--name", "{}", "--", "true"], "is not a valid name of a server"),
        (["run", "--", "/nosuch/{}"], "mcpwrap"),
    ],
)
def test_a_command_line_is_printed_harmlessly(arguments: list[str], told: str) -> None:
    name = "日本é" + "".join(name for name, _ in HOSTILE)
    seen = at_a_terminal(MAIN, *(one.format(name) for one in arguments)).decode()
    assert told in seen
    assert "日本é" in seen
    assert [c for c in seen if c != "\n" and not c.isprintable()] == []
    assert "\ngood" not in seen


def test_what_click_prints_by_itself_is_as_it_was() -> None:
    assert at_a_terminal(MAIN, "audit", "prune").decode().split("\n")[:4] == [
        "Usage: mcpwrap audit prune [OPTIONS]",
        "Try 'mcpwrap audit prune --help' for help.",
        "",
        "Error: Missing option '--keep'. [E-USAGE-SYNTAX]",
    ]
    assert b"Run each MCP server under a Unix account of its own." in at_a_terminal(MAIN)


def test_no_module_writes_to_standard_streams_by_number() -> None:
    """Ruff does not see descriptor numbers. Excepted are modules that forward bytes, not text."""
    ways = (r"\b(os|posix|copy)\.write\((1|2|_STDOUT|_STDERR)\b", r"write_all\([12],", "/dev/tty")
    number = re.compile("|".join(ways))
    found = {
        str(path.relative_to(ROOT / "mcpwrap"))
        for path in (ROOT / "mcpwrap").rglob("*.py")
        if number.search(path.read_text())
    }
    assert found == {
        "as_agent/stub.py",  # the stub: the gate has escaped it
        "as_agent/run/relay.py",  # a server's stderr, by core.sanitise
        "as_nobody/proposal_reader.py",  # an answer to root, in a file
        "as_root/main.py",  # the answer of a next version, to a command that has given up root
        "linux/tty.py",
    }


# Each is found in every folder, even if `pyproject.toml` ignores other rules there.
WAYS_ROUND = [
    "print(name)",
    "click.echo(name)",
    "click.secho(name)",
    "click.style(name)",
    "click.prompt(name)",
    "click.confirm(name)",
    "click.get_text_stream(name)",
    "sys.stdout.write(name)",
    "print(name, file=sys.stderr)",
    "sys.__stdout__.write(name)",
    "getpass.getpass(name)",
    "traceback.print_exc()",
    "rich.print(name)",
    "rich.console.Console().print(name)",
]
HEAD = "import getpass, sys, traceback\nimport click, rich, rich.console\nname = sys.argv[1]\n"
FILES = [
    f"mcpwrap/{name}.py"
    for name in ("cli/new", "cli/main", "as_root/new", "as_root/main", "as_root/secrets/mint",
                 "linux/new", "machine/new", "gate_client/new", "as_agent/run/command",
                 "as_agent/new_probe", "as_gate/reload", "session/new")
]  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_ruff_finds_each_bypass(file: str) -> None:
    argv = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise",
            "--select=T20,TID251", f"--stdin-filename={file}", "-"]  # fmt: skip
    done = subprocess.run(
        argv, input=HEAD + "\n".join(WAYS_ROUND), capture_output=True, text=True, cwd=ROOT
    )
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith(file)}
    first = HEAD.count("\n") + 1
    assert found - {2} == set(range(first, first + len(WAYS_ROUND)))


def test_progress_is_a_line_of_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, expected in [(True, "\r\x1b[K0 of\\x1b 2\r\x1b[K"), (False, "")]:
        stream = StringIO()
        monkeypatch.setattr(stream, "isatty", lambda is_one=is_terminal: is_one)
        monkeypatch.setattr(stream, "fileno", lambda: -1)  # its width is not known
        monkeypatch.setattr(sys, "stderr", stream)
        tty.progress("0 of\x1b 2")
        tty.progress("")
        assert stream.getvalue() == expected

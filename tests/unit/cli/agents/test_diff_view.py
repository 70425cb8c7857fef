"""Diff of changes: complete, escaped for the terminal, and confirmed by a person alone."""

import os
import pty
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from mcpwrap.cli.agents.diff_view import agreed, diff_of
from mcpwrap.errors import UsageError
from mcpwrap.linux import tty
from tests.shared import pace

PATH = Path("/home/alice/.x\n\x1b[31m")
HEAD = ["--- /home/alice/.x\\n\\x1b[31m", "+++ /home/alice/.x\\n\\x1b[31m"]
ASK = """
from mcpwrap.cli.agents.diff_view import agreed
print("\\nit is", agreed("Sure?", is_agreed=False))
"""


def seen(diff: list[tty.Part]) -> list[str]:
    """Return the diff as it is printed to a pipe."""
    with redirect_stdout(StringIO()) as out:
        tty.say_lines(diff)
    return out.getvalue().split("\n")[:-1]


def shown(was: str, new: str, **shown_as: str) -> list[str]:
    lines = seen(diff_of(PATH, was.encode(), new.encode(), shown_as=shown_as))
    assert lines[:2] == HEAD
    return lines[2:]


def test_what_is_equal_has_no_diff() -> None:
    assert diff_of(PATH, b"a", b"a") == []


def numbered(count: int, **changed: str) -> str:
    return "".join(f"{changed.get(f'n{n}', n)}\n" for n in range(1, count + 1))


def test_changes_have_lines_around_them_and_their_place() -> None:
    assert shown(numbered(20), numbered(20, n10="x")) == [
        "@@ -7,7 +7,7 @@",
        " 7", " 8", " 9", "-10", "+x", " 11", " 12", " 13",
    ]  # fmt: skip
    assert shown(numbered(30), numbered(30, n2="a", n29="b\nc")) == [
        "@@ -1,5 +1,5 @@",
        " 1", "-2", "+a", " 3", " 4", " 5",
        "@@ -26,5 +26,6 @@",
        " 26", " 27", " 28", "-29", "+b", "+c", " 30",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("was", "new", "lines"),
    [
        ("", "a\n", ["@@ -0,0 +1,1 @@", "+a"]),
        ("a\n", "", ["@@ -1,1 +0,0 @@", "-a"]),
        ("a\n", "a", ["@@ -1,1 +1,1 @@", "-a", "+a", "+↪ (no newline at the end)"]),
        ("a\nb", "c\nb", ["@@ -1,2 +1,2 @@", "-a", "+c", " b", " ↪ (no newline at the end)"]),
        ("a\r\n", "a\n", ["@@ -1,1 +1,1 @@", "-a\\r", "+a"]),
        ("\ufeffa\n", "a\n", ["@@ -1,1 +1,1 @@", "-\\ufeffa", "+a"]),
        ("\x1b(0;x\x07\n", "\u202e\ta\x0c\u2028\n",
         ["@@ -1,1 +1,1 @@", "-\\x1b(0;x\\x07", "+\\u202e\ta\\x0c\\u2028"]),
    ],
)  # fmt: skip
def test_what_is_not_seen_is_written_out(was: str, new: str, lines: list[str]) -> None:
    assert shown(was, new) == lines


def test_what_is_no_text_is_written_out() -> None:
    assert seen(diff_of(PATH, b"\xff\n", b"a\n"))[3:] == ["-\\xff", "+a"]


def test_a_long_line_is_in_pieces() -> None:
    def line(command: str) -> str:
        entry = f'{{"command": "{command}", "args": ["x"]}}'
        return f'1\n{{"history": ["{"x" * 300}"], "mcpServers": {{"a": {entry}}}}}\n'

    assert shown(line("npx"), line("stub")) == [
        "(↪ continues a long line)",
        "@@ -2,1 +2,1 @@",
        ' ↪ x"], "mcpServers": {"a": {',
        '-↪ "command": "npx",',
        '+↪ "command": "stub",',
        ' ↪  "args": ["x"]}}}',
    ]


@pytest.mark.parametrize(
    ("words", "lengths"),
    [(1, [5]), (31, [155]), (32, [155, 5]), (33, [160, 5]), (90, [160, 160, 130])],
)
def test_the_parts_of_a_long_line_are_full(words: int, lengths: list[int]) -> None:
    line = "".join(f'"{n:02}",' for n in range(words))
    lines = shown("1\n2\n", f"1\n{line}\n2\n")
    first, *more = (text[1:] for text in lines if text.startswith("+"))
    parts = [first, *(text.removeprefix("↪ ") for text in more)]
    assert ([len(part) for part in parts], "".join(parts)) == (lengths, line)
    assert ("(↪ continues a long line)" in lines) == (words > 31)


@pytest.mark.parametrize("separator", [", ", ",\n"])
def test_10_mb_are_shown_in_time(separator: str) -> None:
    entries = separator.join(
        f'{{"display": "{n} {"x" * 90}", "pasted": {{}}}}' for n in range(90_000)
    )

    def content(one: str, other: str) -> bytes:
        return f'{{"a": "{one}", "history": [{entries}], "z": "{other}"}}'.encode()

    start = time.process_time()
    diff = diff_of(PATH, content("was", "was"), content("new", "new"))
    assert time.process_time() - start < 30  # 2 s on an idle machine
    text = "\n".join(seen(diff))
    assert len(text) < 10_000
    assert (text.count("was"), text.count("new,")) == (2, 0)


def test_secrets_are_shown_as_something_else() -> None:
    was = '"a": "s3cr3t\\"\\u00e4",\n"b": "s3cr3t"\n"c": 1\n'
    new = '"a": "",\n"b": "s3cr3t"\n"c": 1\n'
    assert shown(was, new, **{'s3cr3t"ä': "<A>", "s3cr3t": "<B>", "": "no"})[1:] == [
        '-"a": "<A>",',
        '+"a": "",',
        ' "b": "<B>"',
        ' "c": 1',
    ]


def test_signs_have_colours() -> None:
    assert diff_of(PATH, b"a\nb\n", b"a\nc\n")[2:] == [
        tty.styled("@@ -1,2 +1,2 @@", "cyan"),
        " a",
        tty.styled("-b", "red"),
        tty.styled("+c", "green"),
    ]


@pytest.mark.parametrize(("typed", "end"), [("y", "is True"), ("n", "is False"), ("", "is False")])
def test_a_person_is_asked(typed: str, end: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ASK], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        while b"Sure? [y/N]: " not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, f"{typed}\n".encode())
        while end.encode() not in seen:
            seen += os.read(ours, 1024)
        assert process.wait(timeout=pace.WAIT_S) == 0
    os.close(ours)


def test_without_a_terminal_there_is_no_question() -> None:
    assert agreed("Sure?", is_agreed=True)
    done = subprocess.run([sys.executable, "-c", ASK], input="y\n", capture_output=True, text=True)
    assert done.returncode == 1
    assert "and there is no terminal; nothing was changed [E-USAGE-NO-TERMINAL]" in done.stderr
    with pytest.raises(UsageError):  # pytest has no terminal
        agreed("Sure?", is_agreed=False)


def test_json_on_one_line_is_in_pieces_on_both_sides() -> None:
    was, new = '{"a":{"command":"stub"},"b":1}', '{"a":{"command":"npx","env":{}},"b":1}'
    assert shown(was, new) == [
        "(↪ continues a long line)",
        "@@ -1,1 +1,1 @@",
        ' {"a":{',
        '-↪ "command":"stub"},',
        '+↪ "command":"npx","env":{}},',
        ' ↪ "b":1}',
        " ↪ (no newline at the end)",
    ]

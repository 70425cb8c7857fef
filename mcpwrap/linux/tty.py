"""Terminal of this process: escaped output of all text, and answers typed by a person.

All text that a command prints for people goes through this module, to a terminal or not (ruff bans
the other ways: pyproject.toml). A line stays one line and has no escape sequence but mcpwrap's
colours, even if an attacker chose the names in it. docs/design/layers.md, Text for a terminal,
lists the output that does not go through this module.
"""

import getpass
import io
import logging
import os
import sys
import termios
import traceback
from collections.abc import Callable, Iterable
from io import FileIO
from types import TracebackType
from typing import Literal, NamedTuple, TextIO

from mcpwrap.core.text.sanitise import visible
from mcpwrap.errors import McpwrapError, UsageError

_TTY = "/dev/tty"
_USUAL_COLUMNS = 80
_MAX_ANSWER_BYTES = 64
_MAX_ANSWERS = 3
_CLEARED = "\r\x1b[K"  # ECMA-48, EL: to the end of the line

# Source: ECMA-48, SGR.
Style = Literal["bold", "red", "green", "yellow", "cyan", "bright_black", "dim"]
# Source: ECMA-48, SGR.
_SGR = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36, "bright_black": 90}


class Styled(NamedTuple):
    """Part of a line, with colours."""

    text: str
    styles: tuple[Style, ...]

    def __str__(self) -> str:
        """Return the text alone: in another text it has no colour."""
        return self.text


Part = str | Styled


def styled(text: str, *styles: Style) -> Styled:
    """Return a part of a line that has these colours on a terminal."""
    return Styled(text, styles)


def harmless(text: str) -> str:
    r"""Return one line without control characters: a newline is shown as `\n`; tabs stay."""
    return visible(text).replace("\n", "\\n")


def say(*parts: Part) -> None:
    """Print one line."""
    _put(sys.stdout, [parts])


def warn(*parts: Part) -> None:
    """Print one line to standard error."""
    _put(sys.stderr, [parts])


def warn_lines(lines: Iterable[Part]) -> None:
    """Print lines to standard error, each of one part."""
    _put(sys.stderr, [(line,) for line in lines])


def say_lines(lines: Iterable[Part]) -> None:
    """Print lines, each of one part. A text is cut into lines before names go into it."""
    _put(sys.stdout, [(line,) for line in lines])


def progress(text: str) -> None:
    """Rewrite the last line of standard error with this text if that is a terminal; "" clears it.

    Other output is printed after it is cleared.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        columns = columns_of(sys.stderr.fileno()) or _USUAL_COLUMNS
        sys.stderr.write(f"{_CLEARED}{harmless(text)[: columns - 1]}")
        sys.stderr.flush()


def fail(error: McpwrapError, program: str = "mcpwrap") -> None:
    """Print an error to standard error: place, problem and fix."""
    first, *more = error.lines()
    _put(sys.stderr, [(f"{program}: {first}",), *((line,) for line in more)])


def drop_output() -> None:
    """Drop the standard output that could not be written.

    Python 3.13 writes it once more at its end, and exits with status 120 if that fails too.
    """
    null_fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_fd, sys.stdout.fileno())
    os.close(null_fd)


def guard() -> None:
    """Escape all other output of this process too: for a `main()`, at its start.

    Tracebacks of bugs, which may contain untrusted names, and log records of libraries are printed
    by this module. A character that the terminal's encoding lacks is written as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _show_bug
    logging.lastResort = _Logged(logging.WARNING)


def show_bug(bug: BaseException) -> None:
    """Print a traceback. Each line is marked: text in a message cannot pass for mcpwrap's own."""
    _put_marked("".join(traceback.format_exception(bug)).rstrip("\n"))


class _Logged(logging.Handler):
    """Handler for log records of libraries; lines are marked, as they may have a traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        _put_marked(self.format(record))


def _show_bug(_: type[BaseException], bug: BaseException, __: TracebackType | None) -> None:
    show_bug(bug)


def _put_marked(text: str) -> None:
    _put(sys.stderr, [(f"| {line}",) for line in text.split("\n")])


def _put(stream: TextIO | None, lines: Iterable[Iterable[Part]]) -> None:
    if stream is None:  # it was closed when Python started
        return
    draw = _drawn if is_coloured(stream) else _plain
    text = "".join(f"{''.join(map(draw, parts))}\n" for parts in lines)
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _plain(part: Part) -> str:
    return harmless(str(part))


def _drawn(part: Part) -> str:
    if isinstance(part, str) or not part.styles:
        return _plain(part)
    return f"\x1b[{';'.join(str(_SGR[style]) for style in part.styles)}m{_plain(part)}\x1b[0m"


def is_coloured(stream: TextIO) -> bool:
    """Return whether text on this stream has colours."""
    return stream.isatty()


def is_interactive() -> bool:
    """Return whether a person at a terminal sees the output and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def has_terminal() -> bool:
    """Return whether a person can be asked at the terminal of this process, by `/dev/tty`."""
    try:
        os.close(os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def columns() -> int | None:
    """Return the width of standard output's terminal; None if it is not a terminal."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_COLUMNS


def columns_of(fd: int) -> int | None:
    """Return the width of the terminal that a descriptor is; None if it is not a terminal."""
    try:
        return os.get_terminal_size(fd).columns or _USUAL_COLUMNS
    except OSError:
        return None


def read_hidden(prompt: str) -> str:
    """Ask for a line that is not shown while it is typed.

    Raises:
        UsageError: the process has no terminal, or the input is not UTF-8.
    """
    try:  # without a terminal getpass would read standard input, and show it
        os.close(os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        raise UsageError(
            "cannot ask for a password: the process has no terminal",
            where=_TTY,
            fix="see `--help` for other ways",
            code="E-USAGE-NO-TERMINAL",
        ) from error
    try:
        return getpass.getpass(harmless(prompt))
    except UnicodeDecodeError as error:
        raise UsageError(
            "the input is not UTF-8",
            where=_TTY,
            fix="use a terminal with UTF-8",
            code="E-USAGE-NOT-UTF8",
        ) from error


def says_yes(text: Callable[[int], str], question: str) -> bool:
    """Show a text, made for so many columns, then ask; return whether the answer is `yes`.

    Input typed before the question is discarded. Another answer than `yes` or `no` repeats the
    question, at most twice. An interrupt or the end of input means no.

    Raises:
        UsageError: the process has no terminal.
    """
    try:
        terminal = FileIO(os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC), "r+")
    except OSError as error:
        raise UsageError(
            "cannot ask for confirmation: the process has no terminal; nothing was changed",
            where=_TTY,
            fix="run the command in a terminal",
            code="E-USAGE-NO-TERMINAL",
        ) from error
    with terminal:
        try:
            columns = os.get_terminal_size(terminal.fileno()).columns or _USUAL_COLUMNS
            _show(terminal, visible(text(columns)))  # its lines are cut and marked already
            return _is_yes(terminal, question)
        except KeyboardInterrupt:
            return False


def _is_yes(terminal: FileIO, question: str) -> bool:
    for _ in range(_MAX_ANSWERS):
        termios.tcflush(terminal.fileno(), termios.TCIFLUSH)
        _show(terminal, harmless(question))
        answer = terminal.readline(_MAX_ANSWER_BYTES)
        is_line = answer.endswith(b"\n")
        if is_line and answer.strip() == b"yes":
            return True
        if not answer or (is_line and answer.strip() == b"no"):
            return False
    return False


def drop_typed_ahead() -> None:
    """Discard what was typed at standard input's terminal before a question."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _show(terminal: FileIO, text: str) -> None:
    left = text.encode()
    while left:
        left = left[terminal.write(left) :]

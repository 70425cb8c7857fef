"""What somebody types at the terminal of this process, whatever its standard input is."""

import getpass
import os
import termios
from collections.abc import Callable
from io import FileIO

from mcpwrap.errors import UsageError

_TTY = "/dev/tty"
_USUAL_COLUMNS = 80
_MAX_ANSWER_BYTES = 64


def read_hidden(prompt: str) -> str:
    """Ask for a line that is not shown while it is typed.

    Raises:
        UsageError: the process has no terminal, or what was typed is no text.
    """
    try:  # without one getpass would read standard input, and show it
        os.close(os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        raise UsageError(
            "there is no terminal to type a password at", where=_TTY, fix="`--help` says how else"
        ) from error
    try:
        return getpass.getpass(prompt)
    except UnicodeDecodeError as error:
        raise UsageError(
            "what was typed is not UTF-8", where=_TTY, fix="use a terminal with UTF-8"
        ) from error


def says_yes(text: Callable[[int], str], question: str) -> bool:
    """Show a text, made for so many columns, then ask; say whether the answer is the word `yes`.

    What was typed before the question is thrown away. An interrupt or the end of input is a no.

    Raises:
        UsageError: the process has no terminal.
    """
    try:
        terminal = FileIO(os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC), "r+")
    except OSError as error:
        raise UsageError(
            "there is no terminal to ask at; nothing was changed",
            where=_TTY,
            fix="type the command where you can read and answer",
        ) from error
    with terminal:
        try:
            columns = os.get_terminal_size(terminal.fileno()).columns or _USUAL_COLUMNS
            _show(terminal, text(columns))
            termios.tcflush(terminal.fileno(), termios.TCIFLUSH)
            _show(terminal, question)
            answer = terminal.readline(_MAX_ANSWER_BYTES)
            return answer.endswith(b"\n") and answer.strip() == b"yes"
        except KeyboardInterrupt:
            return False


def _show(terminal: FileIO, text: str) -> None:
    left = text.encode()
    while left:
        left = left[terminal.write(left) :]

"""What somebody types at the terminal of this process, whatever its standard input is."""

import getpass
import os

from mcpwrap.errors import UsageError

_TTY = "/dev/tty"


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

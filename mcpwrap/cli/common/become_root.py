"""Replacement of this process by root's own program, for commands that change the machine."""

import os
from typing import NoReturn

from mcpwrap.errors import UsageError
from mcpwrap.plan import paths


def expect_root(command: str) -> None:
    """Refuse every caller but root of a command, which is as a person types it.

    Raises:
        UsageError: the caller is not root.
    """
    if os.geteuid() != 0:
        raise UsageError(
            "needs root",
            where=f"mcpwrap {command}",
            fix=f"run `sudo mcpwrap {command}`",
            code="E-USAGE-NEEDS-ROOT",
        )


def become_root_program(verb: str, *arguments: str, command: str = "") -> NoReturn:
    """Replace this process by root's program; it reads root's files and standard input.

    `command` is what a person types, if its words are not those of root's program.

    Raises:
        UsageError: the caller is not root, or only the Python package is installed.
    """
    expect_root(command or verb)
    argv = [paths.ROOT_PROGRAM, verb, *arguments]
    try:
        os.execve(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})
    except FileNotFoundError as error:
        raise _not_installed() from error


def expect_installed() -> None:
    """Refuse to go on where only the Python package of mcpwrap is installed.

    Raises:
        UsageError: root's program does not exist.
    """
    if not os.path.lexists(paths.ROOT_PROGRAM):
        raise _not_installed()


def _not_installed() -> UsageError:
    return UsageError(
        "only the Python package of mcpwrap is installed on this machine",
        where=paths.ROOT_PROGRAM,
        fix="install the .deb, which has the units, the packet rules and root's program",
        code="E-USAGE-NOT-INSTALLED",
    )

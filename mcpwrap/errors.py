"""Errors that an operator can act on, and the exit statuses of `mcpwrap`."""

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

EXIT_OK = 0
EXIT_FAILED = 1  # the command failed; the message states what had changed
EXIT_USAGE = 2  # the command line or the configuration is wrong; nothing was changed
EXIT_UNKNOWN = 3  # `doctor`: no check failed, and at least one could not be made
EXIT_WOULD_CHANGE = 10  # `plan`: `apply` would change something
EXIT_INTERRUPTED = 130  # by Ctrl-C


class McpwrapError(Exception):
    """Failure that the operator can act on. Anything else that escapes is a bug in mcpwrap."""

    exit_code = EXIT_FAILED

    def __init__(
        self, problem: str, *, where: str, fix: str, more: Sequence[str] = (), code: str
    ) -> None:
        """`more` is lines between problem and fix; `code` is the name in mcpwrap-errors(7)."""
        super().__init__(problem)
        self.problem = problem
        self.code = code
        self.where = where
        self.fix = fix
        self.more = tuple(more)

    def lines(self) -> list[str]:
        """Return the lines to print. `linux.tty.fail` escapes newlines in the names in them."""
        return problem_lines(self.where, self.problem, self.fix, self.more, code=self.code)

    @property
    def named_problem(self) -> str:
        """Return the problem with its name, for output that has the place in another field."""
        return _named(self.problem, self.code)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class UsageError(McpwrapError):
    """Command line or configuration that cannot be carried out; nothing was changed."""

    exit_code = EXIT_USAGE


class PartialWriteError(OSError):
    """Replacement of several files of which only some were replaced."""


NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def file_error(error: OSError, state: str = "") -> McpwrapError:
    """Return the error for a file that cannot be read or written.

    `state` says what was changed, and what was not.
    """
    problem = "; ".join(part for part in (error.strerror or str(error), state) if part)
    where = str(error.filename or "mcpwrap")
    if error.errno in NO_ROOM:
        fix = "make room: `df` and `df -i` show where"
        return McpwrapError(problem, where=where, fix=fix, code="E-FILE-NO-ROOM")
    fix = "fix the cause named above, and repeat the command"
    return McpwrapError(problem, where=where, fix=fix, code="E-FILE-ACCESS")


@contextmanager
def nothing_changed() -> Iterator[None]:
    """Replace an OSError of the block, which changes all or nothing, by one that says so.

    Raises:
        McpwrapError: in place of an OSError.
    """
    try:
        yield
    except PartialWriteError as error:
        state = "interrupted here: run the same command again to complete it"
        raise file_error(error, state) from error
    except OSError as error:
        raise file_error(error, "nothing was changed") from error


def problem_lines(
    where: str, problem: str, fix: str, more: Sequence[str] = (), *, code: str
) -> list[str]:
    """Return the lines of an error: place, problem and name, further lines, fix."""
    first = f"{where}: {_named(problem, code)}"
    return [first, *(f"  {line}" for line in more), f"  fix: {fix}"]


_NAMED = re.compile(r"(.+) \[(E-[A-Z]+(?:-[A-Z0-9]+)+)\]", re.DOTALL)


def split_name(reason: str, *, code: str) -> tuple[str, str]:
    """Return the problem and the name of a reason from another process.

    The name is at its end, as in "… [E-OAUTH-DISCOVERY]"; `code` is for a reason without one.
    """
    found = _NAMED.fullmatch(reason)
    return (found[1], found[2]) if found else (reason, code)


def with_name(reason: str, *, code: str) -> str:
    """Return a reason with exactly one name at its end: its own, else `code`."""
    return _named(*split_name(reason, code=code))


def _named(problem: str, code: str) -> str:
    return f"{problem} [{code}]"

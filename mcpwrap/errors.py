"""Errors that an operator can act on, and the exit statuses of `mcpwrap`."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

EXIT_OK = 0
EXIT_FAILED = 1  # the machine did not do what was asked; what had changed is said
EXIT_USAGE = 2  # the command line or the configuration is wrong; nothing was changed
EXIT_UNKNOWN = 3  # `doctor`: nothing it checked failed, and something could not be checked
EXIT_WOULD_CHANGE = 10  # `plan`: `apply` would change something


class McpwrapError(Exception):
    """Failure that the operator can act on. Anything else that escapes is a bug in mcpwrap."""

    exit_code = EXIT_FAILED

    def __init__(
        self, problem: str, *, where: str, fix: str, more: Sequence[str] = (), code: str = ""
    ) -> None:
        """`more` is lines between problem and fix; `code` is the name in mcpwrap-errors(7)."""
        super().__init__(problem)
        self.problem = problem
        self.code = code
        self.where = where
        self.fix = fix
        self.more = tuple(more)

    def lines(self) -> list[str]:
        """Return what is shown: `linux.tty.fail` lets no name in it begin a line of its own."""
        return problem_lines(self.where, self.problem, self.fix, self.more, self.code)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class UsageError(McpwrapError):
    """Command line or configuration that cannot be carried out; nothing was changed."""

    exit_code = EXIT_USAGE


class PartialWriteError(OSError):
    """Replacement of several files of which only some were replaced."""


NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def file_error(error: OSError, state: str = "") -> McpwrapError:
    """Return what the operator is told of a file that cannot be read or written.

    `state` says what was changed, and what was not.
    """
    problem = "; ".join(part for part in (error.strerror or str(error), state) if part)
    fix = "make room: `df` and `df -i` say where" if error.errno in NO_ROOM else "mend that"
    return McpwrapError(problem, where=str(error.filename or "mcpwrap"), fix=fix)


@contextmanager
def nothing_changed() -> Iterator[None]:
    """Have an OSError of the block say that nothing was changed: it changes all or nothing.

    Raises:
        McpwrapError: in place of an OSError.
    """
    try:
        yield
    except PartialWriteError as error:
        raise file_error(error, "broken off here: the same command completes it") from error
    except OSError as error:
        raise file_error(error, "nothing was changed") from error


def problem_lines(
    where: str, problem: str, fix: str, more: Sequence[str] = (), code: str = ""
) -> list[str]:
    """Return the lines of an error: where and what the problem is, its name, what to do."""
    name = f" [{code}]" if code else ""
    return [f"{where}: {problem}{name}", *(f"  {line}" for line in more), f"  fix: {fix}"]

"""RUNS AS ROOT: `mcpwrap apply`. Reads root's files, plans, carries out, exits."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.as_root.carry_out import carry_out
from mcpwrap.errors import EXIT_OK, EXIT_USAGE, McpwrapError
from mcpwrap.linux import this_machine
from mcpwrap.plan import paths
from mcpwrap.plan.diff import Retired
from mcpwrap.plan.steps import Step


def main() -> int:
    """Run `apply [--purge]`. Exit status: as in `mcpwrap.errors`."""
    argv = sys.argv[1:]
    if os.geteuid() != 0 or argv not in (["apply"], ["apply", "--purge"]):
        print("mcpwrap-root: is for `mcpwrap apply`, as root", file=sys.stderr)
        return EXIT_USAGE
    os.umask(0o022)
    os.chdir("/")
    try:
        with only_one():
            _apply(Retired.PURGE if "--purge" in argv else Retired.KEEP)
    except McpwrapError as error:
        print(f"mcpwrap: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_OK


def _apply(retired: Retired) -> None:
    todo = this_machine.steps(retired)
    if not todo:
        print("nothing to do")
        return
    for number, step in enumerate(todo, start=1):
        print(f"{number:3}/{len(todo)}  {step.describe()}", flush=True)
        _do(step, number - 1)
    print("done")


def _do(step: Step, done: int) -> None:
    try:
        carry_out(step)
    except (OSError, McpwrapError) as error:
        fix = error.fix if isinstance(error, McpwrapError) else "mend what it says"
        raise McpwrapError(
            f"{getattr(error, 'problem', error)}\n  {done} steps before it were done and stay done",
            where=step.describe(),
            fix=f"{fix}; then run `mcpwrap apply` again: it goes on from there",
        ) from error


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of `apply` for the time of the block.

    Raises:
        McpwrapError: another `apply` holds it.
    """
    Path(paths.LOCK).parent.mkdir(mode=0o755, exist_ok=True)
    fd = os.open(paths.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise McpwrapError(
                "another `mcpwrap apply` is at work; nothing was changed",
                where=paths.LOCK,
                fix="wait for it; `fuser -v` on that file names it",
            ) from None
        yield
    finally:
        os.close(fd)

"""Path of the mcpwrap that runs now, which `wrap --unprivileged` writes into agents' files."""

import os
import sys
from pathlib import Path

import mcpwrap
from mcpwrap.config.agent_files.run_line import PROGRAM
from mcpwrap.errors import UsageError
from mcpwrap.linux.executables.ownership import Ownership, OwnershipFlaw, ResolvedPath

INSTALLED = "/usr/bin/mcpwrap"
_WHERE = "mcpwrap wrap --unprivileged"
# Programs in these folders are removed when a tool such as uvx or pipx cleans up.
_CACHES = {".cache", "cache"}


def own_path(argv0: str) -> str:
    """Return the absolute path by which this program was started. Links are not followed."""
    return os.path.normpath(Path.cwd() / argv0)


def own_code(argv0: str) -> tuple[str, ...]:
    """Return the paths of this program's code, without links too.

    They are the program, its package, its interpreter with the standard library, and its virtual
    environment. A server that could write there would not stay confined.
    """
    libraries = [str(Path(path).parent) for path in (mcpwrap.__file__, os.__file__)]
    found = [own_path(argv0), *libraries, sys.executable]
    if sys.prefix != sys.base_prefix:
        found.append(sys.prefix)
    return tuple(dict.fromkeys([*found, *map(os.path.realpath, found)]))


def expect_lasting(argv0: str, uid: int) -> str:
    """Return that path if an agent can use it from now on.

    Raises:
        UsageError: it is not an installed program, or another account can change a path of
            `own_code`. What is in the folders is not examined.
    """
    path, ownership = own_path(argv0), Ownership(own_uid=uid)
    for one in own_code(argv0):
        if isinstance(flaw := ownership.walk(one), OwnershipFlaw):
            raise _refusal(
                f"{flaw.path} {flaw.problem}, so another account could change what your agents"
                " start; nothing was changed",
                "install mcpwrap, and the Python that runs it, in folders that only you or root"
                " can write to",
                "E-WRAP-OWN-PROGRAM-WRITABLE",
            )
    found = ownership.walk(path)
    is_program = isinstance(found, ResolvedPath) and found.is_file and os.access(path, os.X_OK)
    if not is_program or Path(path).name != PROGRAM or _CACHES & set(path.split("/")):
        raise _refusal(
            f"agents could not start it as {path!a} from now on; nothing was changed",
            "install it (`python3 -m venv`, `pipx install` or `uv tool install`), and run the"
            f" installed `{PROGRAM}`",
            "E-WRAP-OWN-PROGRAM",
        )
    return path


def _refusal(problem: str, fix: str, code: str) -> UsageError:
    return UsageError(problem, where=_WHERE, fix=fix, code=code)

"""SELinux types of servers' programs: one that the policy does not have for programs is refused.

Such a file was copied or moved by hand. A confined domain may not execute it, and some of these
types are for files that other domains than root's may write to. Fedora's targeted policy starts
wrappers in a domain that may execute it nevertheless; PID 1 itself ends with 203/EXEC.
"""

import os
import re
import shlex
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from mcpwrap.config.model import Config, Local, Python
from mcpwrap.errors import UsageError
from mcpwrap.linux import shebang

_ENFORCE = Path("/sys/fs/selinux/enforce")  # selinux(8): 1 is enforcing; without SELinux no file
_ATTRIBUTE = "security.selinux"
# Of homes, temporary files, libraries, data, and files without a label. Source: file_contexts of
# Debian's policy, and of Fedora's.
_NOT_OF_PROGRAMS = frozenset(
    {
        "user_home_t", "user_home_dir_t", "home_root_t", "home_bin_t", "admin_home_t",
        "user_tmp_t", "tmp_t", "tmpfs_t", "lib_t", "usr_t", "src_t", "var_t", "var_lib_t",
        "var_log_t", "var_spool_t", "mnt_t", "root_t", "default_t", "file_t", "unlabeled_t",
        "nfs_t", "cifs_t",
    }
)  # fmt: skip


class Enforcement(Enum):
    """State of SELinux on this machine."""

    ABSENT = auto()
    PERMISSIVE = auto()
    ENFORCING = auto()


def enforcement() -> Enforcement:
    """Return the state of SELinux."""
    try:
        text = _ENFORCE.read_text(encoding="ascii")
    except OSError:
        return Enforcement.ABSENT
    return Enforcement.ENFORCING if text.strip() == "1" else Enforcement.PERMISSIVE


def refused_type(context: str) -> str:
    """Return the type in a security context, if it is not one of programs; else ""."""
    parts = context.split(":")
    type_ = parts[2] if len(parts) > 2 else ""
    return type_ if type_ in _NOT_OF_PROGRAMS else ""


def fix_of(path: str) -> str:
    """Return the commands that give a file the type of a program."""
    # A regular expression, in which semanage(8) allows no space.
    pattern = shlex.quote(re.sub(r"([^\w\s/-])", r"\\\1", path).replace(" ", r"\s"))
    again = f"`sudo restorecon -v {shlex.quote(path)}`"
    return f"{again}; if that changes nothing, `sudo semanage fcontext -a -t bin_t {pattern}` first"


def expect_programs(config: Config) -> None:
    """Refuse a program by its type, where SELinux enforces.

    Raises:
        UsageError: with the commands that give it the type of a program.
    """
    if enforcement() is not Enforcement.ENFORCING:
        return
    for where, path, type_ in _found(config):
        raise UsageError(
            f"{path} has the SELinux type {type_}, which is not one of programs, such as bin_t; "
            "nothing was changed",
            where=where,
            fix=fix_of(path),
            code="E-PROGRAM-LABEL",
        )


def notes(config: Config) -> list[str]:
    """Return a line for each program that would be refused if SELinux enforced."""
    if enforcement() is not Enforcement.PERMISSIVE:
        return []
    return [
        f"{where}: {path} has the SELinux type {type_}, and is refused once SELinux enforces: "
        f"{fix_of(path)}"
        for where, path, type_ in _found(config)
    ]


def _found(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the place in the configuration, the file, and the type, of each program with one."""
    for where, command in _commands(config):
        name = shebang.interpreter(Path(command))
        for path in (command, *([name] if "/" in name else [])):
            if type_ := refused_type(_context(os.path.realpath(path))):
                yield where, os.path.realpath(path), type_


def _commands(config: Config) -> Iterator[tuple[str, str]]:
    for server in config.servers.values():
        match server.runs:
            case Local(command=command):
                yield f"[mcp_servers.{server.name}], command", command
            case Python(worker=None, interpreter=interpreter):
                yield f"[mcp_servers.{server.name}]", interpreter
            case _:
                pass
    if config.worker:
        yield "[worker], python", config.worker.interpreter


def _context(path: str) -> str:
    """Return the security context of a file; "" if it has none, or does not exist."""
    try:
        return os.getxattr(path, _ATTRIBUTE).decode(errors="replace").rstrip("\0")
    except OSError:
        return ""

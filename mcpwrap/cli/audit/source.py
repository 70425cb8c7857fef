"""Audit folder that a command reads: the system's, or the caller's own of `mcpwrap run`."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click

from mcpwrap.core.audit.records import Keys
from mcpwrap.linux import accounts
from mcpwrap.machine.logs import audit_keys
from mcpwrap.plan import paths

SYSTEM = Path(paths.AUDIT)
_MAX_UID = 2**32 - 2  # larger values are not UIDs: chown(2)


def _folder(context: click.Context, _: click.Parameter, is_users: bool) -> Path:  # noqa: FBT001 - click's
    if not is_users:
        return SYSTEM
    # The environment, from main(). XDG Base Directory Specification: a relative path is ignored.
    state = Path((context.obj or {}).get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local/state") / "mcpwrap/audit"


option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--user",
    "folder",
    is_flag=True,
    callback=_folder,
    help="Read your own audit, of `mcpwrap run`, not the system's.",
)


def is_readable_as_root(folder: Path) -> bool:
    """Return whether this is the system's folder, and the caller is root."""
    return folder == SYSTEM and os.geteuid() == 0


def keys_of(folder: Path) -> Keys:
    """Return the keys of an audit folder. Needs root for the system's."""
    return audit_keys.of_system() if folder == SYSTEM else audit_keys.of_user(folder)


@cache
def agent(uid: int) -> str:
    """Return the name of an account, or its UID if it has none."""
    name = accounts.name_of(uid) if 0 <= uid <= _MAX_UID else None
    return name or str(uid)

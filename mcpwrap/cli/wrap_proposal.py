"""Handing new servers over to root: a file that its hash names, and secrets by standard input."""

import hashlib
import shlex
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.approvals_text import one_line
from mcpwrap.cli.clients_found import Asker
from mcpwrap.cli.wrap_decided import Look
from mcpwrap.config.proposal import MAX_SHOWN_CHARS
from mcpwrap.config.write import toml_of
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import files, wrap_records

_SUDO = "/usr/bin/sudo"
_MCPWRAP = "/usr/bin/mcpwrap"


def hand_over(who: Asker, look: Look) -> bool:
    """Propose the new servers, and say whether root has taken them."""
    content = "\n".join(toml_of(draft.server) for draft in look.drafts).encode()
    if len(content) > MAX_SHOWN_CHARS:
        raise UsageError(
            f"{len(look.drafts)} new servers are more than a person reads at once; "
            "nothing was changed",
            where="mcpwrap wrap",
            fix="name one agent or one `--file` at a time",
        )
    digest = hashlib.sha256(content).hexdigest()
    path = _written(wrap_records.folder({**who.environ, **who.variables}), digest, content)
    command = [_SUDO, _MCPWRAP, "accept", digest, str(path)]
    if not Path(_SUDO).exists():
        click.echo("no `sudo` here. Root has to type this, then run the same again:", err=True)
        click.echo(one_line(f"mcpwrap {shlex.join(command[2:])}"), err=True)
        return False
    click.secho(one_line(f"sudo mcpwrap {shlex.join(command[2:])}"), bold=True)
    with _left_to_it():
        status = subprocess.run(command, input=_secrets(look), check=False).returncode
    if status != 0:
        click.echo("root has not taken them; no agent's file was changed", err=True)
        return False
    path.unlink(missing_ok=True)
    return True


@contextmanager
def _left_to_it() -> Iterator[None]:
    """Let an interrupt be the affair of the program that asks: it is of the same terminal.

    A handler and not SIG_IGN, which that program would inherit. Source: system(3), execve(2).
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _secrets(look: Look) -> bytes:
    by_server: dict[str, dict[str, str]] = defaultdict(dict)
    for draft in look.drafts:
        by_server[draft.server.name] |= draft.value_by_key
    return msgspec.json.encode({name: found for name, found in by_server.items() if found})


def _written(folder: Path, digest: str, content: bytes) -> Path:
    """Write a proposal where its owner alone reads it; the same one is the same file.

    Raises:
        McpwrapError: that is not possible.
    """
    path = folder / f"proposal-{digest[:12]}.toml"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.replace(str(path), content.decode(), mode=0o600)  # what was there is written to never
    except OSError as error:
        raise McpwrapError(
            f"the proposal cannot be written: {error.strerror}; nothing was changed",
            where=str(path),
            fix="make room there, and let this account write to it",
        ) from error
    return path

"""Proposal of new servers to root: a file named by its hash, and secrets on standard input."""

import hashlib
import shlex
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.cli.agents.discovery import FileOwner
from mcpwrap.cli.agents.wrap.decision import WrapDecisions
from mcpwrap.config.proposal import MAX_SHOWN_CHARS
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files
from mcpwrap.machine.agent_files import wrap_records

_SUDO = "/usr/bin/sudo"
_MCPWRAP = "/usr/bin/mcpwrap"


@dataclass(frozen=True, slots=True)
class Proposal:
    """New servers, in a file."""

    content: bytes
    path: Path
    count: int  # of servers

    @property
    def sha256(self) -> str:
        """Return its hash, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def command(self) -> str:
        """Return what root types."""
        return shlex.join(["mcpwrap", "accept", self.sha256, str(self.path)])


def proposal_of(who: FileOwner, look: WrapDecisions) -> Proposal:
    """Return what is proposed to root, which is not written yet."""
    content = "\n".join(toml_of(draft.server) for draft in look.drafts).encode()
    folder = wrap_records.folder({**who.environ, **who.variables})
    digest = hashlib.sha256(content).hexdigest()
    return Proposal(content, folder / f"proposal-{digest[:12]}.toml", len(look.drafts))


def has_sudo() -> bool:
    """Say whether root can be asked from here."""
    return Path(_SUDO).exists()


def ask_root(proposal: Proposal, look: WrapDecisions, output: int | None) -> bool:
    """Hand a proposal and the secrets over, and say whether root has taken them.

    Root's part prints to the descriptor `output`, or to that of this program.
    """
    command = [_SUDO, _MCPWRAP, "accept", proposal.sha256, str(proposal.path)]
    with _left_to_it():
        done = subprocess.run(command, input=_secrets(look), stdout=output, check=False)
    if done.returncode != 0:
        return False
    proposal.path.unlink(missing_ok=True)
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


def _secrets(look: WrapDecisions) -> bytes:
    by_server: dict[str, dict[str, str]] = defaultdict(dict)
    for draft in look.drafts:
        by_server[draft.server.name] |= draft.value_by_key
    return msgspec.json.encode({name: found for name, found in by_server.items() if found})


def write(proposal: Proposal) -> None:
    """Write a proposal where its owner alone reads it; the same one is the same file.

    Raises:
        UsageError: nobody would read all of it.
        McpwrapError: it cannot be written.
    """
    if len(proposal.content) > MAX_SHOWN_CHARS:
        raise UsageError(
            f"{proposal.count} new servers are more than a person reads at once; "
            "nothing was changed",
            where="mcpwrap wrap",
            fix="name one agent or one `--file` at a time",
        )
    path = proposal.path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = proposal.content.decode()
        root_files.replace(str(path), text, mode=0o600)  # what was there is written to never
    except OSError as error:
        raise McpwrapError(
            f"the proposal cannot be written: {error.strerror}; nothing was changed",
            where=str(path),
            fix="make room there, and let this account write to it",
        ) from error

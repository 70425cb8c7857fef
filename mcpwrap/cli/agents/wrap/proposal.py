"""Proposal of new servers to root: a file named by its hash, and secrets on standard input."""

import hashlib
import shlex
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.cli.agents.discovery import FileOwner
from mcpwrap.cli.agents.wrap.decision import WrapDecisions
from mcpwrap.cli.common.child_process import interrupts_left_to_child
from mcpwrap.cli.common.root_handoff import handoff_of
from mcpwrap.config.proposal import MAX_SHOWN_CHARS
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files
from mcpwrap.machine.agent_files import wrap_records

_SUDO = "/usr/bin/sudo"
_MCPWRAP = "/usr/bin/mcpwrap"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Definitions of new servers, and the file for them."""

    content: bytes
    path: Path
    count: int  # of servers

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def command(self) -> str:
        """Return the command for root."""
        return shlex.join(["mcpwrap", "accept", self.sha256, str(self.path)])


def proposal_of(who: FileOwner, look: WrapDecisions) -> Proposal:
    """Return the proposal to root, which is not written yet."""
    content = "\n".join(toml_of(draft.server) for draft in look.drafts).encode()
    folder = wrap_records.folder({**who.environ, **who.variables})
    digest = hashlib.sha256(content).hexdigest()
    return Proposal(content, folder / f"proposal-{digest[:12]}.toml", len(look.drafts))


def can_ask(who: FileOwner) -> bool:
    """Return whether root can be asked: by `mcpwrap init`, which started this, or by sudo."""
    return handoff_of(who.environ) is not None or Path(_SUDO).exists()


def ask_root(who: FileOwner, proposal: Proposal, look: WrapDecisions, output: int | None) -> bool:
    """Run `mcpwrap accept` as root with the secrets, and return whether root has accepted.

    Root's program prints to the descriptor `output`; None is this program's standard output.
    """
    if handoff := handoff_of(who.environ):
        is_yes = handoff.is_accepted(proposal.sha256, str(proposal.path), _secrets(look))
    else:
        command = [_SUDO, _MCPWRAP, "accept", proposal.sha256, str(proposal.path)]
        with interrupts_left_to_child():
            done = subprocess.run(command, input=_secrets(look), stdout=output, check=False)
        is_yes = done.returncode == 0
    if is_yes:
        proposal.path.unlink(missing_ok=True)
    return is_yes


def _secrets(look: WrapDecisions) -> bytes:
    by_server: dict[str, dict[str, str]] = defaultdict(dict)
    for draft in look.drafts:
        by_server[draft.server.name] |= draft.value_by_key
    return msgspec.json.encode({name: found for name, found in by_server.items() if found})


def write(proposal: Proposal) -> None:
    """Write a proposal, readable by its owner alone. Equal proposals have the same file name.

    Raises:
        UsageError: it is too long for a person to read.
        McpwrapError: it cannot be written.
    """
    if len(proposal.content) > MAX_SHOWN_CHARS:
        raise UsageError(
            f"{proposal.count} new servers are more than a person reads at once; "
            "nothing was changed",
            where="mcpwrap wrap",
            fix="name one agent or one `--file` at a time",
            code="E-WRAP-TOO-MANY",
        )
    path = proposal.path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = proposal.content.decode()
        root_files.replace(str(path), text, mode=0o600)  # never writes into an existing file
    except OSError as error:
        raise McpwrapError(
            f"the proposal cannot be written: {error.strerror}; nothing was changed",
            where=str(path),
            fix="let this account write to the folder, and make room on its file system",
            code="E-WRAP-PROPOSAL-FILE",
        ) from error

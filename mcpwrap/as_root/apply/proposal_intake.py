"""Proposal and its secrets, handed over untrusted; `mcpwrap-proposal` parses it as nobody."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mcpwrap.as_root.secrets import command
from mcpwrap.config.model import Server
from mcpwrap.config.parse import MAX_FILE_BYTES
from mcpwrap.config.proposal import expect_declared, servers_of
from mcpwrap.core.wire import proposal_answer
from mcpwrap.core.wire.proposal_answer import MAX_ANSWER_BYTES, TIMEOUT_S, ProposalAnswer
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files, run_as_nobody
from mcpwrap.plan import paths

Secrets = Mapping[str, Mapping[str, str]]  # values, by server and key

_DIGEST = re.compile(r"[0-9a-f]{64}")
_AGAIN = "propose it again, and look at what is in it: `mcpwrap wrap`"


@dataclass(frozen=True, slots=True)
class ReviewedProposal:
    """Parsed proposal: the texts that are shown are those that go into the configuration."""

    text_by_name: Mapping[str, str]
    servers: Mapping[str, Server]


def read(path: str, digest: str) -> ReviewedProposal:
    """Return what is proposed in a file, if it is the file with this SHA-256.

    It is read once. Of its bytes root looks at none: a program without any rights does.

    Raises:
        UsageError: it is another, or none; or it is no proposal.
    """
    raw = _the_one(path, digest)
    reading = _understood(
        run_as_nobody.answer_to(
            raw, [paths.PROPOSAL_PROGRAM], max_bytes=MAX_ANSWER_BYTES, timeout_s=TIMEOUT_S
        )
    )
    if reading.wrong:
        raise UsageError(
            "cannot be proposed, and nothing was changed:",
            where=ascii(path),
            fix=_AGAIN,
            more=[f"| {line}" for line in reading.wrong.split("\n")],  # so none passes for ours
        )
    return ReviewedProposal(reading.text_by_name, servers_of(reading.text_by_name))


def secrets_for(servers: Mapping[str, Server]) -> Secrets:
    """Return the secrets on standard input, if that is no terminal and not empty.

    Raises:
        UsageError: they are not in the form, or of nothing that is proposed.
    """
    raw = b"" if os.isatty(0) else command.read_all()
    if not raw.strip():
        return {}
    try:
        found = msgspec.json.decode(raw, type=dict[str, dict[str, str]])
    except ValueError:  # whose text is left out: it could have some of a secret in it
        raise UsageError(
            'no secrets in the form {"server": {"KEY": "value"}}; nothing was changed',
            where="standard input",
            fix="`mcpwrap wrap` writes it; without secrets leave it empty: `< /dev/null`",
        ) from None
    expect_declared(servers, found)
    for by_key in found.values():
        for key, value in by_key.items():
            command.expect_usable(key, value)
    return found


def _the_one(path: str, digest: str) -> bytes:
    if not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{digest!a:.80} is no SHA-256; nothing was changed",
            where="mcpwrap accept",
            fix="give its 64 digits, 0-9 and a-f: `mcpwrap wrap` says the whole command",
        )
    raw = root_files.read_anybodys(path, max_bytes=MAX_FILE_BYTES)
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            "is over 1 MiB; nothing was changed",
            where=ascii(path),
            fix="propose fewer servers at a time",
        )
    if hashlib.sha256(raw).hexdigest() != digest:
        raise UsageError(
            "is not the proposal that this command was made for: it has another SHA-256; "
            "nothing was changed",
            where=ascii(path),
            fix=f"find out who changed it; then {_AGAIN}",
        )
    return raw


def _understood(untrusted: bytes) -> ProposalAnswer:
    try:
        return proposal_answer.decode(untrusted)
    except ValueError:
        raise McpwrapError(
            "answered what it never does; nothing was changed",
            where=paths.PROPOSAL_PROGRAM,
            fix="find out what is in the file, and who wrote it: it may be an attack",
        ) from None

"""Untrusted proposal and its secrets; `mcpwrap-proposal` parses it, as account `nobody`."""

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
_AGAIN = "propose it again with `mcpwrap wrap`, and read what is in it"


@dataclass(frozen=True, slots=True)
class ReviewedProposal:
    """Parsed proposal. The texts that a person is shown are those that are written."""

    text_by_name: Mapping[str, str]
    servers: Mapping[str, Server]


def read(path: str, digest: str) -> ReviewedProposal:
    """Return the parsed proposal of a file, if the file has this SHA-256.

    The file is read once. Root does not parse its bytes: a program without any rights does.

    Raises:
        UsageError: the file has another SHA-256, cannot be read, or is not a proposal.
    """
    raw = _expected_file(path, digest)
    reading = _decoded(
        run_as_nobody.answer_to(
            raw, [paths.PROPOSAL_PROGRAM], max_bytes=MAX_ANSWER_BYTES, timeout_s=TIMEOUT_S
        )
    )
    if reading.wrong:
        raise UsageError(
            "is not a valid proposal; nothing was changed:",
            where=ascii(path),
            fix=_AGAIN,
            # Marked, so that no line of the reader passes for one of root's.
            more=[f"| {line}" for line in reading.wrong.split("\n")],
            code="E-PROPOSAL-INVALID",
        )
    return ReviewedProposal(reading.text_by_name, servers_of(reading.text_by_name))


def secrets_for(servers: Mapping[str, Server]) -> Secrets:
    """Return the secrets on standard input, if that is not a terminal and not empty.

    Raises:
        UsageError: they are malformed, unusable, or not declared by a proposed server.
    """
    raw = b"" if os.isatty(0) else command.read_all()
    if not raw.strip():
        return {}
    try:
        found = msgspec.json.decode(raw, type=dict[str, dict[str, str]])
    except ValueError:  # its text is left out: it could contain part of a secret
        raise UsageError(
            'is not of the form {"server": {"KEY": "value"}}; nothing was changed',
            where="standard input",
            fix="send what `mcpwrap wrap` writes; without secrets send nothing: `< /dev/null`",
            code="E-PROPOSAL-SECRETS-FORM",
        ) from None
    expect_declared(servers, found)
    for by_key in found.values():
        for key, value in by_key.items():
            command.expect_usable(key, value)
    return found


def _expected_file(path: str, digest: str) -> bytes:
    if not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{digest!a:.80} is not a SHA-256; nothing was changed",
            where="mcpwrap accept",
            fix="give its 64 digits, 0-9 and a-f: `mcpwrap wrap` prints the whole command",
            code="E-PROPOSAL-DIGEST",
        )
    raw = root_files.read_anybodys(path, max_bytes=MAX_FILE_BYTES)
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            "is over 1 MiB; nothing was changed",
            where=ascii(path),
            fix="propose fewer servers at a time",
            code="E-PROPOSAL-TOO-LARGE",
        )
    if hashlib.sha256(raw).hexdigest() != digest:
        raise UsageError(
            "is not the proposal that this command was printed for: it has another SHA-256; "
            "nothing was changed",
            where=ascii(path),
            fix=f"find out which account changed it; then {_AGAIN}",
            code="E-PROPOSAL-CHANGED",
        )
    return raw


def _decoded(untrusted: bytes) -> ProposalAnswer:
    try:
        return proposal_answer.decode(untrusted)
    except ValueError:
        raise McpwrapError(
            "returned malformed output; nothing was changed",
            where=paths.PROPOSAL_PROGRAM,
            fix="read the file, and find out which account wrote it: it may be an attack",
            code="E-PROPOSAL-READER",
        ) from None

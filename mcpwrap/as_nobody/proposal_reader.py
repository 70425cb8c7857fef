"""Program `mcpwrap-proposal`, which `mcpwrap accept` starts: parses a proposal in a sandbox."""

import os
import resource

from mcpwrap.config.proposal import texts_of
from mcpwrap.core.wire import proposal_answer
from mcpwrap.core.wire.proposal_answer import MAX_ANSWER_BYTES, ProposalAnswer
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.isolation import landlock, prctl
from mcpwrap.linux.isolation.landlock import Tcp
from mcpwrap.linux.seccomp.gate_session import Filter
from mcpwrap.linux.unix_socket import memfd

_MAX_WRONG_CHARS = 16 * 1024
_MEMORY_BYTES = 1024**3  # twice the maximum for a file of 1 MiB
_LIMITS = (
    (resource.RLIMIT_AS, _MEMORY_BYTES),
    (resource.RLIMIT_CPU, int(proposal_answer.TIMEOUT_S)),
    (resource.RLIMIT_FSIZE, MAX_ANSWER_BYTES),
    (resource.RLIMIT_NOFILE, 0),  # no new ones
    (resource.RLIMIT_NPROC, 0),
    (resource.RLIMIT_CORE, 0),
)


def main() -> int:
    """Read the proposal from descriptor 0, write a `core/wire/proposal_answer` to 1."""
    prctl.forbid_dumps()
    close_behind()
    answer = proposal_answer.encode(reading(memfd.read_all(0)))
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


def close_behind() -> None:
    """Enter the sandbox: no files and few system calls, for good. Nothing has been read yet.

    Raises:
        OSError: the kernel refused a part of it.
    """
    seccomp_filter = Filter()
    prctl.gain_nothing()
    landlock.leave((), (), Tcp.REFUSED)
    for limit, value in _LIMITS:
        resource.setrlimit(limit, (value, value))
    seccomp_filter.enter()


def reading(untrusted: bytes) -> ProposalAnswer:
    """Return the servers of a proposal, or its problems."""
    try:
        return ProposalAnswer(text_by_name=texts_of(untrusted))
    except McpwrapError as error:
        return ProposalAnswer(wrong=_shortened(str(error)))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_WRONG_CHARS else f"{text[:_MAX_WRONG_CHARS]} … and more"

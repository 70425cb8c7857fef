"""Runner of a program on untrusted input, under the account `nobody` if the caller is root.

Source: the last third of the manual of `subprocess`; memfd_create(2).
"""

import os
import pwd
import subprocess
from collections.abc import Sequence

from mcpwrap.core.text.sanitise import visible
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.isolation.privileges import NOBODY
from mcpwrap.linux.unix_socket import memfd

_MAX_LINE_CHARS = 200


def answer_to(question: bytes, argv: Sequence[str], *, max_bytes: int, timeout_s: float) -> bytes:
    """Return the program's output for an input, which the program can read more than once.

    It has no terminal, no environment, and no file but these two. If the caller is not root, the
    program runs under the caller's account.

    Raises:
        McpwrapError: it failed, took too long, or wrote over `max_bytes`.
    """
    question_fd, answer_fd = memfd.sealed("question", question), memfd.unsealed("answer")
    try:
        failure = _failure(argv, question_fd, answer_fd, timeout_s)
        answer = os.pread(answer_fd, max_bytes + 1, 0)
    finally:
        os.close(question_fd)
        os.close(answer_fd)
    if failure or len(answer) > max_bytes:
        raise McpwrapError(
            f"{failure or 'wrote too much'}{_last_line(answer)}; nothing was changed",
            where=argv[0],
            fix="examine the input of the program: it may be an attack",
            code="E-TOOL-UNTRUSTED-INPUT",
        )
    return answer


def _failure(argv: Sequence[str], question_fd: int, answer_fd: int, timeout_s: float) -> str:
    """Run the program; return why it failed, or ""."""
    nobody = pwd.getpwnam(NOBODY) if os.geteuid() == 0 else None
    try:
        done = subprocess.run(
            argv,
            stdin=question_fd,
            stdout=answer_fd,
            stderr=answer_fd,
            cwd="/",
            env={"LANG": "C.UTF-8"},
            start_new_session=True,  # a terminal could be typed into, and sends signals
            timeout=timeout_s,
            check=False,
            user=nobody and nobody.pw_uid,
            group=nobody and nobody.pw_gid,
            extra_groups=[] if nobody else None,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {timeout_s:g} s"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    return f"ended with status {done.returncode}" if done.returncode else ""


def _last_line(untrusted: bytes) -> str:
    """Return the last line of the output; in a traceback it is the most informative one."""
    lines = untrusted.decode(errors="replace").strip().splitlines()
    return f" ({visible(lines[-1])[:_MAX_LINE_CHARS]})" if lines else ""

"""Proposal reader: its output, and its sandbox while it reads."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from mcpwrap.as_nobody.proposal_reader import reading
from mcpwrap.config.proposal import texts_of
from mcpwrap.core.wire.proposal_answer import MAX_ANSWER_BYTES, ProposalAnswer, decode
from mcpwrap.linux.unix_socket import memfd
from tests.shared import pace

ONE = b"[mcp_servers.a]\ncommand = '/x'\n"
RUN = "import sys; from mcpwrap.as_nobody import proposal_reader as p; sys.exit(p.main())"


def test_it_returns_the_servers_or_the_problems() -> None:
    assert reading(ONE) == ProposalAnswer(text_by_name=texts_of(ONE))
    found = reading(b"[mcp_servers.a]\n")
    assert not found.text_by_name
    assert "[mcp_servers.a]: needs exactly one of `command`, `url`" in found.wrong


def test_many_problems_are_cut_off() -> None:
    wrong = reading(b"".join(b"[mcp_servers.A%d]\n" % n for n in range(9000))).wrong
    assert "A0" in wrong
    assert wrong.endswith(" … and more")
    assert len(wrong) < 17_000


def run(question: bytes, script: str = RUN) -> tuple[int, bytes, str]:
    """Run it as root does, but under this account; return status, output and stderr."""
    question_fd = memfd.sealed("question", question)
    with os.fdopen(question_fd, "rb") as given, tempfile.TemporaryFile() as answer:
        done = subprocess.run(
            [sys.executable, "-c", script], stdin=given, stdout=answer, stderr=subprocess.PIPE,
            timeout=pace.WAIT_S,
        )  # fmt: skip
        answer.seek(0)
        return done.returncode, answer.read(), done.stderr.decode()


@pytest.mark.parametrize(
    "question",
    [ONE, b"", b"\xff", b"a = " + b"[" * 500_000, b"x = 1979-05-27T07:32:00Z", ONE + b"#" * 10**6,
     "[mcp_servers.a]\ncommand = '/\u202e\U0001f600'\nargs = ['\u0430']\n".encode()],
    ids=["one", "empty", "not UTF-8", "deep", "a date", "long", "other characters"],
)  # fmt: skip
def test_the_sandbox_has_all_that_it_needs(question: bytes) -> None:
    """Python imports nothing and opens nothing more, for any input."""
    status, answer, err = run(question)
    assert (status, err) == (0, "")
    assert decode(answer) == reading(question)


# Each is tried before the sandbox, where it works, and in it, where it must not.
ATTACKS = {
    "read": "os.close(os.open('/etc/hostname', os.O_RDONLY))",
    "write": "os.close(os.open('/tmp', os.O_TMPFILE | os.O_RDWR))",
    "list": "os.listdir('/')",
    "socket": "socket.socket(socket.AF_UNIX).close()",
    "fork": "os.fork() or os._exit(0)",
    "run": "os.fork() or os.execv('/bin/true', ['true'])",
    "kill": "os.kill(os.getppid(), 0)",
    "duplicate": "os.close(os.dup(1))",
    "much memory": "len(bytearray(1 << 31))",
}
PROBE = """
import json, os, resource, socket
from mcpwrap.as_nobody import proposal_reader
from mcpwrap.core.wire.proposal_answer import MAX_ANSWER_BYTES
def tried(attack):
    try: exec(attack)
    except (OSError, MemoryError) as error: return type(error).__name__
    return "works"
attacks, told = {attacks!r}, []
told += [tried(attack) for attack in attacks]
proposal_reader.close_behind()
told += [tried(attack) for attack in attacks]
os.write(1, json.dumps(told).encode())
{more}
"""


def test_the_sandbox_is_closed_before_it_reads() -> None:
    status, answer, err = run(b"", PROBE.format(attacks=list(ATTACKS.values()), more=""))
    assert (status, err) == (0, "")
    told = json.loads(answer)
    before, after = told[: len(ATTACKS)], told[len(ATTACKS) :]
    assert before == ["works"] * len(ATTACKS)
    assert set(after[:-1]) == {"PermissionError"}
    assert after[-1] == "MemoryError"


def test_it_cannot_write_more_than_root_reads() -> None:
    much = f"os.write(1, bytes({MAX_ANSWER_BYTES})); os.write(1, b'x')"
    status, answer, err = run(b"", PROBE.format(attacks=[], more=much))
    assert (status, len(answer)) == (1, MAX_ANSWER_BYTES)
    assert "File too large" in err

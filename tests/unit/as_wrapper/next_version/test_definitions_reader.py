"""Exchange with a next version: real programs, on pipes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mcpwrap.as_wrapper.next_version.definitions_reader import DefinitionsReader, ServerPipes
from mcpwrap.core.wire.next_version_pipe import NextVersionAnswer
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace

LISTS = """
import json, sys
results = {"initialize": {"capabilities": {"tools": {}}}, "tools/list": {"tools": [1]}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print("a line of a log")
        print(json.dumps({"id": asked["id"], "result": results[asked["method"]]}), flush=True)
"""


NO_MESSAGES = "it wrote over 10000 lines that are not messages"
TOO_MUCH = "it wrote over 17825792 bytes"


@pytest.fixture
def requester() -> Iterator[list[int]]:
    """Hold the two ends of a request's pipe, of which a test may close the second."""
    ends = list(os.pipe())
    yield ends
    fd_passing.close_all(ends)


def answer_of(code: str, requester_fd: int, timeout_s: float = pace.WAIT_S) -> NextVersionAnswer:
    pipes = ServerPipes.new()
    argv = [sys.executable, "-Ic", code]
    stdin, stdout, stderr = pipes.theirs
    with subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr) as program:
        fd_passing.close_all(pipes.theirs)
        reader = DefinitionsReader(pipes, requester_fd)
        try:
            reader.read(timeout_s)
        finally:
            program.kill()
        reader.read_last_output()
    fd_passing.close_all([pipes.from_server, pipes.stderr])
    return reader.answer()


def test_definitions_are_read_between_lines_of_a_log(requester: list[int]) -> None:
    answer = answer_of(LISTS, requester[0])
    assert (answer.problem, answer.stderr) == ("", "")
    assert [(page.method, bytes(page.result)) for page in answer.pages] == [
        ("initialize", b'{"capabilities": {"tools": {}}}'),
        ("tools/list", b'{"tools": [1]}'),
    ]


@pytest.mark.parametrize(
    ("code", "problem", "stderr"),
    [
        ("raise SystemExit('no TOKEN')", "it has ended before it answered initialize", "no TOKEN"),
        ("import os; os.close(0); input()", "it has ended before it answered initialize", None),
        ("import os\nwhile True: os.write(1, bytes(65536))", TOO_MUCH, ""),
        ("import os\nwhile True: os.write(1, b'y\\n' * 30000)", NO_MESSAGES, ""),
    ],
)
def test_a_program_that_lists_nothing(
    requester: list[int], code: str, problem: str, stderr: str | None
) -> None:
    answer = answer_of(code, requester[0])
    assert (answer.problem, answer.pages) == (problem, ())
    assert stderr is None or answer.stderr.strip() == stderr


def test_a_program_that_answers_nothing_has_a_time_limit(requester: list[int]) -> None:
    answer = answer_of("input(); input()", requester[0], timeout_s=0.2)
    assert answer.problem == "no answer to initialize in 0.2 s"


def test_a_program_that_reads_nothing_blocks_nothing(requester: list[int]) -> None:
    code = """
import os
line = b'{"jsonrpc":"2.0","id":"' + b"x" * 4000 + b'","method":"ping"}\\n'
while True: os.write(1, line)
"""
    assert answer_of(code, requester[0]).problem == "it does not read its input"


def test_without_a_requester_it_ends(requester: list[int]) -> None:
    os.close(requester.pop())
    with pytest.raises(SystemExit):
        answer_of("input(); input()", requester[0])

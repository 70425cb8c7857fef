"""The stub, which imports nothing: its constants are compared with those of `core` here."""

import ast
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from mcpwrap.as_agent import stub
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.session_socket import Exit
from mcpwrap.plan import paths
from tests.shared import pace

FILE = Path(stub.__file__)
TREE = ast.parse(FILE.read_text())
TEXTS = {node.value for node in ast.walk(TREE) if isinstance(node, ast.Constant)}
# The interpreter of its first line, not that of the tests.
STUB = [*FILE.read_text().splitlines()[0].removeprefix("#!").split(), str(FILE)]


def run(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*STUB, *args],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=pace.WAIT_S,
    )


def test_requested_help_is_printed_on_standard_output() -> None:
    for flag in ("-h", "--help"):
        done = run(flag)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: mcpwrap-connect NAME\n")


def test_help_documents_every_status_that_is_not_the_servers() -> None:
    documented = re.findall(r"^    (\d+) ", run("--help").stdout, re.MULTILINE)
    assert documented == [str(int(status)) for status in Exit]


@pytest.mark.parametrize("args", [[], ["git", "more"], ["--help", "git"]])
def test_without_one_name_it_prints_its_usage(args: list[str]) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr == run("--help").stdout


def imported(nodes: Iterable[ast.AST]) -> set[str | None]:
    return {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def test_it_imports_only_built_in_modules() -> None:
    assert imported(TREE.body) == {"posix", "sys", "time", "_socket"}  # all built in
    assert imported(ast.walk(TREE)) == imported(TREE.body) | {"select", "json"}  # for a refusal


def test_its_constants_are_those_of_core() -> None:
    assert stub.MAX_PACKET_BYTES == session_socket.MAX_PACKET_BYTES
    assert stub.USAGE == Exit.USAGE
    assert stub.UNAVAILABLE == Exit.UNAVAILABLE
    assert stub.PROTOCOL == Exit.PROTOCOL
    assert stub.FIRST_S > 2 * session_socket.HANDSHAKE_S + session_socket.START_S
    assert paths.link("git").endswith(f"/{stub.LINK_PREFIX}git")


def test_its_hello_is_that_of_core() -> None:
    assert session_socket.encode_hello(session_socket.Protocol.GATE, "", {}) in TEXTS


def test_it_knows_every_kind_of_packet() -> None:
    packets: list[session_socket.Packet] = [
        session_socket.VariablesRequest(("A",)),
        session_socket.StderrChunk(b""),
        session_socket.ServerEnded(0),
        session_socket.SessionRefused(0, ""),
    ]
    assert {session_socket.encode(packet)[:1] for packet in packets} <= TEXTS

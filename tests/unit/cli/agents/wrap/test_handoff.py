"""`mcpwrap wrap` that `mcpwrap init` started: it has neither a terminal nor sudo."""

import json
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpwrap.cli.agents.wrap import proposal as wrap_proposal
from mcpwrap.cli.common import root_handoff
from mcpwrap.cli.common.root_handoff import VARIABLE, AcceptRequest, ConfirmRequest
from tests.unit.cli.agents.wrap.wrapping import RAW, STUB, entries, put, run
from tests.unit.cli.root import Root


def as_init(sock: socket.socket, root: Root, replies: list[bool]) -> list[object]:
    """Reply to each request as `init` does; return them all."""
    found: list[object] = []
    for is_yes in replies:
        request = root_handoff.receive(sock)
        if isinstance(request, AcceptRequest) and is_yes:
            shutil.copy(request.untrusted_path, root.folder / "proposal")
        found.append(request)
        root_handoff.reply(sock, is_yes=is_yes)
    sock.shutdown(socket.SHUT_RDWR)
    return found


@pytest.mark.parametrize(
    ("replies", "kinds", "status"),
    [
        ([True, True], [ConfirmRequest, AcceptRequest], 0),
        ([True, False], [ConfirmRequest, AcceptRequest], 1),
        ([False], [ConfirmRequest], 1),
        ([True], [ConfirmRequest], 1),  # then `init` was killed
        ([], [], 1),
    ],
)
def test_init_asks_in_its_place(
    root: Root,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    replies: list[bool],
    kinds: list[type],
    status: int,
) -> None:
    monkeypatch.setattr(wrap_proposal, "_SUDO", "/no/such/sudo")
    file = put(home / ".cursor/mcp.json", local=RAW)
    ours, its = socket.socketpair()
    with ours, its, ThreadPoolExecutor(1) as pool:
        init = pool.submit(as_init, ours, root, replies)
        done = run("--all", **{VARIABLE: str(its.fileno())})
        requests = init.result()
    assert done.return_value == status
    assert [type(request) for request in requests] == kinds
    wrapped = {"local": {"command": STUB, "args": ["local"]}}
    assert entries(file) == (wrapped if status == 0 else {"local": RAW})
    for request in requests:
        if isinstance(request, AcceptRequest):
            assert json.loads(request.secrets) == {"local": {"API_KEY": "s3cr3t-s3cr3t"}}
    assert "s3cr3t" not in done.output

"""Remote program as its wrapper starts it: variables, three pipes, and no unix socket."""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcpwrap
from tests.unit.session.remote.world import PATIENCE_S, as_usual, modern, played, server

ROOT = str(Path(mcpwrap.__file__).parent.parent)
# The preparations of the wrapper before execve(2) that affect the program.
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.seccomp import wrapped_server
from mcpwrap.as_wrapper.remote.main import main
prctl.gain_nothing()
wrapped_server.refuse_sockets()
sys.exit(main())
"""


async def run(text: bytes, **environ: str) -> tuple[bytes, bytes, int | None]:
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _START,
        ROOT,
        stdin=-1,
        stdout=-1,
        stderr=-1,
        env={"PATH": os.environ["PATH"], **environ},
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await program.communicate(text)
    return out, err, program.returncode


@played
async def test_lines_in_and_lines_out(tmp_path: Path) -> None:
    path = tmp_path / "headers.json"
    path.write_text('{"Authorization": "Bearer of-this-test"}')
    async with server(as_usual) as there:
        text = json.dumps(modern(1)).encode() + b"\n"
        out, err, status = await run(text, MCPWRAP_REMOTE=there.url, MCPWRAP_HEADERS=str(path))
        assert json.loads(out)["result"] == {"content": []}
        assert (err, status) == (b"", 0)
        assert there.seen[0].headers["authorization"] == "Bearer of-this-test"


@played
async def test_a_program_without_a_url_fails() -> None:
    out, err, status = await run(b"")
    assert (out, status) == (b"", 1)
    assert err == (
        b"mcpwrap-remote: The URL of the remote server is not an HTTP URL [E-REMOTE-URL]\n"
    )


@played
async def test_a_bug_quotes_nothing() -> None:
    out, err, status = await run(b"no message\n", MCPWRAP_REMOTE="http://127.0.0.1:1/")
    assert (out, status) == (b"", 1)
    assert err.endswith(b"mcpwrap-remote: a bug in mcpwrap: ExceptionGroup\n")
    assert b"no message" not in err


@played
async def test_it_trusts_the_configured_file(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    url = "https://127.0.0.1:1/"
    _, err, status = await run(b"", MCPWRAP_REMOTE=url, SSL_CERT_FILE=path)
    assert b"certificates of the authorities cannot be read" in err
    assert status == 1

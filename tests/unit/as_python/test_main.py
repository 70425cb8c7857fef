"""Program as the wrapper starts it: its variables, and what it does without them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mcpwrap
from tests.shared import pace
from tests.unit.as_python.world import modern

ROOT = str(Path(mcpwrap.__file__).parent.parent)
# The preparations of the wrapper before execve(2) that affect the program.
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.seccomp import wrapped_server
from mcpwrap.as_python.main import main
prctl.gain_nothing()
wrapped_server.refuse_sockets()
sys.exit(main())
"""
TOKEN = "canary-of-this-test"
PYTHON = "/usr/bin/python3"
SPEC = {"python": PYTHON, "limits": {}}


def run(text: bytes, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", _START, ROOT],
        input=text,
        capture_output=True,
        env={"PATH": os.environ["PATH"], **environ},
        timeout=pace.WAIT_S,
    )


def test_it_describes_the_interpreter_of_the_server(tmp_path: Path) -> None:
    done = run(
        json.dumps(modern(1, "tools/list")).encode() + b"\n",
        WORKER_RPC_TOKEN=TOKEN,
        XDG_CACHE_HOME=str(tmp_path),
        MCPWRAP_PYTHON=json.dumps(SPEC),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    [tool] = json.loads(done.stdout)["result"]["tools"]
    version = subprocess.run(
        [PYTHON, "-I", "-S", "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert f"Runs Python {version} code" in tool["description"]


def test_a_worker_on_another_machine_needs_no_interpreter_here(tmp_path: Path) -> None:
    spec = {**SPEC, "python": "/nowhere/python3", "worker": "https://192.0.2.1:1"}
    done = run(
        json.dumps(modern(1, "tools/list")).encode() + b"\n",
        WORKER_RPC_TOKEN=TOKEN,
        XDG_CACHE_HOME=str(tmp_path),
        MCPWRAP_PYTHON=json.dumps(spec),
    )
    assert done.returncode == 0
    description = json.loads(done.stdout)["result"]["tools"][0]["description"]
    assert "Runs Python code" in description
    assert "packages of another machine's interpreter" in description


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"WORKER_RPC_TOKEN": ""}, "WORKER_RPC_TOKEN is missing or not a token [E-WORKER-TOKEN]"),
        ({"WORKER_RPC_TOKEN": f"{TOKEN} x"}, "missing or not a token"),
        ({"XDG_CACHE_HOME": ""}, "XDG_CACHE_HOME is not set [E-PYTHON-SETTINGS]"),
        ({"MCPWRAP_PYTHON": ""}, "MCPWRAP_PYTHON: "),
        ({"MCPWRAP_PYTHON": json.dumps({**SPEC, "x": 1})}, "unknown field `x`"),
        ({"MCPWRAP_PYTHON": '{"python": "/nowhere", "limits": {}}'}, "/nowhere cannot be started"),
        ({"MCPWRAP_PYTHON": json.dumps({**SPEC, "worker": "https://x:1", "packages": ["a"]})},
         "the worker is on another one"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(tmp_path: Path, environ: dict[str, str], text: str) -> None:
    settings = {
        "WORKER_RPC_TOKEN": TOKEN,
        "XDG_CACHE_HOME": str(tmp_path),
        "MCPWRAP_PYTHON": json.dumps(SPEC),
        **environ,
    }
    done = run(b"", **settings)
    assert done.returncode == 2
    assert text in done.stderr.decode()
    assert TOKEN.encode() not in done.stderr


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(
        b"",
        WORKER_RPC_TOKEN=TOKEN,
        XDG_CACHE_HOME=str(tmp_path / "file/cache"),
        MCPWRAP_PYTHON=json.dumps(SPEC),
    )
    assert done.returncode == 1
    assert b"Not a directory" in done.stderr

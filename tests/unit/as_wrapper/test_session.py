"""What a session starts."""

import json
from pathlib import Path

from mcpwrap.as_wrapper.session import Surroundings, _program
from mcpwrap.core.spec import Remote, SecretPart, Spec

PROXY = {"HTTPS_PROXY": "http://127.77.0.1:3128"}
SPEC = Spec(
    name="far",
    command="/usr/lib/mcpwrap/mcpwrap-remote",
    args=(),
    cwd="",
    egress_env=PROXY,
    env={},
    inherits=(),
    secrets=("KEY",),
    secret_files=(),
    state=False,
    allow_degraded=False,
    idle_exit_s=0,
    sessions=1,
    memory_bytes=0,
    tasks=0,
    cpu_percent=0,
    remote=Remote(
        url="https://mcp.example/mcp", headers={"Authorization": ("Bearer ", SecretPart("KEY"))}
    ),
)


def test_the_program_of_a_remote_server_is_told_where_and_with_what(tmp_path: Path) -> None:
    around = Surroundings(
        spec=SPEC,
        account="mcpw-far",
        gate_uid=1,
        runtime=tmp_path,
        state=None,
        tree=tmp_path,
        limits=None,
        view=None,
    )
    program = _program(around, tmp_path, {}, {"KEY": "s3cret"})
    assert program.command == "/usr/lib/mcpwrap/mcpwrap-remote"
    assert program.env["MCPWRAP_REMOTE"] == "https://mcp.example/mcp"
    assert program.env["HTTPS_PROXY"] == PROXY["HTTPS_PROXY"]
    assert "s3cret" not in str(program.env)  # others of the account could read it in /proc
    told = json.loads(Path(program.env["MCPWRAP_HEADERS"]).read_bytes())
    assert told == {"Authorization": "Bearer s3cret"}

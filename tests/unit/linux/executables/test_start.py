"""Ownership check before a start: a Python server's programs are its interpreter and uv."""

from pathlib import Path

import pytest

from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.core.wire.server_files import PythonSpec, ServerSpec
from mcpwrap.linux.executables import launch
from mcpwrap.linux.executables.start import expect_unchanged


def spec(python: PythonSpec | None, command: str = "/no/such") -> ServerSpec:
    return ServerSpec(
        name="a", command=command, args=(), cwd="", env={}, egress_env={}, inherits=(),
        secrets=(), secret_files=(), state=False, allow_degraded=False, idle_exit_s=0, sessions=1,
        memory_bytes=1, tasks=1, cpu_percent=0, python=python,
    )  # fmt: skip


def test_what_a_python_server_executes_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "uv"  # in /tmp, which has mode 1777
    program.write_bytes(b"\x7fELF")
    monkeypatch.setattr(launch, "UV_PATHS", (str(program),))
    url = "https://10.0.0.5:9443"
    for refused in (
        PythonSpec(python=str(program), limits=RunLimits()),
        PythonSpec(python="/bin/sh", installs=True, limits=RunLimits()),
    ):
        with pytest.raises(PermissionError, match=f"^{program}.*E-PROGRAM-WRITABLE"):
            expect_unchanged(spec(refused))
    with pytest.raises(PermissionError, match=f"^command: {program}.*E-PROGRAM-WRITABLE"):
        expect_unchanged(spec(None, str(program)))
    for permitted in (
        PythonSpec(python="/bin/sh", limits=RunLimits()),
        PythonSpec(python=str(program), worker=url, limits=RunLimits()),
    ):
        expect_unchanged(spec(permitted))

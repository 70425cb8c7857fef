"""Token of a Python server: made at its start, and known to the worker by its hash."""

import hashlib
import os
from pathlib import Path

import pytest

from mcpwrap.as_root.secrets import mint, store
from mcpwrap.core.wire.execution.execute_api import TOKEN
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.core.wire.server_files import PythonSpec, SecretPart, ServerSpec, encode
from mcpwrap.linux import root_files
from mcpwrap.plan import paths

pytestmark = pytest.mark.usefixtures("store_folder")
NAME = "py"


@pytest.fixture
def hash_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of the token's hash, in a folder of the test."""
    (tmp_path / "worker").mkdir()
    monkeypatch.setattr(paths, "TOKENS", str(tmp_path / "worker"))
    return tmp_path / "worker" / NAME


def describe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, worker: str = "") -> None:
    spec = ServerSpec(
        name=NAME, command="/x", args=(), cwd="", egress_env={}, inherits=(),
        env={TOKEN: (SecretPart(TOKEN),)}, secrets=(TOKEN,), secret_files=(), state=False,
        allow_degraded=False, idle_exit_s=0, sessions=1, memory_bytes=1, tasks=1, cpu_percent=0,
        python=PythonSpec(python="/usr/bin/python3", worker=worker, limits=RunLimits()),
    )  # fmt: skip
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / f"{NAME}.json").write_text(encode(spec))
    monkeypatch.setattr(paths, "SPECS", str(tmp_path / "specs"))
    monkeypatch.setattr(root_files, "read_roots_own", lambda path: Path(path).read_bytes())
    monkeypatch.setattr(mint, "_write_bundle", lambda *_: None)
    (tmp_path / "MINTED").mkdir()


def token() -> str:
    return store.take(NAME, [TOKEN])[TOKEN].value


def test_a_start_makes_the_token_and_its_hash(
    tmp_path: Path, hash_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(monkeypatch, tmp_path)
    assert mint.start(NAME, "ab") == 0
    first = token()
    assert hash_file.read_text() == hashlib.sha256(first.encode()).hexdigest() + "\n"
    assert first not in hash_file.read_text()
    assert mint.start(NAME, "cd") == 0
    assert token() == first


def test_the_operator_sets_the_token_of_a_worker_elsewhere(
    tmp_path: Path, hash_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(monkeypatch, tmp_path, worker="https://10.0.0.5:9443")
    assert mint.start(NAME, "ab") == 0
    assert "secret set" in Path(paths.capability(NAME)).read_text()  # what its agents are told
    assert not hash_file.exists()


def test_the_same_hash_is_not_written_again(hash_file: Path) -> None:
    mint.write_token_hash(NAME, "a" * 40)
    os.utime(hash_file, ns=(1, 1))
    mint.write_token_hash(NAME, "a" * 40)
    assert hash_file.stat().st_mtime_ns == 1
    mint.write_token_hash(NAME, "b" * 40)
    assert hash_file.stat().st_mtime_ns != 1

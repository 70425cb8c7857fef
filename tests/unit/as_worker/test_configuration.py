"""Root's files of the worker: always the current ones; a file that cannot be used opens nothing."""

from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_worker.configuration import TokenHashes, WorkerFile
from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits, Worker
from mcpwrap.linux import root_files

ONE = Worker(pools={"a": Pool(limits=RunLimits())})
TWO = Worker(pools={"b": Pool(limits=RunLimits())})


def write(path: Path, worker: Worker) -> None:
    root_files.replace(str(path), msgspec.json.encode(worker).decode())


def test_a_file_that_root_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "worker.json"
    file = WorkerFile(path)
    assert file.current() == Worker()
    for worker in (ONE, TWO, Worker(), ONE):
        write(path, worker)
        assert file.current() == worker
        assert file.current() is file.current()
    path.unlink()
    assert file.current() == Worker()


@pytest.mark.parametrize("garbage", [b"", b"{", b'{"pool": {}}', b'{"\xff": 1}'])
def test_a_malformed_file_has_no_pools(
    tmp_path: Path, garbage: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "worker.json"
    file = WorkerFile(path)
    write(path, ONE)
    assert file.current() == ONE
    path.write_bytes(garbage)
    assert file.current() == file.current() == Worker()
    assert capfd.readouterr().err.count("[E-WORKER-CONFIG]") == 1
    write(path, TWO)
    assert file.current() == TWO


def test_a_file_that_others_can_write_is_not_used(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "worker.json"
    write(path, ONE)
    path.chmod(0o666)
    assert WorkerFile(path).current() == Worker()
    (tmp_path / "a").write_text(sha256(b"token").hexdigest())
    (tmp_path / "a").chmod(0o666)
    assert TokenHashes(tmp_path).pool_of("token", ["a"]) is None
    assert "[E-WORKER-TOKEN-FILE]" in capfd.readouterr().err


def test_a_token_has_its_pool(tmp_path: Path) -> None:
    hashes = TokenHashes(tmp_path)
    for pool in ("a", "b"):
        root_files.replace(str(tmp_path / pool), sha256(pool.encode()).hexdigest() + "\n")
    pools = ["a", "b", "c"]
    assert [hashes.pool_of(token, pools) for token in ("a", "b", "c", "")] == ["a", "b", None, None]
    assert hashes.pool_of("a", ["b"]) is None  # the pool was removed, and its file was not
    root_files.replace(str(tmp_path / "a"), sha256(b"new").hexdigest())
    assert [hashes.pool_of(token, pools) for token in ("a", "new")] == [None, "a"]
    (tmp_path / "a").unlink()
    assert hashes.pool_of("new", pools) is None


@pytest.mark.parametrize("text", ["", "0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n\n", "token"])
def test_a_malformed_hash_is_no_token(
    tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text(text)
    hashes = TokenHashes(tmp_path)
    assert [hashes.pool_of(text, ["a"]), hashes.pool_of(text, ["a"])] == [None, None]
    assert capfd.readouterr().err.count("[E-WORKER-TOKEN-FILE]") == 1


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert TokenHashes(tmp_path).pool_of("x", ["a"]) is None
    assert WorkerFile(tmp_path / "a").current() == Worker()

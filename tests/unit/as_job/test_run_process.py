"""First process of a run: its environment and its files."""

import errno
import json
import os
from pathlib import Path

import pytest

from mcpwrap.as_job import job_request, run_process
from mcpwrap.as_job.run_process import RunStartError, SlotFolders
from tests.unit.as_job.given_request import FIELDS

PACKAGES = "0" * 64


def request(**changed: object) -> job_request.JobRequest:
    return job_request.parse(json.dumps(FIELDS | changed).encode())


def test_the_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_FDS", "1")
    env = run_process.environment(request(cpus=2), SlotFolders(), "/opt/py/bin/python3", "mcpj-a-0")
    assert env.keys() == {
        "HOME", "LANG", "LOGNAME", "MKL_NUM_THREADS", "MPLBACKEND", "MPLCONFIGDIR",
        "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH",
        "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHON_CPU_COUNT",
        "TMPDIR", "USER",
    }  # fmt: skip
    assert env["PATH"] == "/opt/py/bin:/usr/local/bin:/usr/bin:/bin"
    assert (env["USER"], env["OMP_NUM_THREADS"], env["PYTHON_CPU_COUNT"]) == ("mcpj-a-0", "2", "2")


def test_packages_are_in_the_paths() -> None:
    env = run_process.environment(
        request(packages=PACKAGES), SlotFolders(), "/usr/bin/python3", "a"
    )
    assert env["PYTHONPATH"] == f"/packages/environments/{PACKAGES}"
    assert env["PATH"] == f"/packages/environments/{PACKAGES}/bin:/usr/bin:/usr/local/bin:/bin"


def test_the_files_of_a_request_are_written(tmp_path: Path) -> None:
    for name in ("tmp", "in", f"packages/environments/{PACKAGES}"):
        (tmp_path / name).mkdir(parents=True)
    folders = SlotFolders(str(tmp_path))
    given = request(files={"a.txt": "YQ=="}, packages=PACKAGES)
    arguments = run_process.prepare(given, folders)
    assert arguments[1:] == [f"{folders.work}/main.py", folders.value, folders.files_out]
    assert Path(arguments[0]).name == "runner.py"
    assert (tmp_path / "in/a.txt").read_bytes() == b"a"
    assert (tmp_path / "tmp/main.py").read_bytes() == b"print(1)"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"packages": PACKAGES}, "are not in this run slot"),
        ({"files": {"a.txt": "YQ=="}}, "cannot write"),
    ],
)
def test_a_file_or_folder_that_is_missing_is_named(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    with pytest.raises(RunStartError, match=why):
        run_process.prepare(request(**changed), SlotFolders(str(tmp_path)))


def test_a_kernel_without_processes_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(RunStartError, match="no process can be started: Resource temporarily"):
        run_process.start(["/usr/bin/true"], {}, "/", lambda: None)

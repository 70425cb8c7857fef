"""Units, program and folders of a run slot fit each other and the code."""

import re
import runpy
from pathlib import Path

import pytest

from mcpwrap.as_job import confinement, resource_usage
from mcpwrap.as_job.run_process import SlotFolders
from mcpwrap.core.wire.execution import worker_file
from tests.unit.unit_files import settings

TOP = Path(__file__).parents[3]
ROOT = "/var/lib/mcpwrap/job-root"
SERVICE, SOCKET = settings("mcpwrap-job@.service"), settings("mcpwrap-job@.socket")
SKELETON = {
    line.split()[1]: line.split()[0]
    for line in (TOP / "packaging/tmpfiles.d/mcpwrap.conf").read_text().splitlines()
    if "job-root" in line and not line.startswith("#")
}
DROP_IN = {"/tmp", "/var/tmp", "/in", "/out", "/dev/shm", "/packages"}  # of `mcpwrap apply`


def mounted() -> set[str]:
    """Return the paths at which the service, or its drop-in, mounts something."""
    words = " ".join(
        SERVICE["[Service] BindReadOnlyPaths"] + SERVICE["[Service] TemporaryFileSystem"]
    )
    paths = {word.lstrip("-") for word in words.split()}
    bound = {path.partition(":")[2] if path.startswith("/sys/fs/") else path for path in paths}
    return {path.partition(":")[0] for path in bound} | DROP_IN


def test_each_mount_has_its_mount_point() -> None:
    points = {path.removeprefix(ROOT) for path in SKELETON}
    inner = {path for path in mounted() if path.startswith(("/sys/", "/dev/", "/run/"))}
    assert mounted() - inner <= points
    assert {"/proc", "/sys", "/dev", "/run"} <= points


def test_folders_and_links_are_of_root() -> None:
    assert set(SKELETON.values()) == {"d", "f", "L"}
    assert {path.removeprefix(ROOT) for path, kind in SKELETON.items() if kind == "L"} == {
        "/bin", "/lib", "/lib64", "/sbin",
    }  # fmt: skip


@pytest.mark.parametrize("folder", confinement.WRITABLE)
def test_what_a_run_writes_to_is_in_memory(folder: str) -> None:
    assert folder.startswith("/dev/") or folder in mounted()


def test_the_files_that_the_code_expects_are_mounted() -> None:
    folders = SlotFolders()
    value = str(Path(folders.value).parent)
    packages = str(Path(folders.packages).parent)
    assert {folders.work, folders.files_in, folders.files_out, packages, value} <= mounted()
    assert resource_usage.CGROUP in mounted()
    assert SERVICE["[Service] Slice"] == ["mcpwrap-job.slice"]
    own = "/mcpwrap.slice/mcpwrap-job.slice/mcpwrap-job@%i.service:"
    assert sum(own in value for value in SERVICE["[Service] BindReadOnlyPaths"]) == 3


def test_the_worker_reaches_the_socket() -> None:
    stream = SOCKET["[Socket] ListenStream"]
    assert stream == [worker_file.job_socket("%i", 0).replace("-0.sock", ".sock")]
    assert SOCKET["[Socket] SocketUser"] == ["mcpwrap-worker"]
    assert (SOCKET["[Socket] SocketMode"], SOCKET["[Socket] Accept"]) == (["0600"], ["no"])


def test_units_need_the_drop_in() -> None:
    path = "/etc/systemd/system/mcpwrap-job@%i.service.d/10-mcpwrap.conf"
    assert SERVICE["[Unit] AssertPathExists"] == SOCKET["[Unit] AssertPathExists"] == [path]


def test_the_program_starts_without_site_packages() -> None:
    stage = runpy.run_path(str(TOP / "packaging/stage.py"), run_name="stage")
    (program,) = SERVICE["[Service] ExecStart"]
    assert stage["QUICK_PROGRAMS"] == {program.removeprefix("/"): "mcpwrap.as_job.main"}
    assert stage["QUICK_LAUNCHER"].startswith("#!{interpreter} -IS\n")
    assert not re.search(r"\bsite\b", stage["QUICK_LAUNCHER"])

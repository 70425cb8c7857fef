"""Machine with a kernel of its own, in QEMU. RUNS AS ROOT on the test host; needs no KVM.

A container shows the host's cgroups, and on a host with cgroup v1 those have no v2 controllers.
This one has cgroup v2 with all of them. It takes half a minute, so it is booted for one story. The
machine may be of another architecture: unlike the emulation of single programs, that of a machine
has all of the kernel, seccomp(2) too.
"""

import io
import json
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed import installed, roots
from tests.system.bed.machine import BED_AT, GUEST, Machine

STORY_S = 300  # by the clock of the machine
REST_S = 200  # for its boot and its end, on an idle host: none takes a third of that
MEMORY_MIB = 1024
DISK = "2G"  # sparse; its content takes a third of that
LEFT_BYTES = 64 * 1024 * 1024
KERNEL_WORDS = (
    # With -no-reboot, a panic ends QEMU at once.
    "console={} quiet oops=panic panic=-1 "
    "systemd.show_status=error systemd.unit=multi-user.target "
    # Needed on a real processor only.
    "mitigations=off nokaslr"
)


# Texts or contents, by their absolute paths in the machine.
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Architecture:
    """Program and options of QEMU for an architecture, and the name of its serial console."""

    qemu: tuple[str, ...]
    console: str


AMD64 = Architecture(
    # QEMU 7.2 sets wrong flags after cmpxchg16b. The allocator of Linux 6.12 uses it, and two boots
    # of three ended in a double fault. Debian 13 has a newer QEMU.
    ("qemu-system-x86_64", "-machine", "q35", "-cpu", "max,cx16=off"),
    "ttyS0",
)
# Not `max`: emulated signatures of pointers take a large part of the time.
ARM64 = Architecture(
    ("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72"),
    "ttyAMA0",
)


@dataclass(frozen=True)
class VmResult:
    """Result of a story."""

    status: int  # of the script; 124 if it took longer than `STORY_S`
    output: str  # standard output and error, in their order
    journal: list[dict[str, Any]]  # of this boot


def call_in_vm(
    suite: str, call: tuple[object, ...], files: Mapping[str, str | bytes] = {}
) -> VmResult:
    """Boot a Debian on which apt has installed the package, and call a function there as root.

    `call` is a file of `guest/`, a function of it and its arguments; the last line of the output is
    the result, as JSON. `files` are put there first, by their absolute paths. All of the disk is
    thrown away, and there is no network device.

    Raises:
        RuntimeError: the machine did not come up or did not end, with the end of its console.
    """
    layer = roots.ensure(roots.vm_root(suite))
    return _play(AMD64, (layer, installed.layer(suite)), call, files, STORY_S)


def call_in_arm64_vm(suite: str, call: tuple[object, ...], files: Files, within_s: int) -> VmResult:
    """Boot a Debian of arm64 without the package, and call a function there; see `call_in_vm`.

    `within_s` is by the clock of the machine, as `STORY_S`.
    """
    layer = roots.ensure(roots.arm64_root(suite))
    return _play(ARM64, (layer, None), call, files, within_s)


def _play(
    architecture: Architecture,
    layers: tuple[roots.Layer, Path | None],
    call: tuple[object, ...],
    files: Files,
    within_s: int,
) -> VmResult:
    module, function, *arguments = call
    command = Machine.guest_command(str(module), str(function), *arguments)
    script = f"exec {command}\n"
    layer, upper = layers
    with tempfile.TemporaryDirectory(prefix="vm-", dir=roots.CACHE) as folder:
        package, story, left, console, empty = (
            Path(folder, name) for name in ("package", "story", "left", "console", "empty")
        )
        empty.mkdir()
        _make_disk(upper or empty, package)  # takes a second; the other one takes ten
        _write_story(story, script, {"/run/bed/limit": str(within_s), **_guest_files(), **files})
        with left.open("wb") as file:
            file.truncate(LEFT_BYTES)
        disks = [_root_disk(layer), package, story]
        argv = _qemu(architecture, layer.path / "boot", disks, left)
        try:
            _run_until_off(argv, console, pace.promised(within_s + REST_S))
            return _read_result(left)
        except (subprocess.SubprocessError, tarfile.TarError, KeyError) as error:
            tail = console.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"no result of a {layer.name} in QEMU ({error}):\n{tail}") from error


def _guest_files() -> dict[str, str]:
    """Return the files of `guest/` by their paths in a machine."""
    files = {
        file: f"{BED_AT}/tests/system/guest/{file.relative_to(GUEST)}"
        for file in GUEST.rglob("*.py")
    }
    packages = {f"{BED_AT}/{folder}/__init__.py": "" for folder in ("tests", "tests/system")}
    own = {path: file.read_text() for file, path in files.items()}
    return {**packages, **own, "/opt/probe.py": (GUEST / "probe.py").read_text()}


def _root_disk(layer: roots.Layer) -> Path:
    """Return the run root and the kernel as one disk, which stays as long as its layer."""
    kept = Path(f"{layer.path}.ext4")
    if not kept.exists():
        with tempfile.TemporaryDirectory(prefix="disk-", dir=roots.CACHE) as scratch:
            upper, work, new = (Path(scratch, name) for name in ("upper", "work", "new"))
            upper.mkdir()
            work.mkdir()
            with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
                _make_disk(root, new)
            new.rename(kept)  # atomic, for concurrent builds
    return kept


def _make_disk(folder: Path, disk: Path) -> None:
    """Write a file system with a copy of `folder`, with marks of overlayfs; nothing is mounted."""
    argv = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(folder), str(disk), DISK]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)


def _write_story(disk: Path, script: str, files: Files) -> None:
    inside: dict[str, str | bytes] = {"/run/bed/story": script, **files}
    with tarfile.open(disk, "w") as tar:
        for path, content in inside.items():
            data = content if isinstance(content, bytes) else content.encode()
            member = tarfile.TarInfo(path.removeprefix("/"))
            member.size = len(data)
            member.mtime = int(time.time())
            member.mode = 0o755
            tar.addfile(member, io.BytesIO(data))


def _qemu(architecture: Architecture, boot: Path, read_only: list[Path], left: Path) -> list[str]:
    drives = [(path, "on") for path in read_only] + [(left, "off")]
    argv = [
        # It ends with a test run that is killed.
        "setpriv", "--pdeathsig=KILL", *architecture.qemu,
        # With a thread for each processor, one may run code that the other has just patched: boots
        # were seen to end with "Oops: int3". Threads would save a fifth of the time.
        "-accel", "tcg,thread=single", "-smp", "2",
        # Its clock counts instructions, each as 2 ns, and jumps when all wait: the load of the host
        # is not visible inside. By the clock of the host, units were too slow to start, sessions
        # were refused for that, and the kernel found that its timer did not tick.
        "-icount", "shift=1,sleep=off", "-rtc", "clock=vm", "-m", str(MEMORY_MIB),
        "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
        "-kernel", str(boot / "vmlinuz"), "-initrd", str(boot / "initrd"),
        "-append", KERNEL_WORDS.format(architecture.console),
    ]  # fmt: skip
    for path, is_read_only in drives:
        argv += ["-drive", f"file={path},format=raw,if=virtio,readonly={is_read_only}"]
    return argv


def _run_until_off(argv: list[str], console: Path, timeout_s: float) -> None:
    with console.open("wb") as log:
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
            timeout=timeout_s,
        )  # fmt: skip


def _read_result(left: Path) -> VmResult:
    with tarfile.open(left, "r:") as tar:
        status, output, journal = (_text(tar, name) for name in ("status", "output", "journal"))
    return VmResult(int(status), output, [json.loads(line) for line in journal.splitlines()])


def _text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(f"./{name}")
    assert file is not None
    return file.read().decode(errors="replace")

"""Boot of a root: an overlay, a cgroup of its own, systemd-nspawn. RUNS AS ROOT on the test host.

Leaves the host as it was: no firewall rule, no account, no unit, no cgroup outside its own folder.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from tests.shared import pace
from tests.system.bed.roots import TESTING

CGROUPS = Path("/sys/fs/cgroup")
# nspawn mounts these read-only on a v1 host; /usr/lib/bed-init makes them writable inside.
V1_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "blkio", "freezer", "devices")
INIT = f"""#!/bin/sh
# A v1 or hybrid host: without this MemoryMax=, TasksMax= and CPUQuota= would have no effect.
for c in {" ".join(V1_CONTROLLERS)}; do
    [ -d /sys/fs/cgroup/$c ] && mount -o remount,bind,rw,nosuid,nodev,noexec /sys/fs/cgroup/$c
done
exec /lib/systemd/systemd "$@"
"""


class Profile(Enum):
    """Kernel features of a container on a host with cgroup v1 or both; on a v2 host LIMITS has all.

    LIMITS: MemoryMax=, TasksMax= and CPUQuota= act, IPAddressDeny= silently does not: bpf(2) is
        refused. Processes are in a cgroup v2 without controllers where the host has one.
    V1: the same without cgroup v2. systemd is not notified there that a unit's last process has
        ended, and now and then waits for TimeoutStopSec= twice: for the stories of v1 alone.
    BPF: IPAddressDeny= acts and there is cgroup v2, memory and tasks are not limited.
    """

    LIMITS = "limits"
    V1 = "v1"
    BPF = "bpf"


def has_limits(suite: str) -> bool:
    """Return whether limits act in a container of this suite: it can have the controllers.

    systemd 258 and later know cgroup v2 alone, and on a v1 host that has none of them.
    """
    return suite != TESTING or not _is_v1_host()


class Container:
    """Booted root. Its changes are in memory, its /home is a folder of the host's disk."""

    def __init__(
        self, lower: list[Path], scratch: Path, profile: Profile, taken: Sequence[str] = ()
    ) -> None:
        """`taken` is options of nspawn that take something of the kernel from the machine."""
        with _alone(scratch):
            self.folder = Path(tempfile.mkdtemp(prefix="m-", dir=scratch))
            self._lock = (self.folder / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.name = _machine_name(self.folder)
        self.profile = profile
        self.is_unified = profile is Profile.BPF or not _is_v1_host()
        self.has_controllers = not (profile is Profile.BPF and _is_v1_host())
        self.root = self.folder / "root"
        self.upper = self.folder / "rw/upper"
        self.leader = 0
        self._lower = lower
        self._taken = taken
        self._process: subprocess.Popen[bytes] | None = None
        self._mount()

    def _mount(self) -> None:
        rw, home = self.folder / "rw", self.folder / "home"
        for path in (self.root, rw, home):
            path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(rw))
        self.upper.mkdir()
        (rw / "work").mkdir()
        dirs = ":".join(map(str, self._lower))
        options = f"lowerdir={dirs},upperdir={self.upper},workdir={rw / 'work'}"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))

    def boot(self) -> None:
        """Start systemd and return when it reports that the system is up.

        Raises:
            RuntimeError: it did not, with its output.
        """
        notify = self.folder / "notify"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.bind(str(notify))
            self._start(notify)
            self._await_ready(sock)

    def _start(self, notify: Path) -> None:
        self._make_cgroups()
        argv = [
            "systemd-nspawn", "--quiet", f"--directory={self.root}", "--register=no", "--keep-unit",
            f"--machine={self.name}", "--notify-ready=yes", "--console=pipe", "--resolv-conf=off",
            "--timezone=off", "--link-journal=no", "--private-network", "--kill-signal=SIGRTMIN+3",
            # nspawn's own filter would mask what our filters refuse and allow, and Landlock with
            # it.
            "--system-call-filter=@known",
            f"--bind={self.folder / 'home'}:/home", *self._taken,
        ]  # fmt: skip
        env = {**os.environ, "NOTIFY_SOCKET": str(notify), "SYSTEMD_NSPAWN_LOCK": "0"}
        words = ["systemd.unit=multi-user.target", "systemd.show_status=no"]
        if self.is_unified:
            env["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"] = "1"
            argv += ["--capability=CAP_BPF,CAP_PERFMON", "--system-call-filter=bpf", "--boot"]
        else:
            if self.profile is Profile.V1:
                env["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"] = "0"
            argv.append("--system-call-filter=~bpf")
            init = self.root / "usr/lib/bed-init"
            init.write_text(INIT)
            init.chmod(0o755)
            # systemd 256 refuses v1 without the first variable; 258 has no v1 at all.
            words = [
                "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
                "systemd.unified_cgroup_hierarchy=0",
                *words,
            ]
            argv.append("/usr/lib/bed-init")
        with (self.folder / "console.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                start_new_session=True, preexec_fn=self._enter_cgroups,
            )  # fmt: skip

    def _await_ready(self, sock: socket.socket) -> None:
        assert self._process is not None
        give_up_at = time.monotonic() + pace.WAIT_S
        sock.settimeout(0.5)
        while time.monotonic() < give_up_at and self._process.poll() is None:
            try:
                lines = sock.recv(65536).decode().splitlines()
            except TimeoutError:
                continue
            for line in lines:
                if line.startswith("X_NSPAWN_LEADER_PID="):
                    self.leader = int(line.partition("=")[2])
            if "READY=1" in lines:
                return
        text = (self.folder / "console.log").read_text(errors="replace")
        raise RuntimeError(f"{self.name} did not boot:\n{text[-3000:]}")

    def enter(self, argv: list[str]) -> list[str]:
        """Return the command that runs `argv` inside, as root."""
        return [
            "nsenter",
            "-t",
            str(self.leader),
            "-m",
            "-u",
            "-i",
            "-n",
            "-p",
            "-C",
            "-r",
            "-w",
            "--",
            *argv,
        ]

    def power_off(self) -> None:
        """Shut down as a machine does; its disk stays, and it can boot again."""
        assert self._process is not None
        os.kill(self.leader, signal.SIGRTMIN + 4)
        self._process.wait(pace.WAIT_S)

    def kill(self) -> None:
        """Kill all its processes at once, as a power failure does."""
        if self._process and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.leader or self._process.pid, signal.SIGKILL)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def remove(self) -> None:
        """Kill it and remove all its files and mounts from the host."""
        self.kill()
        with _alone(self.folder.parent):  # without its lock it looks abandoned to another run
            self._lock.close()
            _take_away(self.folder)
        _remove_cgroups(self.name)

    def _make_cgroups(self) -> None:
        for path in _cgroups(self.name):
            path.mkdir(exist_ok=True)

    def _enter_cgroups(self) -> None:
        for path in _cgroups(self.name):
            (path / "cgroup.procs").write_text("0")


def remove_abandoned(scratch: Path) -> None:
    """Remove machines of a run that was killed before it could."""
    if not scratch.is_dir():
        return
    with _alone(scratch):
        for folder in scratch.glob("m-*"):
            with (folder / "lock").open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                for pid in _processes_in(_machine_name(folder)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                _take_away(folder)
            _remove_cgroups(_machine_name(folder))


@contextmanager
def _alone(scratch: Path) -> Iterator[None]:
    """Block every other run that adds or removes machines, for the time of the block.

    Between the creation of a machine's folder and of its lock it would look abandoned to them.
    """
    with (scratch / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _machine_name(folder: Path) -> str:
    return "mcpwrap-" + folder.name.replace("_", "x")


def _processes_in(name: str) -> list[int]:
    """Return every process in the machine's own cgroup: nspawn and all its descendants."""
    files = (file for tree in _cgroups(name)[:1] for file in tree.rglob("cgroup.procs"))
    return [int(pid) for file in files for pid in file.read_text().split()]


def _take_away(folder: Path) -> None:
    for path in (folder / "root", folder / "rw"):
        if path.is_mount():
            _run("umount", "--lazy", str(path))
    shutil.rmtree(folder)


def _cgroups(name: str) -> list[Path]:
    trees = ("systemd", "unified", *V1_CONTROLLERS) if _is_v1_host() else ("",)
    return [CGROUPS / tree / name for tree in trees if (CGROUPS / tree).is_dir()]


def _remove_cgroups(name: str) -> None:
    for path in _cgroups(name):
        for inner, _, _ in os.walk(path, topdown=False):
            with suppress(OSError):
                Path(inner).rmdir()


def _is_v1_host() -> bool:
    return not (CGROUPS / "cgroup.controllers").exists()


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)

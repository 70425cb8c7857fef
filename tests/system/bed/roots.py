"""Debian roots, built once and cached in layers. RUNS AS ROOT on the test host.

A layer is a folder for overlayfs. Its name ends in a hash of everything it is built from: its
recipe, its suite, its parent's name and the ISO week, so that security updates arrive and nothing
is ever stale; packages of pip and npm are pinned. Package mirrors and certificates are the host's
own.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.system.bed import foreign

RELEASED = ("bookworm", "trixie")
# The suite of Debian 14, which is testing.
TESTING = "forky"
# The version of its Python, by suite.
PYTHON = {"bookworm": "3.11", "trixie": "3.13", TESTING: "3.14"}
# A run is of the released ones, unless `MCPWRAP_TEST_SUITES` names others.
SUITES = tuple(os.environ.get("MCPWRAP_TEST_SUITES", " ".join(RELEASED)).split())
CACHE = Path(os.environ.get("MCPWRAP_TEST_CACHE", "/var/cache/mcpwrap-test"))
KEPT_S = 24 * 3600
UNMOUNT_WITHIN_S, LOOK_EVERY_S = 30.0, 0.1
# One week for a run and its processes, also where the run begins on a Sunday and ends on a Monday.
WEEK = os.environ.setdefault("MCPWRAP_TEST_WEEK", time.strftime("%G-%V"))
RECIPES = Path(__file__).parent / "recipes"
# Versions of pip's and npm's dependencies of the recipes' packages: a release of today changes no
# run.
PIP_CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
NPM_BEFORE = "2026-11-24"
HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Files and variables by which a package client of the host finds its registry, and nothing else.
CLIENT_VARIABLES = ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Layer:
    """Layer of a root. `kind` names its recipe, a script that runs inside the root.

    `architecture` is as in `dpkg --print-architecture`, or "" for that of the host.
    """

    suite: str
    kind: str
    parent: "Layer | None" = None
    architecture: str = ""

    @property
    def recipe(self) -> Path:
        """Script `recipes/KIND.sh`."""
        return RECIPES / f"{self.kind}.sh"

    @property
    def name(self) -> str:
        """`SUITE-KIND-HASH`, where the hash covers all inputs of the layer.

        Of another architecture than the host's it is `SUITE-ARCHITECTURE-KIND-HASH`.
        """
        parts = [self.suite, self.parent.name if self.parent else WEEK]
        parts.append(self.recipe.read_text())
        if self.parent:  # mmdebstrap uses neither pip nor npm
            parts += [NPM_BEFORE, *(f.read_text() for f in self.inputs)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        return f"{self.series}-{digest}"

    @property
    def series(self) -> str:
        """Name without the hash: that of all versions of the layer."""
        return "-".join(filter(None, (self.suite, self.architecture, self.kind)))

    @property
    def inputs(self) -> list[Path]:
        """Files next to the recipe that it reads, for example `servers.pypi.txt`."""
        return [*sorted(RECIPES.glob(f"{self.kind}.*.*")), PIP_CONSTRAINTS]

    @property
    def path(self) -> Path:
        """Path of the finished layer."""
        return CACHE / self.name

    def lower_dirs(self) -> list[Path]:
        """This layer's folders for overlayfs, topmost first."""
        return [self.path, *(self.parent.lower_dirs() if self.parent else [])]


def need_root(command: str) -> None:
    """End the program with an error message, unless it runs as root."""
    if os.geteuid() != 0:
        raise SystemExit(f"as root: sudo {command}")


def run_root(suite: str) -> Layer:
    """Return the root that machines boot: Debian, the package's dependencies, real MCP servers."""
    return Layer(suite, "servers", Layer(suite, "go", Layer(suite, "base")))


def conformance_root(suite: str) -> Layer:
    """Return a run root with the official conformance suite."""
    return Layer(suite, "conformance", run_root(suite))


def trial_root(suite: str) -> Layer:
    """Return a run root with the dependencies of `pip install .`, and the official Inspector."""
    return Layer(suite, "trial", run_root(suite))


def agents_root(suite: str) -> Layer:
    """Return a run root with agents in common use, and the official Inspector."""
    return Layer(suite, "agents", run_root(suite))


def polkit_root(suite: str) -> Layer:
    """Return a run root with the packages of polkit."""
    return Layer(suite, "polkit", run_root(suite))


def haproxy_root(suite: str) -> Layer:
    """Return a run root with the packages of HAProxy."""
    return Layer(suite, "haproxy", run_root(suite))


def shells_root(suite: str) -> Layer:
    """Return a run root with the packages of zsh, fish and bash-completion."""
    return Layer(suite, "shells", run_root(suite))


def beside_root(suite: str) -> Layer:
    """Return a run root with the packages of firewalls, docker, libvirt and needrestart."""
    return Layer(suite, "beside", run_root(suite))


def readers_root(suite: str) -> Layer:
    """Return a run root with JSON parsers of several languages."""
    return Layer(suite, "readers", run_root(suite))


def dotnet_root(suite: str) -> Layer:
    """Return a run root with a server written in .NET."""
    return Layer(suite, "dotnet", run_root(suite))


def browser_root(suite: str) -> Layer:
    """Return a run root with Chromium, and its driver."""
    return Layer(suite, "browser", run_root(suite))


def science_root(suite: str) -> Layer:
    """Return a run root with numpy, pandas and matplotlib."""
    return Layer(suite, "science", run_root(suite))


def project_servers_root(suite: str) -> Layer:
    """Return a run root with servers of development tools."""
    return Layer(suite, "project-servers", run_root(suite))


def databases_root(suite: str) -> Layer:
    """Return a base root with PostgreSQL, MariaDB and DuckDB."""
    return Layer(suite, "databases", Layer(suite, "base"))


def lsm_root(suite: str) -> Layer:
    """Return a base root with the tools of SELinux, and the parser of AppArmor's profiles."""
    return Layer(suite, "lsm", Layer(suite, "base"))


def vm_root(suite: str) -> Layer:
    """Return a run root with a kernel, which `vm.py` boots."""
    return Layer(suite, "vm", run_root(suite))


def arm64_root(suite: str) -> Layer:
    """Return a base root of arm64 with a kernel, which `vm.py` boots."""
    base = Layer(suite, "base", architecture=foreign.ARM64)
    return Layer(suite, "vm", base, architecture=foreign.ARM64)


def build_root(suite: str) -> Layer:
    """Return the root in which the package is built: Debian with debhelper and lintian."""
    return Layer(suite, "build", Layer(suite, "base"))


def repository_root(suite: str) -> Layer:
    """Return a base root with the programs that write lists of packages."""
    return Layer(suite, "repository", Layer(suite, "base"))


def rpm_root(suite: str) -> Layer:
    """Return a run root with rpm and dnf, and a package that provides names of those of Fedora."""
    return Layer(suite, "rpm", run_root(suite))


def ensure(layer: Layer) -> Layer:
    """Build `layer` and its parents if they are missing; concurrent processes share one build."""
    if layer.parent:
        ensure(layer.parent)
    if layer.path.is_dir():
        Path(f"{layer.path}.log").touch()  # the time of its last use
        return layer
    with locked(layer.series):
        if not layer.path.is_dir():
            _build(layer)
            _forget_older(layer)
    return layer


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Lock a cache entry against other processes that would build it, for the time of the block."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(layer: Layer) -> None:
    log = CACHE / f"{layer.name}.log"
    new = CACHE / f"{layer.name}.new"
    shutil.rmtree(new, ignore_errors=True)
    with log.open("wb") as out:
        try:
            if layer.parent is None:
                with _executing(layer) as enter:
                    argv = [*enter, *_mmdebstrap(layer, new)]
                    subprocess.run(argv, stdout=out, stderr=out, check=True)
            else:
                _build_on_parent(layer, new, out.fileno())
        except subprocess.CalledProcessError as error:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
            raise RuntimeError(f"{layer.name} was not built; {log} ends with:\n{tail}") from error
    new.rename(layer.path)


@contextmanager
def _executing(layer: Layer) -> Iterator[list[str]]:
    """Yield the words before a command that executes programs of this layer."""
    if layer.architecture:
        emulator = ensure(Layer(layer.suite, "emulator", Layer(layer.suite, "base"))).path
        with foreign.emulated(emulator / "opt/emulator" / layer.architecture) as enter:
            yield enter
    else:
        yield []


def _mmdebstrap(layer: Layer, target: Path) -> list[str]:
    packages = layer.recipe.read_text().split("#!packages", 1)[1].split()
    if layer.suite == TESTING:
        packages.append("mount")  # no longer essential
    # The second line of the recipe onwards runs inside; mmdebstrap passes the root as $1.
    hook = f'chroot "$1" sh -es < {layer.recipe}'
    # What the check looks for is in the host's binfmt_misc.
    foreign_root = [f"--architectures={layer.architecture}", "--skip=check/qemu"]
    return [
        "mmdebstrap", "--variant=apt", f"--include={','.join(packages)}",
        *(foreign_root if layer.architecture else []),
        '--aptopt=Acquire::Languages "none"', "--skip=cleanup/apt/lists",
        # A mirror may be older than the week for which testing's list says that it is valid.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        f"--customize-hook={hook}", layer.suite, str(target), *host_archives(layer.suite),
    ]  # fmt: skip


def host_archives(suite: str) -> list[str]:
    """Return the Debian archives of this host's apt: their names are nowhere in the project.

    With security updates, where the host has them: an older Squid should not be in use.
    """
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    uris = sorted(set(done.stdout.split()))
    archives = [uri for uri in uris if uri.rstrip("/").endswith("/debian")]
    if not archives:
        raise RuntimeError("apt knows no Debian archive; run `apt-get update` first")
    security = [uri for uri in uris if uri.rstrip("/").endswith("/debian-security")]
    return [archives[0], *(f"deb {uri} {suite}-security main" for uri in security[:1])]


def _build_on_parent(layer: Layer, upper: Path, log_fd: int) -> None:
    assert layer.parent is not None
    work = upper.with_suffix(".work")
    work.mkdir(exist_ok=True)
    upper.mkdir()
    with (
        mounted_overlay(layer.parent.lower_dirs(), upper, work) as root,
        _executing(layer) as enter,
    ):
        script, inputs = layer.recipe, layer.inputs
        argv = ["sh", "-es"]
        run_in_root(root, argv, script=script, inputs=inputs, log_fd=log_fd, enter=enter)
    shutil.rmtree(work, ignore_errors=True)


@contextmanager
def mounted_overlay(lower: list[Path], upper: Path, work: Path) -> Iterator[Path]:
    """Mount `lower` (topmost first) under a writable `upper`, for the time of the block."""
    root = work / "root"
    root.mkdir(exist_ok=True)
    dirs = ":".join(map(str, lower))
    options = f"lowerdir={dirs},upperdir={upper},workdir={work / 'w'}"
    (work / "w").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)], check=True)
    try:
        yield root
    finally:
        _unmount(root)


def _unmount(root: Path) -> None:
    """Unmount. A process that another thread forks has our open files until its exec(2)."""
    give_up_at = time.monotonic() + UNMOUNT_WITHIN_S
    argv = ["umount", str(root)]
    while (done := subprocess.run(argv, capture_output=True, text=True)).returncode:
        if time.monotonic() > give_up_at:
            raise RuntimeError(done.stderr)
        time.sleep(LOOK_EVERY_S)


def run_in_root(
    root: Path,
    argv: list[str],
    *,
    script: Path,
    inputs: list[Path],
    log_fd: int,
    network: bool = True,
    enter: Sequence[str] = (),
) -> None:
    """Run `script` by `argv` inside `root`, with the host's network, resolver and certificates.

    Without `network` it has none, not even a loopback. `enter` are the words by which a command is
    run in another namespace.

    The mounts are in a namespace of their own, so nothing is left behind, however it ends.
    """
    env = {name: value for name in CLIENT_VARIABLES if (value := os.environ.get(name))}
    env |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    env |= {"DEBIAN_FRONTEND": "noninteractive", "INPUTS": "/run/inputs"}
    env |= {"npm_config_before": NPM_BEFORE}
    if PIP_CONSTRAINTS in inputs:
        env |= {"PIP_CONSTRAINT": f"/run/inputs/{PIP_CONSTRAINTS.name}"}
    if HOST_CERTIFICATES.exists():
        inside = "/run/host-certificates.crt"
        env |= dict.fromkeys(("PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile"), inside)
    bind = [("/proc", "/proc"), ("/dev", "/dev"), ("/etc/resolv.conf", "/run/resolv.conf")]
    bind += [(str(HOST_CERTIFICATES), "/run/host-certificates.crt")]
    bind += [(str(path), f"/run/inputs/{path.name}") for path in inputs]
    lines = [f'mount -t tmpfs tmpfs "{root}/run"', f'mkdir -p "{root}/run/inputs"']
    for source, inside in bind:
        if Path(source).is_file():
            lines.append(f'touch "{root}{inside}"')
        lines.append(f'[ ! -e {source} ] || mount --rbind {source} "{root}{inside}"')
    lines += [f'exec chroot "{root}" "$@"']
    alone = ["unshare", "-m", *([] if network else ["-n"]), "--propagation=private"]
    with script.open("rb") as stdin:
        subprocess.run(
            [*enter, *alone, "sh", "-ec", "\n".join(lines), "sh", *argv],
            stdin=stdin, stdout=log_fd, stderr=log_fd, env=env, check=True,
        )  # fmt: skip


def _forget_older(layer: Layer) -> None:
    """Remove layers of the same kind that have not been used recently.

    Not at once: machines of another tree that shares the cache may be based on them.
    """
    for log in CACHE.glob(f"{layer.series}-*.log"):
        if log.stem != layer.name and log.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(CACHE / log.stem, ignore_errors=True)
            (CACHE / f"{log.stem}.ext4").unlink(missing_ok=True)
            log.unlink()

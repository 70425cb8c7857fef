"""Debian roots, built once and cached in layers. RUNS AS ROOT on the test host.

A layer is a folder for overlayfs. Its name ends in a hash of everything it is built from: its
recipe, its suite, its parent's name and the ISO week, so that security updates arrive and nothing
is ever stale; what pip and npm bring is pinned. Package mirrors and certificates are the host's
own.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SUITES = ("bookworm", "trixie")
CACHE = Path(os.environ.get("MCPWRAP_TEST_CACHE", "/var/cache/mcpwrap-test"))
KEPT_S = 24 * 3600
# One week for a run and its processes, also where the run begins on a Sunday and ends on a Monday.
WEEK = os.environ.setdefault("MCPWRAP_TEST_WEEK", time.strftime("%G-%V"))
RECIPES = Path(__file__).parent / "recipes"
# What pip and npm bring beside what a recipe names: a release of today changes no run.
PIP_CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
NPM_BEFORE = "2026-11-24"
HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What a package client of the host needs to find its registry, and nothing else.
CLIENT_VARIABLES = ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Layer:
    """One step of a root. `kind` names its recipe, a script that runs inside the root."""

    suite: str
    kind: str
    parent: "Layer | None" = None

    @property
    def recipe(self) -> Path:
        """The script `recipes/KIND.sh`."""
        return RECIPES / f"{self.kind}.sh"

    @property
    def name(self) -> str:
        """`SUITE-KIND-HASH`, where the hash covers all that the layer is built from."""
        parts = [self.suite, self.parent.name if self.parent else WEEK]
        parts.append(self.recipe.read_text())
        if self.parent:  # what mmdebstrap builds asks neither pip nor npm
            parts += [NPM_BEFORE, *(f.read_text() for f in self.inputs)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        return f"{self.suite}-{self.kind}-{digest}"

    @property
    def inputs(self) -> list[Path]:
        """Files that the recipe reads, for example `servers.pypi.txt`, beside it."""
        return [*sorted(RECIPES.glob(f"{self.kind}.*.*")), PIP_CONSTRAINTS]

    @property
    def path(self) -> Path:
        """Where the finished layer is."""
        return CACHE / self.name

    def lower_dirs(self) -> list[Path]:
        """This layer's folders for overlayfs, topmost first."""
        return [self.path, *(self.parent.lower_dirs() if self.parent else [])]


def need_root(command: str) -> None:
    """End the program with a line that says so, unless it runs as root."""
    if os.geteuid() != 0:
        raise SystemExit(f"as root: sudo {command}")


def run_root(suite: str) -> Layer:
    """The root that machines boot: Debian, what our package depends on, real MCP servers."""
    return Layer(suite, "servers", Layer(suite, "go", Layer(suite, "base")))


def conformance_root(suite: str) -> Layer:
    """A run root with the official conformance suite."""
    return Layer(suite, "conformance", run_root(suite))


def trial_root(suite: str) -> Layer:
    """A run root with what `pip install .` needs, and the official Inspector."""
    return Layer(suite, "trial", run_root(suite))


def agents_root(suite: str) -> Layer:
    """A run root with agents that people use, and the official Inspector."""
    return Layer(suite, "agents", run_root(suite))


def polkit_root(suite: str) -> Layer:
    """A run root with the packages of polkit."""
    return Layer(suite, "polkit", run_root(suite))


def readers_root(suite: str) -> Layer:
    """A run root with JSON parsers of several languages."""
    return Layer(suite, "readers", run_root(suite))


def dotnet_root(suite: str) -> Layer:
    """A run root with a server written in .NET."""
    return Layer(suite, "dotnet", run_root(suite))


def browser_root(suite: str) -> Layer:
    """A run root with Chromium, and what drives it."""
    return Layer(suite, "browser", run_root(suite))


def databases_root(suite: str) -> Layer:
    """A base root with PostgreSQL, MariaDB and DuckDB."""
    return Layer(suite, "databases", Layer(suite, "base"))


def vm_root(suite: str) -> Layer:
    """A run root with a kernel, which `vm.py` boots."""
    return Layer(suite, "vm", run_root(suite))


def build_root(suite: str) -> Layer:
    """The root in which the package is built: Debian with debhelper and lintian."""
    return Layer(suite, "build", Layer(suite, "base"))


def ensure(layer: Layer) -> Layer:
    """Build what is missing of `layer` and its parents; processes side by side share one build."""
    if layer.parent:
        ensure(layer.parent)
    if layer.path.is_dir():
        Path(f"{layer.path}.log").touch()  # when it was last asked for
        return layer
    with locked(f"{layer.suite}-{layer.kind}"):
        if not layer.path.is_dir():
            _build(layer)
            _forget_older(layer)
    return layer


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other processes that use the cache from making the same, for the time of the block."""
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
                subprocess.run(_mmdebstrap(layer, new), stdout=out, stderr=out, check=True)
            else:
                _build_on_parent(layer, new, out.fileno())
        except subprocess.CalledProcessError as error:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
            raise RuntimeError(f"{layer.name} was not built; {log} ends with:\n{tail}") from error
    new.rename(layer.path)


def _mmdebstrap(layer: Layer, target: Path) -> list[str]:
    packages = layer.recipe.read_text().split("#!packages", 1)[1].split()
    # The second line of the recipe onwards runs inside; mmdebstrap gives the root as $1.
    hook = f'chroot "$1" sh -es < {layer.recipe}'
    return [
        "mmdebstrap", "--variant=apt", f"--include={','.join(packages)}",
        '--aptopt=Acquire::Languages "none"', "--skip=cleanup/apt/lists",
        f"--customize-hook={hook}", layer.suite, str(target), *host_archives(layer.suite),
    ]  # fmt: skip


def host_archives(suite: str) -> list[str]:
    """The Debian archives that this machine's apt uses: their names are nowhere in the project.

    With security updates, where the host has them: an older Squid is not what anyone should run.
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
    with mounted_overlay(layer.parent.lower_dirs(), upper, work) as root:
        run_in_root(root, ["sh", "-es"], script=layer.recipe, inputs=layer.inputs, log_fd=log_fd)
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
        subprocess.run(["umount", str(root)], check=True)


def run_in_root(
    root: Path, argv: list[str], *, script: Path, inputs: list[Path], log_fd: int
) -> None:
    """Run `script` by `argv` inside `root`, with the host's network, resolver and certificates.

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
    enter = [f'mount -t tmpfs tmpfs "{root}/run"', f'mkdir -p "{root}/run/inputs"']
    for source, inside in bind:
        if Path(source).is_file():
            enter.append(f'touch "{root}{inside}"')
        enter.append(f'[ ! -e {source} ] || mount --rbind {source} "{root}{inside}"')
    enter += [f'exec chroot "{root}" "$@"']
    with script.open("rb") as stdin:
        subprocess.run(
            ["unshare", "-m", "--propagation=private", "sh", "-ec", "\n".join(enter), "sh", *argv],
            stdin=stdin, stdout=log_fd, stderr=log_fd, env=env, check=True,
        )  # fmt: skip


def _forget_older(layer: Layer) -> None:
    """Remove layers of the same kind that nobody has asked for of late.

    Not at once: machines of another tree that shares the cache may stand on them.
    """
    for log in CACHE.glob(f"{layer.suite}-{layer.kind}-*.log"):
        if log.stem != layer.name and log.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(CACHE / log.stem, ignore_errors=True)
            (CACHE / f"{log.stem}.ext4").unlink(missing_ok=True)
            log.unlink()

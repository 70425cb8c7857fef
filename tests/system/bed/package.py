"""Builds of the packages, inside a root of Debian. RUNS AS ROOT on the host.

A package is cached under a hash of all its inputs, so an unchanged tree is not built again. Those
of this tree, for each target of packaging/targets.toml, are built in one root, without a network.
That of an earlier commit is built by that commit's own program, and also cached.

`python -m tests.system.bed.package` leaves those for Debian 12 and 13 in dist/
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path

import tomli

from tests.system.bed import roots

TOP = Path(__file__).resolve().parents[3]
DIST = TOP / "dist"
CHANGELOG = TOP / "packaging/debian/changelog"
LICENSE = TOP / "LICENSE"
SOURCES = ("mcpwrap", "units", "nftables", "squid", "packaging", "docs", "examples")
KEPT_S = 24 * 3600
RELEASES = TOP / "packaging/releases.toml"
TARGETS = TOP / "packaging/targets.toml"
WHEELS = TOP / "packaging/wheels.py"
PINS, RPM_PINS = TOP / "packaging/site.txt", TOP / "packaging/rpm/site.txt"
# Packages are built on this release, for the others too.
BUILT_ON, BUILT_ON_PYTHON = "trixie", "3.13"
_TARGET = {"bookworm": "deb12", "trixie": "deb13", roots.TESTING: "deb14"}
# An architecture in the words of Debian, and of the kernel and rpm.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# Of commits before packages were built for other releases than that of the root.
_FORMER_SCRIPT = "packaging/build_inside.sh"
_COMMIT = "commit"  # beside a package of the cache


@dataclass(frozen=True)
class Target:
    """Target of a package: a row of targets.toml, and an architecture of Debian's."""

    name: str
    arch: str

    @property
    def row(self) -> dict[str, str]:
        """The target's row."""
        row: dict[str, str] = tomli.loads(TARGETS.read_text())[self.name]
        return row


def native_arch() -> str:
    """Return this machine's architecture, in Debian's words."""
    (arch,) = (arch for arch, machine in MACHINES.items() if machine == os.uname().machine)
    return arch


def version() -> str:
    """Return the version of the present tree, as packages have it without their target."""
    found = re.match(r"mcpwrap \(([^)]+)\)", CHANGELOG.read_text())
    assert found
    return found[1]


def epoch() -> int:
    """Return the time of the present tree's version, in seconds: SOURCE_DATE_EPOCH of a build."""
    stated = next(line for line in CHANGELOG.read_text().splitlines() if line.startswith(" -- "))
    return int(parsedate_to_datetime(stated.partition(">  ")[2]).timestamp())


def targets(*names: str) -> list[Target]:
    """Return the targets with these names, or all, of both architectures.

    Raises:
        RuntimeError: a name is not in targets.toml.
    """
    known = list(tomli.loads(TARGETS.read_text()))
    if unknown := set(names) - {*known}:
        raise RuntimeError(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [Target(name, arch) for name in names or known for arch in MACHINES]


def build(suite: str) -> Path:
    """Return the .deb of the present tree for `suite`, and this machine's architecture."""
    return build_for(Target(_TARGET[suite], native_arch()))


def build_for(target: Target, *, release: int = 1, is_published: bool = False) -> Path:
    """Return the package of the present tree for a target. An .rpm has a release number too.

    One that is published names the present commit: if the sources were committed since they were
    built, it is built again. The former stays: running machines are based on its folder.
    """
    series = f"package-{target.name}-{target.arch}"
    kept = roots.CACHE / f"{series}-{release}-{_tree_hash()}"
    if is_published:
        commit = commit_of_tree()
        if kept.is_dir() and (kept / _COMMIT).read_text() != commit:
            kept = kept.with_name(f"{kept.name}-{commit}")
    return _kept(kept, series, partial(build_anew, target, release=release))


def build_release(version: str, suite: str) -> Path:
    """Return the .deb of an earlier release for `suite`.

    Raises:
        RuntimeError: it cannot be built; a shallow clone has no such commit.
    """
    commit = str(tomli.loads(RELEASES.read_text())[version]["commit"])
    return build_commit(commit, suite, f"release-{version}-{suite}")


def build_commit(commit: str, suite: str, series: str = "") -> Path:
    """Return the .deb of a commit for `suite`, built the first time.

    Raises:
        RuntimeError: as above.
    """
    commit = _git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
    inputs = f"{commit} {roots.build_root(suite).name}"
    digest = hashlib.sha256(inputs.encode()).hexdigest()[:12]
    series = series or f"commit-{suite}"
    put_source = partial(_extract, commit)
    if _git("ls-tree", "--name-only", commit, _FORMER_SCRIPT):
        build = partial(_build_formerly, suite, put_source)
    else:
        build = partial(_build, Target(_TARGET[suite], native_arch()), put_source, commit[:8])
    return _kept(roots.CACHE / f"{series}-{digest}", series, build)


def _kept(kept: Path, series: str, build: Callable[[], Path]) -> Path:
    """Return the package in a folder of the cache; build it if it is missing."""
    with roots.locked(series):
        if not kept.is_dir():
            new = build()
            for old in roots.CACHE.glob(f"{series}-*"):
                # A running machine may be based on one that was used since.
                if old.stat().st_mtime < time.time() - KEPT_S:
                    shutil.rmtree(old)
            new.rename(kept)
        os.utime(kept)  # the time of its last use
    (package,) = (path for path in kept.iterdir() if path.suffix in {".deb", ".rpm"})
    return package


def _tree_hash() -> str:
    digest = hashlib.sha256(roots.build_root(BUILT_ON).name.encode())
    for path in _source_files():
        digest.update(f"{path.relative_to(TOP)}\0{path.stat().st_mode:o}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _source_files() -> list[Path]:
    found = (path for folder in SOURCES for path in (TOP / folder).rglob("*"))
    files = (p for p in found if p.is_file() and "__pycache__" not in p.parts)
    return sorted([LICENSE, *files])


def _copy_tree(target: Path) -> None:
    for path in _source_files():
        copy = target / path.relative_to(TOP)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def _extract(commit: str, target: Path) -> None:
    """Write the files of `git archive` for a commit into a folder."""
    target.mkdir(parents=True)
    archive = _git("archive", commit, *SOURCES)
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)


def commit_of_tree() -> str:
    """Return the commit that has the present sources, for `mcpwrap --version`.

    It ends in `-modified` if some of them are not committed. Not the newest commit: the package of
    an unchanged tree is kept.
    """
    try:
        commit = _git("log", "-1", "--abbrev=8", "--format=%h", "--", *SOURCES).decode().strip()
        is_clean = not _git("status", "--porcelain", "--", *SOURCES)
    except RuntimeError:  # a tree without a repository
        return "unknown"
    return commit if is_clean else f"{commit}-modified"


def _git(*command: str) -> bytes:
    # The clone may belong to another account than root.
    git = ["git", "-c", f"safe.directory={TOP}", "-C", str(TOP), *command]
    done = subprocess.run(git, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(command)}: {done.stderr.decode()}")
    return done.stdout


def wheels(target: Target) -> Path:
    """Return a folder with the wheels of the libraries in a target's package.

    Raises:
        RuntimeError: one is missing, or is not the pinned file.
    """
    return _fetched(target.row["python"], target.arch, target.row["format"])


def _fetched(python: str, arch: str, package_format: str = "deb") -> Path:
    pins = [PINS, *([RPM_PINS] if package_format == "rpm" else [])]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (WHEELS, *pins)))
    series = f"wheels-{package_format}-{python}-{arch}"
    kept = roots.CACHE / f"{series}-{digest.hexdigest()[:12]}"
    with roots.locked(series):
        if not kept.is_dir():
            new = Path(tempfile.mkdtemp(prefix=f"{series}.", dir=roots.CACHE))
            argv = [sys.executable, str(WHEELS), "fetch", python, arch, str(new), *map(str, pins)]
            done = subprocess.run(argv, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"no wheels for Python {python}, {arch}:\n{done.stderr[-4000:]}")
            new.rename(kept)
    return kept


def build_anew(
    target: Target, *, folder: str = "build", clock: str = "", epoch: str = "", release: int = 1
) -> Path:
    """Build the package of the present tree for a target; return a new folder with it and a log.

    It is built in `folder` of the build root, at the time that `clock` tells (faketime(1)), with
    `epoch` for SOURCE_DATE_EPOCH.
    """
    commit = commit_of_tree()
    built = _build(
        target, _copy_tree, commit, folder=folder, clock=clock, epoch=epoch, release=release
    )
    (built / _COMMIT).write_text(commit)
    return built


def _build(
    target: Target,
    put_source: Callable[[Path], None],
    commit: str,
    *,
    folder: str = "build",
    clock: str = "",
    epoch: str = "",
    release: int = 1,
) -> Path:
    python = target.row["python"]
    found = {"wheels": wheels(target), "native": _fetched(BUILT_ON_PYTHON, native_arch())}

    def fill(build: Path) -> None:
        put_source(build / "mcpwrap")
        for name, folder_of_wheels in found.items():
            shutil.copytree(folder_of_wheels, build / name)

    argv = ["env", f"MCPWRAP_COMMIT={commit}", f"RELEASE={release}"]
    argv += [f"SOURCE_DATE_EPOCH={epoch}"] if epoch else []
    argv += ["faketime", clock] if clock else []
    argv += ["sh", "-es", target.name, python, target.arch, f"/{folder}"]
    argv += [target.row.get("requires", "")]
    script = f"packaging/build_{target.row['format']}.sh"
    what = f"{target.name}, {target.arch}"
    layer = roots.build_root(BUILT_ON)
    return _build_in(layer, what, Source(folder, fill, script), argv, network=False)


def _build_formerly(suite: str, put_source: Callable[[Path], None]) -> Path:
    """Build a commit whose program downloads, and builds for the release that it runs on."""

    def fill(build: Path) -> None:
        put_source(build / "mcpwrap")

    source = Source("build", fill, _FORMER_SCRIPT)
    return _build_in(roots.build_root(suite), suite, source, ["sh", "-es", _TARGET[suite]])


@dataclass(frozen=True)
class Source:
    """Source of a build: folder of the root, what fills it, and the script in `mcpwrap/` there."""

    folder: str
    fill: Callable[[Path], None]
    script: str


def _build_in(
    layer: roots.Layer, what: str, source: Source, argv: list[str], *, network: bool = True
) -> Path:
    """Build in an overlay that is discarded; return a folder with the package and a log."""
    roots.ensure(layer)
    out = Path(tempfile.mkdtemp(prefix="package.", dir=roots.CACHE))
    with tempfile.TemporaryDirectory(dir=roots.CACHE, prefix="build-") as scratch:
        upper, work = Path(scratch, "upper"), Path(scratch, "work")
        upper.mkdir()
        work.mkdir()
        with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
            build = root / source.folder
            build.mkdir(parents=True)
            source.fill(build)
            with (out / "build.log").open("wb") as log:
                try:
                    roots.run_in_root(
                        root, argv, script=build / "mcpwrap" / source.script, inputs=[],
                        log_fd=log.fileno(), network=network,
                    )  # fmt: skip
                except subprocess.CalledProcessError as error:
                    tail = (out / "build.log").read_text(errors="replace")[-4000:]
                    raise RuntimeError(f"no package for {what}:\n{tail}") from error
            for pattern in ("*.deb", "*.rpm", "*lint*.txt"):
                for path in build.glob(pattern):
                    shutil.copy2(path, out)
    return out


def main() -> None:
    """Build for this machine's architecture, and put the packages into dist/."""
    roots.need_root("make deb")
    DIST.mkdir(exist_ok=True)
    for suite in roots.SUITES:
        print(f"{suite}: building, unless the tree is unchanged …", flush=True)
        deb = build(suite)
        shutil.copy2(deb, DIST)
        print(f"dist/{deb.name}")


if __name__ == "__main__":
    main()

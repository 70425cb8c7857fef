"""Build of the .deb for one Debian release, inside a root of it. RUNS AS ROOT on the host.

`python -m tests.system.bed.package [SUITE…]` leaves dist/mcpwrap_VERSION+debNN_ARCH.deb. A package
is cached under a hash of all its inputs, so an unchanged tree is not built again. So is that of an
earlier release, which is built from its commit.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tomli

from tests.system.bed import roots

TOP = Path(__file__).resolve().parents[3]
DIST = TOP / "dist"
SOURCES = ("mcpwrap", "units", "nftables", "squid", "packaging", "docs", "examples")
KEPT_S = 24 * 3600
RELEASE = {"bookworm": "deb12", "trixie": "deb13"}
SCRIPT = "packaging/build_inside.sh"
RELEASES = TOP / "packaging/releases.toml"


def build(suite: str) -> Path:
    """Return the .deb of the present tree, for `suite`."""
    kept = roots.CACHE / f"deb-{suite}-{_tree_hash(suite)}"
    return _kept(kept, f"deb-{suite}", partial(_build, suite, _copy_tree))


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
    build = partial(_build, suite, partial(_extract, commit))
    return _kept(roots.CACHE / f"{series}-{digest}", series, build)


def _kept(kept: Path, series: str, build: Callable[[], Path]) -> Path:
    """Return the .deb in a folder of the cache; build it if it is missing."""
    with roots.locked(series):
        if not kept.is_dir():
            new = build()
            for old in roots.CACHE.glob(f"{series}-*"):
                # A running machine may be based on a newer one.
                if old.stat().st_mtime < time.time() - KEPT_S:
                    shutil.rmtree(old)
            new.rename(kept)
    (deb,) = kept.glob("*.deb")
    return deb


def _tree_hash(suite: str) -> str:
    digest = hashlib.sha256(roots.build_root(suite).name.encode())
    for path in _source_files():
        digest.update(f"{path.relative_to(TOP)}\0{path.stat().st_mode:o}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _source_files() -> list[Path]:
    found = (path for folder in SOURCES for path in (TOP / folder).rglob("*"))
    return sorted(p for p in found if p.is_file() and "__pycache__" not in p.parts)


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


def _git(*command: str) -> bytes:
    # The clone may belong to another account than root.
    git = ["git", "-c", f"safe.directory={TOP}", "-C", str(TOP), *command]
    done = subprocess.run(git, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(command)}: {done.stderr.decode()}")
    return done.stdout


def _build(suite: str, put_source: Callable[[Path], None]) -> Path:
    """Build in an overlay that is discarded; return a folder with the package and a log."""
    layer = roots.ensure(roots.build_root(suite))
    out = Path(tempfile.mkdtemp(prefix=f"deb-{suite}.", dir=roots.CACHE))
    with tempfile.TemporaryDirectory(dir=roots.CACHE, prefix="build-") as scratch:
        upper, work = Path(scratch, "upper"), Path(scratch, "work")
        upper.mkdir()
        work.mkdir()
        with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
            source = root / "build/mcpwrap"
            put_source(source)
            with (out / "build.log").open("wb") as log:
                argv, script = ["sh", "-es", RELEASE[suite]], source / SCRIPT
                try:
                    roots.run_in_root(root, argv, script=script, inputs=[], log_fd=log.fileno())
                except subprocess.CalledProcessError as error:
                    tail = (out / "build.log").read_text(errors="replace")[-4000:]
                    raise RuntimeError(f"no .deb for {suite}:\n{tail}") from error
            for path in (root / "build").glob("*.deb"):
                shutil.copy2(path, out)
            shutil.copy2(root / "build/lintian.txt", out)
    return out


def main(suites: list[str]) -> None:
    """Build for each suite and put the packages into dist/."""
    roots.need_root("make deb")
    DIST.mkdir(exist_ok=True)
    for suite in suites or roots.SUITES:
        print(f"{suite}: building, unless the tree is unchanged …", flush=True)
        deb = build(suite)
        shutil.copy2(deb, DIST)
        print(f"dist/{deb.name}")


if __name__ == "__main__":
    main(sys.argv[1:])

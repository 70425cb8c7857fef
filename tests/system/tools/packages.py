"""Build of all packages of a release, in dist/packages. RUNS AS ROOT on the host: `make packages`.

Beside each package is its bill of materials; SHA256SUMS has the digest of each file. `--key` names
a key of the caller's gpg(1), with which SHA256SUMS is signed.
"""

import argparse
import getpass
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.system.bed import package, roots
from tests.system.tools.sbom import sbom

SUMS = "SHA256SUMS"


def main(argv: list[str]) -> int:
    """Exit status: 0 the packages are in place; 1 one could not be built, or not signed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key", help="key of gpg that signs SHA256SUMS")
    parser.add_argument("--dist", type=Path, default=package.DIST / "packages")
    parser.add_argument("target", nargs="*", help="as in packaging/targets.toml; default: all")
    options = parser.parse_args(argv)
    roots.need_root("make packages")
    try:
        wanted = package.targets(*options.target)
        if options.key:
            expect_signable(options.key)
        write(options.dist, wanted, options.key)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def write(dist: Path, targets: Sequence[package.Target], key: str | None) -> None:
    """Replace a folder by one with the packages for some targets.

    Raises:
        RuntimeError: a package could not be built.
        subprocess.CalledProcessError: gpg has not signed.
    """
    new = dist.with_name(f"{dist.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for target in targets:
        print(f"{target.name}, {target.arch}: building, unless the tree is unchanged …", flush=True)
        built = package.build_for(target, is_published=True)
        shutil.copy2(built, new)
        bill = sbom(built, package.version(), package.wheels(target), package.epoch())
        (new / f"{built.name}.cdx.json").write_text(bill)
        print(f"{built.stat().st_size / 1e6:6.1f} MB  {built.name}", flush=True)
    files = sorted(new.iterdir())
    sums = "".join(f"{_sha256(file)}  {file.name}\n" for file in files)
    (new / SUMS).write_text(sums)
    if key:
        sign(new / SUMS, key)
    shutil.rmtree(dist, ignore_errors=True)
    new.rename(dist)


def expect_signable(key: str) -> None:
    """Check, before anything is built, that it can be signed.

    Raises:
        RuntimeError: gpg is missing, or has no such key; or sources are not committed, so that no
            commit would give the same package.
    """
    if package.commit_of_tree().endswith("-modified"):
        raise RuntimeError("sources have changes that are not committed: see `git status`")
    try:
        done = subprocess.run(["gpg", "--batch", "--list-secret-keys", key], capture_output=True)
    except FileNotFoundError as error:
        raise RuntimeError("gpg is missing: apt-get install gnupg") from error
    if done.returncode:
        raise RuntimeError(
            f"gpg of {getpass.getuser()} has no secret key {key}: gpg --list-secret-keys"
        )


def sign(file: Path, key: str) -> None:
    """Write FILE.asc, a detached signature by a key of the caller's gpg."""
    subprocess.run(
        ["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", str(file)],
        check=True,
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Repository of the packages for apt and dnf, as plain files. RUNS AS ROOT: `make repository`.

`dist/repository` has `apt/` and `dnf/`, which any web server can serve, the public key, and the
files that a machine needs in /etc/apt/sources.list.d or /etc/yum.repos.d. A key of the caller's
gpg(1) signs the lists; apt and dnf check each package by the digests in them.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.system.bed import package, roots
from tests.system.tools import packages

SCRIPT = Path(__file__).with_name("repository.sh")
SUITES = {"deb12": "bookworm", "deb13": "trixie", "deb14": "forky", "ubuntu24.04": "noble"}
KEY_FILE = "mcpwrap.asc"
APT_SOURCE = """\
Types: deb
URIs: {url}/apt
Suites: {suite}
Components: main
Signed-By: /etc/apt/keyrings/mcpwrap.asc
"""
DNF_SOURCE = """\
[mcpwrap]
name=mcpwrap
baseurl={url}/dnf/{target}/$basearch
gpgkey={url}/mcpwrap.asc
repo_gpgcheck=1
gpgcheck=0
"""


def main(argv: list[str]) -> int:
    """Exit status: 0 the repository is written; 1 a package was not built, or a list not signed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key", required=True, help="key of gpg that signs the lists")
    parser.add_argument("--url", required=True, help="address at which it will be served")
    parser.add_argument("--to", type=Path, default=package.DIST / "repository")
    parser.add_argument("target", nargs="*", help="as in packaging/targets.toml; default: all")
    options = parser.parse_args(argv)
    if not (options.key and options.url):
        parser.error("give KEY=ID, a key of gpg, and URL=https://…, where it will be served")
    roots.need_root("make repository")
    try:
        wanted = package.targets(*options.target)
        packages.expect_signable(options.key)
        write(options.to, wanted, options.key, options.url.rstrip("/"))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.to}: {len(wanted)} packages")
    return 0


def write(to: Path, targets: list[package.Target], key: str, url: str) -> None:
    """Replace a folder by a repository with the packages for some targets.

    Raises:
        RuntimeError: a package could not be built.
        subprocess.CalledProcessError: a list could not be made, or gpg has not signed it.
    """
    new = to.with_name(f"{to.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    for target in targets:
        folder = new / _folder(target)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy2(package.build_for(target, is_published=True), folder)
    _index(new)
    for release in new.glob("apt/dists/*/Release"):
        _gpg(
            "--local-user", key, "--clear-sign", "--output", f"{release.parent}/InRelease", release
        )
    for index in new.glob("dnf/*/*/repodata/repomd.xml"):
        packages.sign(index, key)
    _gpg("--armor", "--output", new / KEY_FILE, "--export", key)
    for target in targets:
        suite = SUITES.get(target.name)
        text = (APT_SOURCE if suite else DNF_SOURCE).format(
            url=url, suite=suite, target=target.name
        )
        (new / f"{target.name}.{'sources' if suite else 'repo'}").write_text(text)
    shutil.rmtree(to, ignore_errors=True)
    new.rename(to)


def _folder(target: package.Target) -> str:
    suite = SUITES.get(target.name)
    return f"apt/pool/{suite}" if suite else f"dnf/{target.name}/{package.MACHINES[target.arch]}"


def _index(folder: Path) -> None:
    """Write the lists of packages, by the tools of apt and of dnf in a root of Debian."""
    layer = roots.ensure(roots.repository_root(package.BUILT_ON))
    with tempfile.TemporaryDirectory(dir=roots.CACHE, prefix="build-") as scratch:
        upper, work = Path(scratch, "upper"), Path(scratch, "work")
        upper.mkdir()
        work.mkdir()
        with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
            inside = root / "srv/repository"
            shutil.copytree(folder, inside)
            log = Path(scratch, "log")
            argv = ["sh", "-es", str(package.epoch())]
            with log.open("wb") as out:
                roots.run_in_root(
                    root, argv, script=SCRIPT, inputs=[], log_fd=out.fileno(), network=False
                )
            shutil.copytree(inside, folder, dirs_exist_ok=True)


def _gpg(*argv: object) -> None:
    subprocess.run(["gpg", "--batch", "--yes", *map(str, argv)], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

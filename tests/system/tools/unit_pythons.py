"""`make unit-pythons`: run the unit tests on the Python of other Debians. RUNS AS ROOT on the host.

The environment is made as for `.venv`, in a base root that is discarded, and the tests run there
without a network. `make unit` is on the Python of this host. Exit status: 0 all passed; else 1.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.bed import roots

TOP = Path(__file__).resolve().parents[3]
REQUIREMENTS = TOP / "tests/requirements.txt"
# The suite that has each Python but this host's.
SUITES = {"3.13": "trixie", "3.14": roots.TESTING}
TREE = "/srv/mcpwrap"
# Tools, and what they make in the folder.
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
INSTALL = f"""\
ln -sf /run/resolv.conf /etc/resolv.conf
python3 -m venv /opt/unit
/opt/unit/bin/pip install -q -r $INPUTS/{REQUIREMENTS.name} --editable {TREE}
rm /etc/resolv.conf
"""
TESTS = ("/opt/unit/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider")


@contextmanager
def prepared(suite: str) -> Iterator[Path]:
    """Make a root of this suite with the tree, and what its tests need, for the block's time."""
    layer = roots.ensure(roots.Layer(suite, "base"))
    with tempfile.TemporaryDirectory(dir=roots.CACHE, prefix="unit-") as scratch:
        upper, work, script = (Path(scratch, name) for name in ("upper", "work", "install"))
        upper.mkdir()
        work.mkdir()
        script.write_text(INSTALL)
        inputs = [REQUIREMENTS, roots.PIP_CONSTRAINTS]
        with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
            shutil.copytree(TOP, root / TREE[1:], ignore=LEFT_OUT, symlinks=True)
            roots.run_in_root(root, ["sh", "-es"], script=script, inputs=inputs, log_fd=2)
            yield root


def passes(root: Path, version: str, arguments: list[str]) -> bool:
    """Run the tests in a root, and return whether each passed."""
    nspawn = [
        "systemd-nspawn", "--quiet", f"--directory={root}", f"--machine=mcpwrap-unit-{version}",
        "--register=no", "--keep-unit", "--as-pid2", "--private-network", "--console=pipe",
        "--resolv-conf=off", "--tmpfs=/run/lock:mode=1777", f"--chdir={TREE}",
        # As in the bed's machines: nspawn's own filter would mask what our filters refuse.
        "--system-call-filter=@known", "--setenv=LANG=C.UTF-8",
    ]  # fmt: skip
    return subprocess.run([*nspawn, "--", *TESTS, *arguments]).returncode == 0


def main(arguments: list[str]) -> int:
    """Run them on each Python that is named before pytest's own arguments, or on all."""
    roots.need_root("make unit-pythons")
    versions = [word for word in arguments if word in SUITES]
    failed = []
    for version in versions or SUITES:
        print(f"Python {version}, of {SUITES[version]}:", flush=True)
        with prepared(SUITES[version]) as root:
            if not passes(root, version, [word for word in arguments if word not in SUITES]):
                failed.append(version)
    print(f"failed on {', '.join(failed)}" if failed else "passed on each")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

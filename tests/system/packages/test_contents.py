"""Content of the packages for other releases and architectures, which no machine here boots."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.bed import package
from tests.system.bed.machine import Machine
from tests.system.packages import built
from tests.system.support.tiers import on_release, only_in_test_all

# Ubuntu 24.04, as released: version of each package that ours names, without Ubuntu's own revision.
UBUNTU = {
    "ca-certificates": "20240203",
    "init-system-helpers": "1.66",
    "iproute2": "6.1.0",
    "libc6": "2.39",
    "libgcc-s1": "14",
    "libseccomp2": "2.5.5",
    "libstdc++6": "14",
    "nftables": "1.0.9",
    "openssl": "3.0.13",
    "passwd": "1:4.13",
    "procps": "2:4.0.4",
    "python3": "3.12.3",
    "python3-nacl": "1.5.0",
    "python3-prctl": "1.8.1",
    "python3-sdnotify": "0.3.1",
    "squid-openssl": "6.6",
    "systemd": "255.4",
}
OPERATORS = {">=": "ge", "<<": "lt"}
DEPENDENCY = re.compile(r"(?P<name>[a-z0-9+.-]+)(?::any)?(?: \((?P<op>\S+) (?P<version>\S+)\))?")
TARGETS = [each for each in package.targets() if each.row["format"] == "deb"]
WHY = "a package that `make test` does not build"


def marks(target: package.Target) -> list[pytest.MarkDecorator]:
    """Return the marks of a row: `make test` has built the package for Debian 12."""
    is_built = (target.name, target.arch) == ("deb12", package.native_arch())
    return [] if is_built else [only_in_test_all(WHY)]


@pytest.mark.parametrize(
    "target",
    [pytest.param(each, id=f"{each.name}-{each.arch}", marks=marks(each)) for each in TARGETS],
)
def test_a_package_has_the_files_of_all_for_its_python_and_architecture(
    target: package.Target,
) -> None:
    deb = package.build_for(target)
    files = built.deb_files(deb)
    compiled = {path: content for path, content in files.items() if path.endswith(".so")}
    assert len(compiled) > 10
    assert {built.elf_arch(content) for content in compiled.values()} == {target.arch}
    python = target.row["python"].replace(".", "")
    assert {f".cpython-{python}-" in path for path in compiled} == {True}
    assert built.deb_field(deb, "Architecture") == target.arch
    assert built.deb_field(deb, "Version") == f"{package.version()}+{target.name}"
    # All else is the same file in each.
    native = built.deb_files(package.build("trixie"))
    assert plain(files).keys() ^ plain(native).keys() == ALONE.get(target.name, set())
    differing = {path for path in plain(native) if plain(files)[path] != plain(native)[path]}
    assert not [path for path in differing if not MADE_ANEW.search(path)], differing


# What one release has alone.
ALONE = {"ubuntu24.04": {"etc/apparmor.d/mcpwrap-run", "etc/apparmor.d/mcpwrap-wrapper"}}
# What names the version, the package, its Python, or the files of a wheel.
MADE_ANEW = re.compile(
    r"\.dist-info/|/doc/mcpwrap/|/man/|/build\.json$|^usr/bin/mcpwrap$|^usr/libexec/mcpwrap/"
)


def plain(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files that are not compiled."""
    return {path: content for path, content in files.items() if not path.endswith(".so")}


@only_in_test_all(WHY)
@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_ubuntu_has_what_its_package_needs(arch: str) -> None:
    deb = package.build_for(package.Target("ubuntu24.04", arch))
    assert unmet(deb) == []
    # The twin: that of Debian 13 needs a newer Python.
    assert unmet(package.build("trixie")) == [("python3", ">=", "3.13~")]


def unmet(deb: Path) -> list[tuple[str, str, str]]:
    """Return what a package depends on, or recommends, and Ubuntu does not have."""
    stated = [
        *built.deb_field(deb, "Depends").split(","),
        *built.deb_field(deb, "Recommends").split(","),
    ]
    found = [DEPENDENCY.fullmatch(each.strip()) for each in stated]
    named = [(each["name"], each["op"] or "", each["version"] or "") for each in found if each]
    assert len(named) == len(stated)
    return [each for each in named if not is_met(*each)]


def is_met(name: str, operator: str, version: str) -> bool:
    """Return whether Ubuntu's version of a package is as a dependency says."""
    if not operator:
        return name in UBUNTU
    argv = ["dpkg", "--compare-versions", UBUNTU[name], OPERATORS[operator], version]
    return subprocess.run(argv).returncode == 0


@only_in_test_all(WHY)
@on_release("trixie")
def test_dpkg_installs_the_package_for_ubuntu(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    deb = package.build_for(package.Target("ubuntu24.04", package.native_arch()))
    shutil.copy2(deb, machine.path("/root/ubuntu.deb"))
    # Debian 13 has Python 3.13, so dpkg refuses it unless it is told not to look.
    assert "python3 (<< 3.13~)" in machine.as_root("dpkg -i /root/ubuntu.deb", status=1).err
    machine.announce("mcpwrap")
    machine.as_root("dpkg --force-depends -i /root/ubuntu.deb")
    assert "is built for Python 3.12" in machine.as_root("mcpwrap status", status=78).err
    assert machine.look("systemctl is-active mcpwrap-nft.service") == "active\n"
    assert machine.look("getent passwd mcpwrap-gate") != ""
    machine.as_root("dpkg --purge mcpwrap")
    assert machine.look("getent passwd mcpwrap-gate || true") == ""

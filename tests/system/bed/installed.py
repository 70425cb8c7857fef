"""Roots with the package installed by apt, made once for each package, as a layer."""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.system.bed import package, roots
from tests.system.bed.machine import GUEST_AT, Machine
from tests.system.bed.nspawn import Container, Profile, has_limits

FEDORA = package.Target("fc43", package.native_arch())
MACHINES = roots.CACHE / "machines"


def bare_machine(suite: str, profile: Profile = Profile.LIMITS) -> Machine:
    """Boot a Debian without mcpwrap, with the package file in /root."""
    lower = roots.ensure(roots.run_root(suite)).lower_dirs()
    machine = _boot(suite, lower, profile)
    shutil.copy2(package.build(suite), machine.path("/root/mcpwrap.deb"))
    return machine


def booted(suite: str, profile: Profile = Profile.LIMITS, *, taken: Sequence[str] = ()) -> Machine:
    """Boot a Debian on which apt has installed the package; `taken` is as in `Container`."""
    lower = roots.ensure(roots.run_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], profile, taken)


def conformance_machine(suite: str) -> Machine:
    """Boot the same with the official conformance suite."""
    lower = roots.ensure(roots.conformance_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], Profile.LIMITS)


def polkit_machine(suite: str) -> Machine:
    """Boot the same with polkit."""
    lower = roots.ensure(roots.polkit_root(suite)).lower_dirs()
    machine = _boot(suite, [layer(suite), *lower], Profile.LIMITS)
    machine.as_root("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/polkit/*.deb")
    return machine


def shells_machine(suite: str) -> Machine:
    """Boot the same with zsh, fish, bash-completion and sudo."""
    lower = roots.ensure(roots.shells_root(suite)).lower_dirs()
    machine = _boot(suite, [layer(suite), *lower], Profile.LIMITS)
    machine.as_root("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/shells/*.deb")
    return machine


def add_haproxy(machine: Machine) -> None:
    """Install HAProxy, as apt does, in a machine that has no way to Debian."""
    _install_all(machine, roots.ensure(roots.haproxy_root(machine.suite)).path / "opt/haproxy")


def add_neighbour(machine: Machine, name: str) -> None:
    """Install a firewall, or another program with packet rules: a folder of `recipes/beside.sh`."""
    root = roots.ensure(roots.beside_root(machine.suite))
    _install_all(machine, root.path / "opt/beside" / name)


def _install_all(machine: Machine, folder: Path) -> None:
    names = []
    for package_file in sorted(folder.iterdir()):
        names.append(f"/root/{package_file.name}")
        shutil.copy2(package_file, machine.path(names[-1]))
    files = shlex.join(names)
    machine.as_root(f"DEBIAN_FRONTEND=noninteractive dpkg -i {files}; rm {files}")


def agents_machine(suite: str) -> Machine:
    """Boot the same with agents in common use, the Inspector, and sudo."""
    lower = roots.ensure(roots.agents_root(suite)).lower_dirs()
    return _with_sudo(_boot(suite, [layer(suite), *lower], Profile.LIMITS))


def bare_agents_machine(suite: str) -> Machine:
    """Boot a Debian with the same agents and sudo, without mcpwrap."""
    lower = roots.ensure(roots.agents_root(suite)).lower_dirs()
    return _with_sudo(_boot(suite, lower, Profile.LIMITS))


def _with_sudo(machine: Machine) -> Machine:
    machine.as_root("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/agents/deb/*.deb")
    return machine


def browser_machine(suite: str) -> Machine:
    """Boot the same with a browser."""
    lower = roots.ensure(roots.browser_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], Profile.LIMITS)


def dotnet_machine(suite: str) -> Machine:
    """Boot the same with a server written in .NET."""
    lower = roots.ensure(roots.dotnet_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], Profile.LIMITS)


def science_machine(suite: str) -> Machine:
    """Boot the same with numpy, pandas and matplotlib."""
    lower = roots.ensure(roots.science_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], Profile.LIMITS)


def project_servers_machine(suite: str) -> Machine:
    """Boot the same with servers of development tools."""
    lower = roots.ensure(roots.project_servers_root(suite)).lower_dirs()
    return _boot(suite, [layer(suite), *lower], Profile.LIMITS)


def readers_machine(suite: str) -> Machine:
    """Boot a Debian without mcpwrap, with JSON parsers of several languages."""
    lower = roots.ensure(roots.readers_root(suite)).lower_dirs()
    return _boot(suite, lower, Profile.LIMITS)


def databases_machine(suite: str) -> Machine:
    """Boot a Debian with databases, without mcpwrap."""
    lower = roots.ensure(roots.databases_root(suite)).lower_dirs()
    return _boot(suite, lower, Profile.LIMITS)


def trial_machine(suite: str, profile: Profile = Profile.LIMITS) -> Machine:
    """Boot a Debian without mcpwrap, on which an ordinary user can `pip install` it."""
    return _boot(suite, roots.ensure(roots.trial_root(suite)).lower_dirs(), profile)


def rpm_machine() -> Machine:
    """Boot Debian testing with rpm, and the .rpm for Fedora with two release numbers in /root.

    Its Python is that of this Fedora. rpm has installed a package with the names that it requires.
    """
    lower = roots.ensure(roots.rpm_root(roots.TESTING)).lower_dirs()
    machine = _boot(roots.TESTING, lower, Profile.BPF)
    for release in (1, 2):
        built = package.build_for(FEDORA, release=release)
        shutil.copy2(built, machine.path(f"/root/mcpwrap-{release}.rpm"))
    machine.as_root("rpm -i /opt/rpm/distribution.rpm")
    return machine


def _boot(suite: str, lower: list[Path], profile: Profile, taken: Sequence[str] = ()) -> Machine:
    MACHINES.mkdir(parents=True, exist_ok=True)
    container = Container(lower, MACHINES, profile if has_limits(suite) else Profile.BPF, taken)
    try:
        return Machine(suite, container)
    except BaseException:
        container.remove()
        raise


def layer(suite: str) -> Path:
    """Install in a running machine, shut it down, and keep the changes of its disk."""
    deb = package.build(suite)
    kept = deb.parent / f"installed-on-{roots.run_root(suite).name}"
    with roots.locked(f"{suite}-installed"):
        if not kept.is_dir():
            _install(suite, kept)
    return kept


def _install(suite: str, kept: Path) -> None:
    new = kept.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with bare_machine(suite) as machine:
        machine.as_root("apt-get install -y /root/mcpwrap.deb")
        # The files of `guest/` come with each boot.
        machine.as_root(f"rm -r /root/mcpwrap.deb /var/cache/apt/*.bin {GUEST_AT}")
        # Else each machine, a day after the build, runs all missed timers in its first hour.
        machine.as_root("rm -f /var/lib/systemd/timers/stamp-mcpwrap-*")
        machine.as_root(": > /etc/machine-id")
        subprocess.run(["cp", "-a", str(machine.shut_down()), str(new)], check=True)
        new.rename(kept)

"""Mechanisms that `apply` needs: where one is missing, it is named, and nothing is changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.support import emptied
from tests.system.support.servers import a_server
from tests.system.support.tiers import only_in_test_all

STAGE = emptied.booted

FOLDER = "/home/alice/project"
CONFIG = a_server("a", f'agents = ["alice"]\nworkspace = ["{FOLDER}:rw"]')
PROBES = "machine/prerequisites/probes"
TABLE = "machine/prerequisites/mechanisms"
NFT = "/usr/sbin/nft"
RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
DROP_IN = "/run/systemd/system/mcpwrap-trial.service.d/99-taken.conf"
UNIT = "systemd-run --quiet --wait --pipe --collect"


@dataclass(frozen=True)
class Taken:
    """Mechanism that a machine has not, or not for one command; and what is said of it."""

    named: str
    settings: str = ""  # of the unit in which `apply` runs
    before: str = ""  # words before `mcpwrap`
    take: str = ":"  # a command, and the one that undoes it
    back: str = ":"
    lines: tuple[str, ...] = ()  # of a drop-in of the trial unit


NO_CALL = "-p SystemCallFilter=~{} -p SystemCallErrorNumber=ENOSYS"
TAKEN = {
    "Landlock": Taken(
        named="Landlock: the kernel does not offer it; nothing was changed [E-MACHINE-LANDLOCK]",
        settings=NO_CALL.format("landlock_create_ruleset"),
    ),
    "seccomp": Taken(  # as on a processor whose system calls mcpwrap does not know
        named="seccomp: mcpwrap has no seccomp filter for i686; nothing was changed "
        "[E-MACHINE-SECCOMP]",
        before="setarch i686",
    ),
    "nftables": Taken(
        named=f"packet rules (nftables): {NFT} does not exist; nothing was changed "
        "[E-MACHINE-PACKET-RULES]",
        take=f"mv {NFT} {NFT}.away",
        back=f"mv {NFT}.away {NFT}",
    ),
    "right to change packet rules": Taken(
        named="packet rules (nftables): a table of the family inet, ",
        settings="-p CapabilityBoundingSet=~CAP_NET_ADMIN",
    ),
    "network namespaces": Taken(
        named="packet rules (nftables): a network namespace: unshare: unshare failed: ",
        settings="-p RestrictNamespaces=~net",
    ),
    "ID-mapped mounts": Taken(
        named="ID-mapped mounts, for `workspace`: Function not implemented; nothing was changed "
        "[E-MACHINE-IDMAP]",
        settings=NO_CALL.format("mount_setattr"),
    ),
    "user namespaces": Taken(
        named="ID-mapped mounts, for `workspace`: Operation not permitted; nothing was changed "
        "[E-MACHINE-IDMAP]",
        settings="-p RestrictNamespaces=~user",
    ),
    "systemd": Taken(
        named="systemd: it is not the first process (PID 1) here; nothing was changed "
        "[E-MACHINE-SYSTEMD]",
        settings="-p TemporaryFileSystem=/run/systemd",
    ),
    "network namespaces of units": Taken(  # which systemd ignores where a container refuses them
        named="namespaces of units: a unit of systemd gets none of its own for mounts, network or "
        "IPC (mcpwrap-trial.service); nothing was changed [E-MACHINE-NAMESPACES]",
        lines=("PrivateNetwork=no",),
    ),
    "mounts of units": Taken(
        named="namespaces of units: a unit of systemd gets none of its own for mounts "
        "(mcpwrap-trial.service); nothing was changed [E-MACHINE-NAMESPACES]",
        lines=("BindPaths=/nowhere",),
    ),
}
OTHERS = [pytest.param(name, marks=only_in_test_all("relatives of the first")) for name in TAKEN]


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend the machine without a server, with the configuration of one."""
    emptied.empty(machine)
    machine.as_user("alice", f"mkdir -p {FOLDER}")
    machine.configure(CONFIG)
    yield machine
    machine.as_root(f"rmdir {FOLDER}")


@contextmanager
def without(machine: Machine, taken: Taken) -> Iterator[str]:
    """Take a mechanism away for the time of the block; yield the command that starts `apply`."""
    drop_in = "\n".join(["[Service]", *taken.lines])
    if taken.lines:
        machine.write(DROP_IN, f"{drop_in}\n")
    machine.as_root(f"systemctl daemon-reload; {taken.take}")
    try:
        yield f"{UNIT} {taken.settings} {taken.before} mcpwrap"
    finally:
        machine.as_root(f"{taken.back}; rm -f {DROP_IN}; systemctl daemon-reload")


def state(machine: Machine) -> dict[str, object]:
    """Return the files, units and rules of the machine; units of trials are not its own."""
    found = machine.look_by("root_files", "snapshot")
    units = [line for line in found["units"] if "mcpwrap-trial" not in line]
    return {**found, "units": units}


def named(machine: Machine, taken: Taken) -> str:
    """Return what `apply` prints without a mechanism; nothing has changed then."""
    machine.announce("mcpwrap-trial")
    before = state(machine)
    with without(machine, taken) as mcpwrap:
        refused = machine.as_root(f"{mcpwrap} apply", status=2)
    assert refused.out == ""
    assert state(machine) == before
    return refused.err


@pytest.mark.parametrize("name", ["Landlock", *OTHERS[1:]])
def test_without_a_mechanism_apply_names_it_and_changes_nothing(
    machine: Machine, name: str
) -> None:
    said = named(machine, TAKEN[name])
    assert f"mcpwrap: this machine: {TAKEN[name].named}" in said
    assert "; or use `mcpwrap run`, which needs neither root nor systemd" in said
    machine.as_root("mcpwrap plan", status=10)
    assert "done" in machine.apply()
    assert "nothing to do" in machine.apply()


@only_in_test_all("a relative of the story above")
def test_doctor_names_it_too(machine: Machine) -> None:
    machine.apply()
    taken = TAKEN["Landlock"]
    with without(machine, taken) as mcpwrap:
        doctor = machine.as_root(f"{mcpwrap} doctor a", status=1).out
        assert "nothing to do" in machine.as_root(f"{mcpwrap} apply").out  # so nothing is tried
    assert "failed   Landlock: is missing: the kernel does not offer it [E-MACHINE-LAND" in doctor
    for line in ("systemd: works", "packet rules (nftables): works", "namespaces of units: works"):
        assert f"good     {line}" in doctor
    # The probe has no tool to list, so the status is 1 here too.
    assert "good     Landlock: works" in machine.as_root("mcpwrap doctor a", status=1).out


@only_in_test_all("what no kernel of the bed lacks for all of a machine")
@pytest.mark.parametrize(
    ("module", "line", "name"),
    [
        (PROBES, '    return "" if landlock.version() else', "Landlock"),
        (PROBES, "        bpf.this_machine(no_setuid.MACHINES)", "seccomp"),
        (TABLE, "        probe=probes.packet_rules,", "right to change packet rules"),
        (TABLE, "        probe=probes.unit_namespaces,", "network namespaces of units"),
        (TABLE, "        probe=probes.idmapped_mounts,", "ID-mapped mounts"),
    ],
)
def test_without_the_probe_apply_begins(
    machine: Machine, module: str, line: str, name: str
) -> None:
    """So it is the probe that refuses."""
    without_probe = {
        PROBES: '    return "" if True else' if "return" in line else "        pass",
        TABLE: '        probe=lambda: "",',
    }[module]
    machine.announce("mcpwrap")
    with machine.patched(module, line, without_probe), without(machine, TAKEN[name]) as mcpwrap:
        begun = machine._run(
            ["sh", "-c", f"{mcpwrap} apply; true"], user="root", stdin="", status=0
        )
        is_refused_later = "E-WORKSPACE" in begun.err  # by the trial with each workspace
        assert "  1/" in begun.out or is_refused_later, begun
    emptied.empty(machine)


@only_in_test_all("a relative of the first story")
def test_parts_of_the_rules_that_a_kernel_has_are_not_named(machine: Machine) -> None:
    """If each part loads, what nft says of the whole file is quoted."""
    text = machine.read(RULES)
    machine.replace(RULES, text.replace("socket wildcard 1 drop", "socket nowhere 1 drop"))
    try:
        said = machine.as_root("mcpwrap apply", status=2).err
    finally:
        machine.replace(RULES, text)
    assert "packet rules (nftables): /dev/stdin:" in said
    assert "syntax error" in said
    assert "sets of" not in said


@only_in_test_all("a machine of its own")
def test_a_container_that_may_not_nest_is_told_how(suite: str) -> None:
    """PID 1 may make no namespace, as in LXC without `security.nesting`."""
    with installed.booted(suite, taken=["--system-call-filter=~unshare"]) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_user("alice", f"mkdir {FOLDER}")
        machine.configure(CONFIG)
        before = state(machine)
        said = machine.as_root("mcpwrap apply", status=2).err
        assert state(machine) == before
    assert "packet rules (nftables): a network namespace: unshare: unshare failed" in said
    assert "\n  namespaces of units: a unit of systemd gets none of its own for mounts" in said
    assert "[E-MACHINE-NAMESPACES]: let the container use it: `security.nesting=true`" in said
    assert "\n  ID-mapped mounts, for `workspace`: Operation not permitted [E-MACHINE-IDMAP" in said

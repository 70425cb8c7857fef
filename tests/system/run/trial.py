"""Machine on which alice tries servers with `mcpwrap run`, as README.md describes."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.bed import installed, roots
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Done, Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session

TOP = Path(__file__).resolve().parents[3]
RUN = "/home/alice/venv/bin/mcpwrap run"
WHEEL = "./mcpwrap-*-py3-none-any.whl"  # for each Python
PROBE_COMMAND = "python3 /opt/probe.py"
# How to take a layer from a machine, for one command: settings of its unit, or a command before it.
WITHOUT = {
    "": ("", ""),
    "user namespaces": ("-p RestrictNamespaces=yes", ""),
    "Landlock": (
        "-p SystemCallFilter=~landlock_create_ruleset -p SystemCallErrorNumber=ENOSYS",
        "",
    ),
    "seccomp": ("", "setarch i686"),  # numbers of unknown system calls
}


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine on the internet, where alice has a checkout and types README.md's commands."""
    # systemd of testing has no cgroup v1.
    profile = Profile.BPF if suite == roots.TESTING else Profile.LIMITS
    with installed.trial_machine(suite, profile) as machine:
        machine.add_person("alice")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            machine.write(f"/home/alice/checkout/{name}", (TOP / name).read_text())
        code = machine.path("/home/alice/checkout/mcpwrap")
        shutil.copytree(TOP / "mcpwrap", code, ignore=shutil.ignore_patterns("__pycache__"))
        machine.as_root("chown -R alice:alice /home/alice/checkout")
        machine.as_user("alice", "python3 -m venv venv")
        # The two steps of `pip install ./checkout`.
        machine.as_user("alice", "venv/bin/pip wheel -q --no-deps -w . ./checkout")
        machine.as_user("alice", f"venv/bin/pip install -q {WHEEL}")
        make = "mkdir -m 700 .ssh project notes && echo KEY | tee .ssh/id > notes/n"
        machine.as_user("alice", make)
        with Internet(machine) as internet:
            yield Connected(machine, internet)


def unit(command: str, settings: str = "") -> str:
    """Return root's command that runs `command` as alice, in a unit that ends no process of it."""
    where = "--uid=alice --working-directory=/home/alice/project -E HOME=/home/alice"
    how = f"systemd-run --quiet --wait --pipe --collect -p KillMode=process {where} {settings}"
    return f"{how} sh -c {shlex.quote(command)}"


def hold(machine: Machine, options: str = "", *, before: str = "", without: str = "") -> Session:
    """Start the probe as an agent in ~/project does, and hold its session open."""
    settings, first = WITHOUT[without]
    command = unit(f"{before} exec {first} {RUN} {options} -- {PROBE_COMMAND}", settings)
    return machine.session("probe", user="root", command=f"exec {command}")


def run(machine: Machine, command: str, *, status: int = 0, without: str = "") -> Done:
    """Run a command line of `mcpwrap run`, whose agent sends nothing, without a layer."""
    settings, before = WITHOUT[without]
    line = unit(f"exec {before} {RUN} {command}", settings)
    return machine.as_root(f"{line} < /dev/null", status=status)


def relay(machine: Machine) -> int:
    """Return the pid of `mcpwrap run` itself: the oldest of its processes."""
    return int(machine.look("pgrep -o -u alice -f 'mcpwrap run'"))

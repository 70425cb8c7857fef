"""Odd files of agents, each wrapped with nothing lost, or left alone with a reason."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.entries import STUB
from tests.system.home import Seen, seen
from tests.system.odd_files import (
    ODD,
    PLAIN,
    REFUSED,
    SERVERS,
    WINDSURF,
    Refused,
    Wrapped,
)
from tests.system.wrapping import ANSWERS, HOME, UNWRAPS, add_alice

# Beside the tests of this file a layer is made, the first time.
pytestmark = pytest.mark.timeout(600)

MAX_SHOWN_CHARS = 64 * 1024  # of 10 MB no more than where they change


class Done(NamedTuple):
    """What a `wrap` said, and alice's home around it."""

    status: int
    shown: str
    before: dict[str, Seen]
    after: dict[str, Seen]


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Boot a machine on which alice has sudo, and no file of an agent yet."""
    machine = installed.agents_machine("trixie")
    try:
        add_alice(machine)
        machine.write("/opt/probe.py", PROBE)
        yield machine
        assert machine.unannounced() == []
    finally:
        machine.remove()


def put(machine: Machine, file: str, content: bytes) -> None:
    """Have a file written as alice writes it, and give it a mode of its own."""
    machine.as_user("alice", f"mkdir -p {Path(file).parent}; : > {file}; chmod 0640 {file}")
    machine.path(file).write_bytes(content)


def wrap(machine: Machine, which: str, answers: list[tuple[str, str]]) -> Done:
    before = seen(machine)
    status, shown = machine.typed(f"mcpwrap wrap {which}", answers)
    return Done(status, click.unstyle(shown).replace("\r\n", "\n"), before, seen(machine))


@pytest.fixture
def windsurf(machine: Machine) -> Iterator[Machine]:
    """Lend the machine, and leave no file of Windsurf's there."""
    yield machine
    machine.as_root(f"rm -rf {HOME}/.codeium {HOME}/dotfile")


@pytest.fixture(scope="module")
def plain(machine: Machine) -> Done:
    """Have a plain file wrapped, and its server accepted and applied by root."""
    put(machine, PLAIN.file, PLAIN.before)
    return wrap(machine, "cursor", ANSWERS)


@pytest.fixture(scope="module")
def odd(machine: Machine, plain: Done) -> Done:
    """Have all odd files that can be wrapped at once, when the server of the plain one is there."""
    assert plain.status == 0, plain.shown
    for row in ODD:
        put(machine, row.file, row.before)
    return wrap(machine, "--all", ANSWERS)


def about(row: Refused | Wrapped) -> str:
    return row.about


@pytest.mark.parametrize("row", REFUSED, ids=about)
def test_it_is_left_as_it_is_and_the_reason_is_said(windsurf: Machine, row: Refused) -> None:
    put(windsurf, WINDSURF, row.content)
    windsurf.as_root(f"F={WINDSURF}; {row.then}")
    done = wrap(windsurf, "windsurf", [])
    assert (done.status, done.shown) == (1, f"{row.said}\nnothing else to do\n")
    assert done.after == done.before
    assert not windsurf.path(f"{HOME}/.local").exists()
    assert windsurf.as_root("ls /etc/mcpwrap/conf.d || true").out == ""


def holds(machine: Machine, file: str, content: bytes) -> bool:
    """Say whether a file has these bytes; of 10 MB pytest would look for each difference."""
    return machine.path(file).read_bytes() == content


def assert_wrapped_and_back(machine: Machine, row: Wrapped, done: Done) -> None:
    assert done.status == 0, done.shown
    (backup,) = re.findall(
        rf"^{re.escape(row.file)}: {row.said}; as it was: (.*)$", done.shown, re.MULTILINE
    )
    assert holds(machine, row.file, row.after)
    assert holds(machine, backup, row.before)
    assert machine.path(backup).stat().st_mode & 0o777 == 0o600
    assert done.after.keys() == done.before.keys()  # nothing was written beside
    assert done.after[row.file].owned == done.before[row.file].owned

    status, shown = machine.typed(f"mcpwrap unwrap --file {row.file}", UNWRAPS)
    assert status == 0, shown
    assert holds(machine, row.file, row.before)
    now = seen(machine)
    assert now.keys() == done.before.keys()
    assert now[row.file].owned == done.before[row.file].owned
    assert not machine.path(backup).exists()


def test_a_plain_file_is_wrapped_and_comes_back(machine: Machine, plain: Done) -> None:
    with machine.session("probe") as session:
        assert session.evaluate("import os; result = os.getuid()") == machine.uid_of("mcpw-probe")
    assert_wrapped_and_back(machine, PLAIN, plain)


@pytest.mark.parametrize(
    ("which", "mechanism", "instead"),
    [
        ("a link", "os.open(path, os.O_RDONLY | os.O_NOFOLLOW", "os.open(path, os.O_RDONLY"),
        ("read-only", "if not info.st_mode & stat.S_IWUSR:", "if False:"),
    ],
    ids=["a link", "read-only"],
)
def test_what_is_left_alone_would_be_replaced(
    windsurf: Machine, plain: Done, which: str, mechanism: str, instead: str
) -> None:
    """By the same probe, where the look at it is taken away; a server that root has is enough."""
    assert plain.status == 0, plain.shown
    (row,) = (row for row in REFUSED if row.about == which)
    put(windsurf, WINDSURF, row.content)
    windsurf.as_root(f"F={WINDSURF}; {row.then}")
    with windsurf.patched("linux/agent_files", mechanism, instead):
        done = wrap(windsurf, "windsurf", [(r"Do this\?", "y")])
    assert done.status == 0, done.shown
    assert done.after[WINDSURF] != done.before[WINDSURF]
    assert done.after[WINDSURF].owned[0].startswith("-")
    assert STUB in windsurf.read(WINDSURF)


def test_all_that_is_said_of_odd_files_is_short_and_root_has_their_servers(
    machine: Machine, odd: Done
) -> None:
    assert len(odd.shown) < MAX_SHOWN_CHARS
    assert "left as it is" not in odd.shown
    there = machine.as_root("ls /etc/mcpwrap/conf.d").out.split()
    assert {name.removesuffix(".toml") for name in there} == SERVERS
    for name in SERVERS:
        machine.as_root(f"id mcpw-{name}")


@pytest.mark.parametrize("row", ODD, ids=about)
def test_an_odd_file_is_wrapped_and_comes_back(machine: Machine, odd: Done, row: Wrapped) -> None:
    assert_wrapped_and_back(machine, row, odd)

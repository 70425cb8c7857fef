"""Odd files of agents, each wrapped with nothing lost, or left alone with a reason."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from _pytest.mark import ParameterSet

from tests.system.bed.machine import Machine
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines
from tests.system.wrap.file_entries import STUB
from tests.system.wrap.home_snapshot import Seen, seen
from tests.system.wrap.odd_files import (
    ODD,
    PLAIN,
    REFUSED,
    SERVERS,
    WINDSURF,
    Refused,
    Wrapped,
)
from tests.system.wrap.people import ANSWERS, HOME, UNWRAPS

STAGE = machines.with_agents
# Beside the tests of this file a layer is made, the first time.
pytestmark = on_release("trixie")

MAX_SHOWN_CHARS = 64 * 1024  # of 10 MB only the parts that change


# One row for each of README's cases, and odd files that differ in kind; the others repeat these.
FAST = {"broken JSON", "a link", "read-only", "root's", "somebody else's", "a pipe"}
FAST_ODD = {"Windows line ends", "a byte order mark", "names that are no accounts'"}


class Done(NamedTuple):
    """Output of a `wrap`, and alice's home before and after it."""

    status: int
    shown: str
    before: dict[str, Seen]
    after: dict[str, Seen]


@pytest.fixture(scope="module")
def fresh(stage: Machine) -> Machine:
    """Return a machine on which there is no file of an agent of alice's yet."""
    return machines.anew(stage)


@pytest.fixture
def machine(machine: Machine, fresh: Machine) -> Machine:
    """Lend that machine to one story."""
    assert machine is fresh
    return machine


def put(machine: Machine, file: str, content: bytes) -> None:
    """Write a file as alice writes it, with a mode of its own."""
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
def plain(fresh: Machine) -> Done:
    """Wrap a plain file, and have root accept and apply its server."""
    put(fresh, PLAIN.file, PLAIN.before)
    return wrap(fresh, "cursor", ANSWERS)


@pytest.fixture(scope="module")
def odd(fresh: Machine, plain: Done) -> Done:
    """Wrap all odd files that can be wrapped at once, when the server of the plain one is there."""
    assert plain.status == 0, plain.shown
    for row in ODD:
        put(fresh, row.file, row.before)
    return wrap(fresh, "--all", ANSWERS)


def rows(table: Iterable[Refused | Wrapped], fast: set[str]) -> list[ParameterSet]:
    """Return the rows of a table; those that are not in `fast` are for `make test-all`."""
    later = only_in_test_all("one more file, decided by the same look as one that the tier has")
    return [
        pytest.param(row, id=row.about, marks=() if row.about in fast else later) for row in table
    ]


@pytest.mark.parametrize("row", rows(REFUSED, FAST))
def test_it_is_left_as_it_is_and_the_reason_is_said(windsurf: Machine, row: Refused) -> None:
    put(windsurf, WINDSURF, row.content)
    windsurf.as_root(f"F={WINDSURF}; {row.then}")
    conf_d = windsurf.look("ls /etc/mcpwrap/conf.d || true")
    done = wrap(windsurf, "windsurf", [])
    assert (done.status, done.shown) == (1, f"{row.said}\nnothing else to do\n")
    assert done.after == done.before
    assert not windsurf.path(f"{HOME}/.local").exists()
    assert windsurf.look("ls /etc/mcpwrap/conf.d || true") == conf_d


def holds(machine: Machine, file: str, content: bytes) -> bool:
    """Return whether a file has these bytes; of 10 MB pytest would search for each difference."""
    return machine.path(file).read_bytes() == content


def assert_wrapped_and_back(machine: Machine, row: Wrapped, done: Done) -> None:
    assert done.status == 0, done.shown
    (backup,) = re.findall(
        rf"^{re.escape(row.file)}: {row.said}; backup: (.*)$", done.shown, re.MULTILINE
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


@only_in_test_all("mutation twin: shows that the rows of links and of read-only files notice it")
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
    """By the same probe, if the check of it is taken away; a server that root has is enough."""
    assert plain.status == 0, plain.shown
    (row,) = (row for row in REFUSED if row.about == which)
    put(windsurf, WINDSURF, row.content)
    windsurf.as_root(f"F={WINDSURF}; {row.then}")
    with windsurf.patched("machine/agent_files/files", mechanism, instead):
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
    there = machine.look("ls /etc/mcpwrap/conf.d").split()
    assert {name.removesuffix(".toml") for name in there} == SERVERS
    for name in SERVERS:
        machine.uid_of(f"mcpw-{name}")


@pytest.mark.parametrize("row", rows(ODD, FAST_ODD))
def test_an_odd_file_is_wrapped_and_comes_back(machine: Machine, odd: Done, row: Wrapped) -> None:
    assert_wrapped_and_back(machine, row, odd)

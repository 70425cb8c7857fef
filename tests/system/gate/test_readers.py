"""JSON parsers of other languages: each reads a forwarded line as the gate judged it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mcpwrap.core.protocol.strict_json import NotJsonError, TooDeepError, decode
from tests.shared.judged_lines import HOSTILE, ORDINARY, Judge, lines_of
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.support.json_readers import COMMANDS, Found, Meaning, read_by
from tests.system.support.tiers import on_release, only_in_test_all

pytestmark = [
    on_release("trixie"),
    only_in_test_all("parsers of seven languages; `make unit` holds which lines are refused"),
]
LINES = [line for path in HOSTILE for line in lines_of(path)]
Readings = dict[str, list[Found | None]]


@contextmanager
def with_readers(suite: str) -> Iterator[Machine]:
    """Boot a machine with the parsers, and an account that uses them."""
    with installed.readers_machine(suite) as machine:
        machine.add_person("alice")
        yield machine


STAGE = with_readers


def readings(machine: Machine, messages: Sequence[bytes]) -> Readings:
    """Return each reader's result for each message."""
    return {reader: read_by(machine, reader, messages) for reader in COMMANDS}


def judged(message: bytes) -> Meaning | None:
    """Return the gate's interpretation; None for a line that it does not take as a JSON object."""
    try:
        value = decode(message)
    except (NotJsonError, TooDeepError):
        return None
    return Found(value).meaning if isinstance(value, dict) else None


def table(found: Readings, meanings: Sequence[Meaning | None]) -> str:
    """Return how many messages each reader refuses, reads as the gate does, or differently."""
    rows = [f"{'':20} refused  alike  otherwise"]
    for reader, read in found.items():
        pairs = list(zip(read, meanings, strict=True))
        refused = read.count(None)
        alike = sum(one is not None and one.meaning == meaning for one, meaning in pairs)
        rows.append(f"{reader:20} {refused:7} {alike:6} {len(read) - refused - alike:10}")
    return "\n".join(rows)


def test_readers_find_different_messages_in_hostile_lines(machine: Machine) -> None:
    """Shows that the story below would notice a difference."""
    messages = [line.message for line in LINES]
    found = readings(machine, messages)
    print(table(found, list(map(judged, messages))))
    by_message = zip(*found.values(), strict=True)
    several = [len({one.meaning for one in read if one is not None}) > 1 for read in by_message]
    print(f"{several.count(True)} of {len(LINES)} lines have several meanings")
    assert several.count(True) > 100


def test_a_line_that_the_gate_forwards_has_one_meaning(machine: Machine) -> None:
    judge = Judge()
    forwarded = [(line.place, sent) for line in LINES if (sent := judge.forwarded(line.message))]
    messages = [sent for _, sent in forwarded]
    meanings = list(map(judged, messages))
    found = readings(machine, messages)
    print(table(found, meanings))
    differences = [
        f"{place} {reader}: {one.meaning}, not {meaning}"
        for reader, read in found.items()
        for (place, _), one, meaning in zip(forwarded, read, meanings, strict=True)
        if one is not None and (one.meaning != meaning or not judge.allows(one.method, one.params))
    ]
    places = {difference.split()[0] for difference in differences}
    print(f"{len(LINES) - len(forwarded)} refused, {len(forwarded) - len(places)} of one meaning")
    assert differences == []


def test_ordinary_messages_pass_and_each_reader_finds_the_same(machine: Machine) -> None:
    judge = Judge()
    messages = [judge.forwarded(line.message) or b"" for line in lines_of(ORDINARY)]
    meanings = list(map(judged, messages))
    for reader, read in readings(machine, messages).items():
        assert [one and one.meaning for one in read] == meanings, reader

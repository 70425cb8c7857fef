"""Hostile messages by category: each gets the verdict that its file states."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared.judged_lines import HOSTILE, ORDINARY, PASSES, REFUSED, Judge, lines_of
from tests.unit.core.agreement import Node, as_doubles, calls_as_python_reads

NODE = shutil.which("node")


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    assert NODE is not None
    running = Node(NODE)
    yield running
    running.close()


@pytest.mark.parametrize("path", [*HOSTILE, ORDINARY], ids=lambda path: path.stem)
def test_a_message_is_refused_or_passes_as_its_file_says(judge: Judge, path: Path) -> None:
    lines = lines_of(path)
    assert lines
    forwarded = {line.place: judge.forwarded(line.message) for line in lines}
    found = {place: REFUSED if sent is None else PASSES for place, sent in forwarded.items()}
    assert found == {line.place: line.verdict for line in lines}


@pytest.mark.parametrize("path", [*HOSTILE, ORDINARY], ids=lambda path: path.stem)
def test_python_and_node_find_the_same_call(judge: Judge, node: Node, path: Path) -> None:
    for line in lines_of(path):
        sent = judge.forwarded(line.message)
        if sent is not None:
            by_python = list(map(as_doubles, calls_as_python_reads([sent])))
            assert node.calls(sent) == by_python, line.place


def test_the_files_hold_what_they_are_for() -> None:
    """Lines of each category but ordinary ones are refused, and there are enough of both."""
    verdicts = {path.stem: [line.verdict for line in lines_of(path)] for path in HOSTILE}
    assert all(found.count(REFUSED) >= 10 for found in verdicts.values())
    assert sum(map(len, verdicts.values())) > 500
    assert {line.verdict for line in lines_of(ORDINARY)} == {PASSES}
    assert len(lines_of(ORDINARY)) > 50

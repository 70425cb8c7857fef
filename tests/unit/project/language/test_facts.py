"""Facts of prose: those that a text has, and those that are gone after a change."""

import pytest

from tests.project.language import facts
from tests.project.language.facts import Fact
from tests.project.language.prose import Text


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("docstring", "It takes 20 ms, or 1.5\nseconds.", {"20 ms", "1.5 seconds"}),
        ("docstring", "At most 4 096 entries and 64 KiB.", {"4096 entries", "64 KiB"}),
        ("docstring", "One of 3 things.", set[str]()),  # a digit without a unit is no figure
        ("docstring", "RFC 9110 section 10.2.3, ptrace(2).",
         {"RFC 9110 section 10.2.3", "ptrace(2)"}),
        ("docstring", "systemd 252 cannot; Linux 6.12 can.", {"systemd 252", "Linux 6.12"}),
        ("docstring", "See https://example.org/a.html.", {"https://example.org/a.html"}),
        ("docstring", "The option `--suggest`.", set[str]()),
        ("document", "The option `--suggest`, in rst ``--json``.", {"--suggest", "--json"}),
    ],
)  # fmt: skip
def test_facts_of_a_text(kind: str, text: str, expected: set[str]) -> None:
    assert {fact.text for fact in facts.facts(Text("a", 1, kind, text))} == expected


def test_a_fact_stays_moves_or_is_lost() -> None:
    stays, moves, is_lost = (Fact("number", f"{count} ms") for count in (1, 2, 3))
    before = {"a.md": {stays, moves, is_lost}, "gone.md": {stays}}
    after = {"a.md": {stays}, "b.md": {moves}}
    compared = facts.compare(before, after)
    assert compared == facts.Comparison(
        4, moved=[("a.md", moves), ("gone.md", stays)], lost=[("a.md", is_lost)]
    )


@pytest.mark.parametrize(
    ("before", "after", "is_lost"),
    [
        ("a.md", "b.py", True),  # who reads documents does not look there
        ("a.md", "b.rst", False),
        ("a.py", "b.md", False),
        ("a.py", "b.py", False),
    ],
)
def test_a_fact_of_a_document_moves_to_a_document(
    before: str, after: str, *, is_lost: bool
) -> None:
    fact = Fact("number", "1 ms")
    compared = facts.compare({before: {fact}}, {after: {fact}})
    assert bool(compared.lost) is is_lost


def test_code_moves_into_an_example() -> None:
    before = {"a.md": {Fact("code", "mcpwrap plan"), Fact("number", "12 ms")}}
    compared = facts.compare(before, {}, documents="sudo mcpwrap plan # 12 ms")
    assert compared.lost == [("a.md", Fact("number", "12 ms"))]

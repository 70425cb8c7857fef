"""Figures: what is counted, each with a twin that is not."""

import pytest

from tests.project import figures
from tests.project.imports import Imports, Verdict
from tests.unit.project import trees

LONG = '"""Calls."""\n' + "x = 1\n" * 59


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("What is kept of a call.", True),
        ("Which servers wait.", True),
        ("Whom a call reaches.", True),
        ("Who may approve.", True),
        ("Whose turn it is.", True),
        ("How a session ends.", True),
        ("Where files are.", True),
        ("RUNS AS THE AGENT: what an agent starts.", True),
        ("RUNS AS ROOT, ONCE: how the machine changes.", True),
        ("PURE: what an operator may write.", True),
        ("RUNS AS mcpwrap-web: the page of approvals.", False),
        ("Replay buffer of a session: what was sent.", False),
        ("However long it takes.", False),
        ("Whole of a message.", False),
        ("", False),
    ],
)
def test_a_first_line_that_asks(line: str, *, expected: bool) -> None:
    assert figures.is_question(line) is expected


@pytest.mark.parametrize(
    ("text", "pairs", "expected"),
    [
        ('"""Calls."""', [("m.a", "m.b")], ("m.b",)),
        ('"""Calls."""', [("m.a", "m.b"), ("m.c", "m.b")], ()),
        ('"""Calls."""', [("m.a", "m.c")], ()),  # a program: nothing imports it
        (LONG, [("m.a", "m.b")], ()),
    ],
)
def test_a_short_module_with_one_importer_is_a_fragment(
    text: str, pairs: list[tuple[str, str]], expected: tuple[str, ...]
) -> None:
    assert figures.fragments(trees.modules({"m/b.py": text}), pairs) == expected


def test_the_figures_of_a_tree() -> None:
    classes = "\n\nclass Place: ...\n\n\nclass _Own: ...\n"
    texts = {path: text + classes for path, text in trees.TEXTS.items()}
    texts["tests/test_x.py"] = '"""What x is."""' + classes
    pairs = (("mcpwrap.cli.main", "mcpwrap.errors"), ("mcpwrap.errors", "mcpwrap.cli.main"))
    broken = Verdict("core is alone", is_kept=False, problem="no module")
    found = figures.measured(trees.modules(texts), Imports(pairs, (broken,), ()))
    assert (found.modules, found.rooms) == (5, 5)
    assert (found.largest_room, found.largest_room_modules) == ("mcpwrap.core.gate", 1)
    assert found.shared_classes == {"Place": 10}
    assert found.questions == {"tests": 1}
    assert found.cycles == {"mcpwrap": [("cli", "errors")]}
    printed = "\n".join(figures.lines(found))
    for text in ("Place 10", "mcpwrap: cli, errors", "BROKEN  core is alone (no module)"):
        assert text in printed

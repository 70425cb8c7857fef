"""Rules for names and rooms: each with a breach, and with a twin that passes."""

from pathlib import Path

import pytest

from tests.project import map as rooms_map
from tests.project import names
from tests.unit.project import trees

CLASS = '"""Module."""\n\n\nclass Place:\n    """Place of a call."""\n'
FINE = '"""Module."""'
CROWDED = "and 15 are the most; put those of one subject into a folder of their own"


def room(count: int) -> dict[str, str]:
    return {"mcpwrap/core/__init__.py": FINE} | {
        f"mcpwrap/core/m{number}.py": FINE for number in range(count)
    }


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({f"mcpwrap/{name}.py": CLASS for name in "abc"},
         [f"mcpwrap/{name}.py:4: 3 modules define a class Place; name each after its subject"
          for name in "abc"]),
        ({f"mcpwrap/{name}.py": CLASS for name in "ab"}, []),
        ({f"mcpwrap/{name}.py": CLASS.replace("Place:", "_Place:") for name in "abc"}, []),
        ({f"tests/{name}.py": CLASS for name in "abc"}, []),
        ({"tests/a.py": '"""What a is."""'},
         ["tests/a.py:1: a first line asks: 'What a is.'; begin with a noun"]),
        ({"benchmarks/a.py": CLASS.replace("Place of", "Where is")},
         ["benchmarks/a.py:5: a first line asks: 'Where is a call.'; begin with a noun"]),
        ({"mcpwrap/__init__.py": '"""RUNS AS ROOT: how."""'},
         ["mcpwrap/__init__.py:1: a first line asks: 'RUNS AS ROOT: how.'; begin with a noun"]),
        ({"mcpwrap/__init__.py": '"""RUNS AS ROOT: changes."""'}, []),
        ({"mcpwrap/a.py": "x = 1"},
         ["mcpwrap/a.py:1: no docstring; name the module's subject in one line"]),
        ({"mcpwrap/a.py": FINE}, []),
        ({"tests/__init__.py": ""}, []),
        (room(16), [f"mcpwrap/core/__init__.py:1: 16 modules in one room, {CROWDED}"]),
        (room(15), []),
    ],
)  # fmt: skip
def test_a_breach_is_named_with_its_place(texts: dict[str, str], expected: list[str]) -> None:
    assert [str(one) for one in names.breaches(trees.modules(texts))] == expected


def test_a_drawing_is_of_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = trees.write(tmp_path, trees.TEXTS)
    assert names.main(tree) == 1
    assert "docs/rooms.svg:1: is not the drawing of this tree; run `make map`" in (
        capsys.readouterr().out
    )
    rooms_map.main(["--tree", str(tree)])
    assert names.main(tree) == 0
    assert capsys.readouterr().out.endswith("0 breaches of the rules for names and rooms\n")

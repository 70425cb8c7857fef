"""`make map`: figures on the screen, drawings in docs/, and a check that they are of the tree."""

import json
from pathlib import Path

import pytest

from tests.project.map import main
from tests.unit.project import trees


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return trees.write(tmp_path, trees.TEXTS)


def test_drawings_are_written_and_then_up_to_date(tree: Path) -> None:
    check = ["--tree", str(tree), "--check"]
    assert main(check) == 1
    assert not (tree / "docs").exists()
    assert main(["--tree", str(tree)]) == 0
    assert sorted(path.name for path in (tree / "docs").iterdir()) == [
        "rooms-core.svg",
        "rooms.svg",
    ]
    assert main(check) == 0


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("mcpwrap/core/more.py", '"""More."""', ["rooms.svg", "rooms-core.svg"]),
        ("mcpwrap/cli/more.py", '"""More."""', ["rooms.svg"]),
        ("mcpwrap/core/gate/calls.py", '"""Others."""\nfrom mcpwrap.core import names', []),
        ("docs/rooms.svg", "<svg/>", ["rooms.svg"]),
    ],
)
def test_an_old_drawing_is_named(
    tree: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, expected: list[str]
) -> None:
    main(["--tree", str(tree)])
    (tree / file).write_text(text)
    assert main(["--tree", str(tree), "--check"]) == bool(expected)
    assert capsys.readouterr().err.splitlines() == [
        f"{tree}/docs/{name}: is not the drawing of this tree; run `make map`" for name in expected
    ]


def test_a_drawing_goes_with_its_folders(tree: Path) -> None:
    main(["--tree", str(tree)])
    for path in (tree / "mcpwrap/core/gate").iterdir():
        path.unlink()
    (tree / "mcpwrap/cli/main.py").write_text('"""Commands."""')
    assert main(["--tree", str(tree), "--check"]) == 1
    assert main(["--tree", str(tree)]) == 0
    assert [path.name for path in (tree / "docs").iterdir()] == ["rooms.svg"]


def test_the_figures_are_json(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tree", str(tree), "--docs", str(tree / "elsewhere"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["modules"], found["cycles"]) == (5, {})
    assert found["contracts"][0] == {"name": "Data flows down", "is_kept": True, "problem": ""}
    assert not (tree / "docs").exists()

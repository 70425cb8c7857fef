"""Rules for docs/how-to: each with a breach, and with a twin that passes."""

from pathlib import Path

import pytest

from tests.project.pages import how_to_pages

SECTIONS = "".join(f"## {section}\n\n" for section in how_to_pages.SECTIONS)
PLAYED = "```sh\nmcpwrap status\n```\n\n```text\nNAME\n```\n"
LEFT_OUT = "<!-- not played: it downloads -->\n```sh\nsudo apt install x\n```\n"
GOOD = SECTIONS + PLAYED
INDEX = "[A](a.md)\n"


@pytest.mark.parametrize(
    ("page", "index", "played", "expected"),
    [
        (GOOD, INDEX, ["a.md"], []),
        (GOOD, INDEX, [], ["docs/how-to/a.md:1: no story plays this page"]),
        (GOOD, INDEX, ["a.md", "b.md"], [f"{how_to_pages.STORY}:1: docs/how-to/b.md is not there"]),
        (GOOD + LEFT_OUT * 2, INDEX, ["a.md"], []),
        (GOOD + LEFT_OUT * 3, INDEX, ["a.md"],
         ["docs/how-to/a.md:23: 3 blocks are not played, and 2 are the most"]),
        (GOOD + "```toml\n[a]\n```\n", INDEX, ["a.md"],
         ["docs/how-to/a.md:14: a block of toml is neither typed nor written"]),
        (SECTIONS, INDEX, ["a.md"], ["docs/how-to/a.md:1: no command with its output"]),
        (GOOD.replace("## See also", ""), INDEX, ["a.md"],
         ["docs/how-to/a.md:1: no section 'See also'"]),
        (GOOD, "[B](README.md)\n", ["a.md"], ["docs/how-to/README.md:1: a.md is not listed"]),
        (GOOD + "x" * 101, INDEX, ["a.md"],
         ["docs/how-to/a.md:14: 101 columns, and 100 are the most"]),
        (GOOD + "[B](b.md#c) [C](https://c.example/d)", INDEX, ["a.md"],
         ["docs/how-to/a.md:14: b.md is not there; correct the link"]),
        (GOOD + "[A](a.md#see-also)", INDEX, ["a.md"], []),
        (GOOD + "x" * 100, INDEX, ["a.md"], []),
    ],
)  # fmt: skip
def test_a_breach_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    page: str,
    index: str,
    played: list[str],
    expected: list[str],
) -> None:
    folder = tmp_path / how_to_pages.FOLDER
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(page)
    (folder / how_to_pages.INDEX).write_text(index)
    assert how_to_pages.main(tmp_path, played) == bool(expected)
    *found, count = capsys.readouterr().out.splitlines()
    assert [line[: len(begin)] for line, begin in zip(found, expected, strict=True)] == expected
    assert count == f"{len(expected)} breaches of the rules for docs/how-to"


def test_each_page_of_this_tree_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert how_to_pages.main() == 0, capsys.readouterr().out

"""Rules for wording: each with a breach, and with a twin that passes."""

from pathlib import Path

import pytest

from tests.project import imports
from tests.project.language import prose, wording
from tests.project.language.prose import Text
from tests.project.language.wording import HEADING

GLOSSARY = f"""# Glossary

| **not** | `whatever` | is a row of another table |

{HEADING}

| not | but |
|---|---|
| `whoever\\|somebody` | the actor |
| `of ours` | "our …" |
"""
LONG = "\n".join(["Some line of a paragraph."] * 7)


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    path = tmp_path / "glossary.md"
    path.write_text(GLOSSARY)
    return path


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("a.py", "One line.\nWhoever asks.", ["a.py:5: 'Whoever' is not used; write the actor"]),
        ("a.py", "A file\nof  ours.", ["a.py:5: 'of ours' is not used; write \"our …\""]),
        ("a.py", "A file of\nours.", ["a.py:4: 'of ours' is not used; write \"our …\""]),
        ("a.py", "The account that asks.", []),
        ("a.py", "A `whoever` of code, and ``of ours``.", []),
        ("a.md", "```sh\nwhoever\n```\n\n    somebody indented\n", []),
        ("a.py", "Somebody's.", ["a.py:4: 'Somebody' is not used; write the actor"]),
        ("a.py", "A word of hours, and whatever.", []),
        ("CHANGELOG.md", "It was called whoever.", []),
    ],
)
def test_a_phrase_that_is_not_used_is_found(
    glossary: Path, file: str, text: str, expected: list[str]
) -> None:
    found = wording.words([Text(file, 4, "docstring", text)], glossary)
    assert [str(breach) for breach in found] == expected


@pytest.mark.parametrize(
    ("file", "text", "lines"),
    [
        ("README.md", LONG, [1]),
        ("README.md", f"# Title\n\n{LONG}\n\nMore.", [3]),
        ("docs/how-to/a.md", f"- Item.\n- {LONG}", [2]),
        ("README.md", LONG[LONG.index("\n") + 1 :], []),
        ("README.md", f"```\n{LONG}\n```", []),
        ("README.md", LONG.replace("Some", "- Some"), []),
        ("README.md", LONG.replace("Some", "| Some"), []),
        ("ARCHITECTURE.md", LONG, []),
    ],
)
def test_a_long_paragraph_is_found(file: str, text: str, lines: list[int]) -> None:
    found = wording.long_paragraphs([Text(file, 1, "document", text)])
    assert [breach.line for breach in found] == lines


def test_the_table_of_the_glossary_is_read(glossary: Path) -> None:
    phrases = [(pattern.pattern, instead) for pattern, instead in wording.banned(glossary)]
    assert phrases == [
        (r"\b(?:whoever|somebody)\b", "the actor"),
        (r"\b(?:of\s+ours)\b", '"our …"'),
    ]
    assert len(wording.banned(imports.TOP / "docs/glossary.md")) > len(phrases)


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("mcpwrap/a.py", '"""Doc."""\nx = "two words"  # why\n',
         [("docstring", "Doc."), ("message", "two words"), ("comment", "why")]),
        ("mcpwrap/a.py", 'x = f"cannot open {y}: no"\nz = b"a b"\nw = "one"\n',
         [("message", "cannot open "), ("message", ": no"), ("message", "a b")]),
        ("tests/a.py", 'def f():\n    """Do it."""\n    return "two words"\n',
         [("docstring", "Do it.")]),
        ("units/a.service", "# Why.\n[Unit]\nDescription=A unit\n",
         [("comment", "Why."), ("message", "Description=A unit")]),
        ("docs/a.md", "Text.\n", [("document", "Text.\n")]),
        ("docs/a.png", "", []),
    ],
)  # fmt: skip
def test_prose_of_a_file(
    tmp_path: Path, file: str, source: str, expected: list[tuple[str, str]]
) -> None:
    path = tmp_path / "file"
    path.write_text(source)
    assert sorted((one.kind, one.text) for one in prose.of_file(file, path)) == sorted(expected)

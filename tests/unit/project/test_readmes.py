"""README of each principal: its headings, and the modules, rooms and units that it names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.imports import TOP
from tests.unit.project import trees

FILES = "Files, in reading order"
HEADINGS = ["Started by", "Holds", "May never", "Talks to", FILES]
MAX_LINES, MAX_COLUMNS = 70, 100
KINDS = ("KIND", "proxy", "intercept")  # packaging/stage.py: one file, two templates
SPAN = re.compile(r"`([^`]+)`")
UNIT = re.compile(r"\bmcpwrap[\w@.-]*\.(?:service|socket|path|timer)\b")

README = """# as_x: example

Runs as `mcpwrap-x`.

## Started by

- `mcpwrap-x@NAME.UID.socket`, `mcpwrap-squid-proxy@1.service`.

## Holds

- Nothing: `core/names.py`.

## May never

- write: `room/inner.py`.

## Talks to

- `mcpwrap-user.path`.

## Files, in reading order

- `main.py`: entry point. `room/`: `inner.py`: more;
  `deep/`: a folder of pages.
"""
TEXTS = {
    "mcpwrap/core/names.py": "",
    "mcpwrap/as_x/__init__.py": "",
    "mcpwrap/as_x/main.py": "",
    "mcpwrap/as_x/room/__init__.py": "",
    "mcpwrap/as_x/room/inner.py": "",
    "mcpwrap/as_x/deep/page.html": "",
    "units/mcpwrap-x@.socket": "",
    "units/mcpwrap-squid-KIND@.service": "",
    "units/user/mcpwrap-user.path": "",
}


def principals(tree: Path) -> list[str]:
    """Return the folders that have a README."""
    return [*sorted(path.name for path in (tree / "mcpwrap").glob("as_*")), "cli"]


def faults(tree: Path, principal: str) -> list[str]:
    """Return what is wrong with the README of a principal."""
    folder = tree / "mcpwrap" / principal
    readme = folder / "README.md"
    if not readme.exists():
        return ["no README.md"]
    text = readme.read_text()
    first, *rest = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    section = dict(zip(rest[::2], rest[1::2], strict=True))
    return [
        *_form(text, first, [*rest[::2]]),
        *_files(folder, section.pop(FILES, "")),
        *_elsewhere(tree, folder, first + "".join(section.values())),
        *_units(tree, text),
    ]


def _form(text: str, first: str, headings: list[str]) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield f"{len(lines)} lines"
    yield from (f"line {n} is too long" for n, one in enumerate(lines, 1) if len(one) > MAX_COLUMNS)
    if headings != HEADINGS:
        yield f"headings are {headings}"
    if "\n\nRuns as " not in first:
        yield "does not begin with `Runs as`"


def _files(folder: Path, section: str) -> Iterator[str]:
    named = set(_named(section))
    yield from (f"{name} is not there" for name in sorted(named) if not (folder / name).exists())
    inside = [path.relative_to(folder) for path in folder.rglob("*.py")]
    found = {str(path) for path in inside if path.name != "__init__.py"}
    found |= {f"{path.parent}/" for path in inside if path.name == "__init__.py" and path.parts[1:]}
    yield from (f"{name} is not named" for name in sorted(found - named))


def _named(section: str) -> Iterator[str]:
    """Return modules and rooms: within an item a module is in the room named before it."""
    for item in re.split(r"^- ", section, flags=re.MULTILINE):
        room = ""
        for span in SPAN.findall(item):
            if span.endswith("/"):
                room = span
                yield room
            elif span.endswith(".py"):
                yield f"{room}{span}"


def _elsewhere(tree: Path, folder: Path, text: str) -> Iterator[str]:
    for span in SPAN.findall(text):
        tops = (tree, tree / "mcpwrap", folder)
        if span.endswith(".py") and not any((top / span).exists() for top in tops):
            yield f"{span} is not there"


def _units(tree: Path, text: str) -> Iterator[str]:
    files = {path.name for path in (tree / "units").rglob("mcpwrap*")}
    known = {name.replace("KIND", kind) for name in files for kind in KINDS}
    for unit in UNIT.findall(text):
        if re.sub(r"@.*\.", "@.", unit) not in known:
            yield f"{unit} is no unit"


@pytest.mark.parametrize("principal", principals(TOP))
def test_a_readme_is_true(principal: str) -> None:
    assert faults(TOP, principal) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("## Holds", "## Has", [f"headings are {['Started by', 'Has', *HEADINGS[2:]]}"]),
        ("Runs as `mcpwrap-x`.", "An example.", ["does not begin with `Runs as`"]),
        ("- Nothing", "\n" * 50 + "- Nothing", ["74 lines"]),
        ("- Nothing", "- " + "x" * 99, ["line 11 is too long"]),
        ("`main.py`", "`mein.py`", ["mein.py is not there", "main.py is not named"]),
        ("`main.py`", "`main`", ["main.py is not named"]),
        ("`inner.py`: more", "more", ["room/inner.py is not named"]),
        ("`room/`: `inner.py`", "`room/inner.py`", ["room/ is not named"]),
        ("`room/`:", "", ["inner.py is not there", "room/ is not named",
                          "room/inner.py is not named"]),
        # The room of an item ends with it.
        (";\n  `deep/`", ";\n- `inner.py`, `deep/`", ["inner.py is not there"]),
        ("`deep/`", "`depth/`", ["depth/ is not there"]),
        ("core/names.py", "core/name.py", ["core/name.py is not there"]),
        ("mcpwrap-x@NAME.UID.socket", "mcpwrap-x@NAME.service",
         ["mcpwrap-x@NAME.service is no unit"]),
        ("mcpwrap-x@NAME.UID.socket", "mcpwrap-x.socket", ["mcpwrap-x.socket is no unit"]),
        ("squid-proxy", "squid-cache", ["mcpwrap-squid-cache@1.service is no unit"]),
        ("mcpwrap-user", "mcpwrap-users", ["mcpwrap-users.path is no unit"]),
    ],
)  # fmt: skip
def test_a_fault_is_found(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    text = README.replace(old, new, 1)
    assert (text == README) is (old == new)
    tree = trees.write(tmp_path, {**TEXTS, "mcpwrap/as_x/README.md": text.rstrip("\n")})
    assert faults(tree, "as_x") == expected


def test_a_principal_without_a_readme_is_found(tmp_path: Path) -> None:
    tree = trees.write(tmp_path, TEXTS)
    assert principals(tree) == ["as_x", "cli"]
    assert [faults(tree, name) for name in principals(tree)] == [["no README.md"]] * 2

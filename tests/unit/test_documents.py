"""Statements of the documents that the code could contradict: numbers, names, commands."""

import re
import textwrap
import tomllib
from email.utils import parsedate_to_datetime
from pathlib import Path

import click
import pytest

from mcpwrap import __version__
from mcpwrap.cli.main import cli
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.config.policy.parse import parse_policy
from tests.system.tools import demo

ROOT = Path(__file__).parents[2]
MANUAL = sorted((ROOT / "docs").glob("*.rst"))
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs/security").glob("*.md")),
    *MANUAL,
]
NUMBERS = {"six": 6, "seven": 7, "eight": 8, "eleven": 11, "eighteen": 18}
NAMING_PATHS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Folders that paths in documents begin at: `core/gate/gate.py` is below mcpwrap/.
BASES = ("", "mcpwrap", "tests", "tests/system")
TOP = (
    "mcpwrap",
    "tests",
    "docs",
    "units",
    "nftables",
    "squid",
    "packaging",
    "examples",
    "benchmarks",
)
EXAMPLE = re.compile(r"^```(?:sh|text|toml|yaml|json)\n.*?^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`(\w+\.py)`")
# A line of an example, or a command in the middle of a sentence.
COMMAND = re.compile(r"(?:^(?:sudo )?|`(?:sudo )?)mcpwrap ([a-z][a-z -]*)", re.MULTILINE)


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize(
    ("page", "sentence", "number"),
    [
        ("README.md", r"the files of (\w+) agents", len(BY_ID)),
        ("docs/proofs.md", r"[Tt]he files of (\w+) agents", len(BY_ID)),
        ("CHANGELOG.md", r"(\d+) agents are known", len(BY_ID)),
        ("README.md", r"wraps\s+(\w+) real servers", demo.SERVERS.count("\ncommand = ")),
        ("Makefile", r"wrap (\w+) real servers", demo.SERVERS.count("\ncommand = ")),
        ("README.md", r"install\s+(\w+) Debian packages\s+\(`tests/host-packages.sh`\)",
         len(text_of("tests/host-packages.sh").split('wanted="')[1].split('"')[0].split())),
    ],
)  # fmt: skip
def test_a_number_is_that_of_the_code(page: str, sentence: str, number: int) -> None:
    found = re.findall(sentence, text_of(page))
    assert found
    assert {NUMBERS.get(word) or int(word) for word in found} == {number}


@pytest.mark.parametrize("verb", ["wrap", "unwrap"])
def test_help_lists_the_agents(verb: str) -> None:
    command = cli.commands[verb]
    shown = command.get_help(click.Context(command, info_name=verb))
    listed = shown.partition("A CLIENT is one of ")[2].rstrip(".\n")
    assert re.split(r",\s+", listed) == sorted(BY_ID)


def test_the_manual_lists_the_agents() -> None:
    text = " ".join(text_of("docs/mcpwrap.1.rst").split())
    (listed,) = re.findall(r"\*\*convert\*\*: one of ((?:\*[a-z-]+\*[,.] ?)+)", text)
    assert sorted(re.findall(r"\*([a-z-]+)\*", listed)) == sorted(BY_ID)
    assert [agent.title for agent in BY_ID.values() if agent.title not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_each_command_is_there(page: Path) -> None:
    named = COMMAND.findall(page.read_text().replace("**", "`"))
    assert named or page.name in {"mcpwrap-connect.1.rst", "mcpwrap-errors.7.rst"}
    assert [words for words in named if not is_command(words.split())] == []


def is_command(words: list[str]) -> bool:
    """Return whether a command line begins so; what follows a command is its arguments."""
    found: click.Command | None = cli
    for word in words:
        if not isinstance(found, click.Group) or (word.startswith("-") and found is not cli):
            return True
        found = found.commands.get(word)
        if found is None:
            return False
    return True


@pytest.mark.parametrize(
    ("words", "is_there"),
    [("status", True), ("secret set x", True), ("secret put", False), ("frobnicate", False)],
)
def test_a_command_that_is_not_there_is_found(words: str, *, is_there: bool) -> None:
    assert is_command(words.split()) is is_there


def test_the_package_has_the_releases_of_the_changelog() -> None:
    debian = text_of("packaging/debian/changelog")
    versions = re.findall(r"^mcpwrap \((.*)\)", debian, re.MULTILINE)
    signed = re.findall(r"^ -- .*>  (.*)", debian, re.MULTILINE)
    dates = [parsedate_to_datetime(date).date() for date in signed]
    released = re.findall(r"^## \[([0-9.]+)\] - (.*)", text_of("CHANGELOG.md"), re.MULTILINE)
    assert list(zip(versions, map(str, dates), strict=True))[1:] == released
    assert versions[0].replace("~", ".") == __version__
    commits = tomllib.loads(text_of("packaging/releases.toml"))
    assert [(name, str(one["date"])) for name, one in commits.items()] == released


def test_the_package_has_each_manual_page() -> None:
    shipped = text_of("packaging/debian/manpages").split()
    assert sorted(shipped) == [f"docs/{page.stem}" for page in MANUAL]


def example(page: str) -> str:
    """Return the last literal block of a manual page, without its indentation."""
    block = re.split(r"^::$", text_of(page), flags=re.MULTILINE)[-1]
    indented = re.match(r"(?:\n|    .*\n)*", block)
    return textwrap.dedent(indented.group()) if indented else ""


def test_the_manual_s_configuration_is_valid() -> None:
    parsed = parse([SourceFile("f.toml", example("docs/mcpwrap.toml.5.rst").encode())])
    assert sorted(parsed.servers) == [
        "board",
        "github",
        "python",
        "tables",
        "tickets",
        "time",
        "tools",
    ]
    assert parsed.parent
    assert parsed.worker
    assert parsed.approvals.webhook


def test_the_manual_s_policy_is_valid() -> None:
    parsed = parse_policy([SourceFile("p.yaml", example("docs/mcpwrap-policy.5.rst").encode())])
    assert [rule.name for rule in parsed.rules] == ["no-unbounded-select", "writing-is-approved"]


def test_the_manual_s_example_has_a_command_on_each_line() -> None:
    lines = example("docs/mcpwrap.1.rst").split("\n")
    assert [line for line in lines if line.count("mcpwrap ") > 1] == []


def missing_paths(text: str, tree: Path) -> list[str]:
    """Return the paths and file names of a text that a tree does not have."""
    below = {
        folder.name
        for base in BASES[1:]
        for folder in (tree / base).glob("*/")
        if folder.name != "__pycache__"
    }
    first = "|".join(sorted({*below, *TOP}))
    paths = re.findall(rf"(?<![\w/.~@$-])(?:{first})/[\w./*@-]*", text)
    missing = [path for path in paths if not is_path(path.rstrip("."), tree)]
    names = FILE.findall(text)
    files = {
        file.name
        for top in ("mcpwrap", "tests", "packaging")
        for file in (tree / top).rglob("*.py")
    }
    return missing + [name for name in names if name not in files]


def is_path(path: str, tree: Path) -> bool:
    """Return whether it is a path, a module without `.py`, or a name in a module."""
    for base in (tree / base for base in BASES):
        module, _, inside = path.rpartition(".")
        file = base / f"{module}.py"
        defined = rf"^(?:class |def )?{inside}\b"
        if (
            any(base.glob(path.rstrip("/")))
            or (base / f"{path}.py").exists()
            or (module and file.exists() and re.search(defined, file.read_text(), re.MULTILINE))
        ):
            return True
    return False


@pytest.mark.parametrize("page", NAMING_PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_path_is_there(page: Path) -> None:
    text = page.read_text()
    if page.parent == ROOT / "docs/how-to":  # their examples have methods and files of the reader
        text = EXAMPLE.sub("", text)
    assert missing_paths(text, ROOT) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`core/gate/gate.py`, `core/gate/gate`, `core/gate/gate.Gate`, mcpwrap/core/gate/.", []),
        ("`core/*/gate.py` and a unit, `units/mcpwrap@.service`", []),
        ("`gate.py`", []),
        ("`session/test_agent.py::test_it`", []),  # a story
        ("/var/lib/mcpwrap/core/gone, https://a.example/core/gone", []),  # not of the tree
        ("`core/gone`", ["core/gone"]),
        ("see core/gate/gone.py.", ["core/gate/gone.py."]),
        ("`core/gate/gate.Gone`", ["core/gate/gate.Gone"]),
        ("`units/gone.service`", ["units/gone.service"]),
        ("`gone.py`", ["gone.py"]),
    ],
)  # fmt: skip
def test_a_path_that_is_not_there_is_found(tmp_path: Path, text: str, missing: list[str]) -> None:
    for name, content in {
        "mcpwrap/core/gate/gate.py": "class Gate:\n",
        "tests/system/session/test_agent.py": "",
        "units/mcpwrap@.service": "",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
    assert missing_paths(text, tmp_path) == missing

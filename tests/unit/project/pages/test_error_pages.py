"""mcpwrap-errors(7): it is of this tree, and each name is in source and catalogue."""

import io
from pathlib import Path

import pytest
from docutils.core import publish_string
from docutils.writers import manpage

from tests.project.imports import TOP
from tests.project.pages import error_calls, error_pages
from tests.project.pages.error_calls import Message, Use
from tests.project.pages.error_pages import Entry, Section, breaches, main, marked, page, section

CATALOGUE = """\
# Errors of hosts. More about them.

[E-EGRESS-PORT]
cause = "The port is not a number."
remedy = "Write a number."

[E-EGRESS-HOST]
cause = "The host is `*`."
remedy = "Write a name."
"""
MODULE = 'raise BadValueError(f"{value!r} is not a host", "write `a.b`", code="E-EGRESS-HOST")'
HOSTS = section("docs/errors/hosts.toml", CATALOGUE)
HOST = Use("E-EGRESS-HOST", "mcpwrap/a.py", 1, (Message("«VALUE» is not a host", "write `a.b`"),))
PORT = Use("E-EGRESS-PORT", "mcpwrap/a.py", 2)


def test_the_page_is_of_this_tree() -> None:
    text = page(error_pages.read(TOP), error_calls.read(TOP))
    assert (TOP / error_pages.PAGE).read_text() == text, "run `make errors-page`"


def test_each_name_is_in_source_and_catalogue() -> None:
    found = breaches(error_pages.read(TOP), error_calls.read(TOP))
    assert [str(breach) for breach in found] == []


def test_a_catalogue_file_is_a_section() -> None:
    assert HOSTS.heading == "Errors of hosts"
    assert [entry.name for entry in HOSTS.entries] == ["E-EGRESS-HOST", "E-EGRESS-PORT"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("[E-A-B]\ncause = 'c'\nremedy = 'r'", "begin the file with a comment"),
        ("# A.\n[E-A-B]\ncause = 'c'", r"\[E-A-B\] needs a text"),
        ("# A.\n[E-A-B]\ncause = 'c'\nremedy = ''", r"\[E-A-B\] needs a text"),
        ("# A.\n[E-A-B]\ncause = 'c'\nremedy = 'r'\nfix = 'f'", "no other key"),
        ("# A.\n[E-A-B]\n[E-A-B]\n", "E-A-B"),  # TOML's own rule
    ],
)
def test_a_wrong_catalogue_file_is_refused(source: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        section("docs/errors/a.toml", source)


def other(name: str) -> Section:
    return Section("docs/errors/other.toml", "Others", (Entry(name, "c", "r"),))


@pytest.mark.parametrize(
    ("more", "uses", "problems"),
    [
        ([], [HOST, PORT], []),
        ([], [HOST], ["no error is named E-EGRESS-PORT"]),
        ([], [HOST, PORT, Use("E-A-B", "f.py", 3)], ["E-A-B is not in the catalogue"]),
        ([], [HOST, PORT, Use("E-A", "f.py", 3)], ["'E-A' is not the name of an error"]),
        ([], [HOST, PORT, Use("e-a-b", "f.py", 3)], ["'e-a-b' is not the name of an error"]),
        ([other("E-EGRESS-HOST")], [HOST, PORT],
         ["E-EGRESS-HOST is in docs/errors/hosts.toml too"]),
        ([other("E-A-B")], [HOST, PORT, Use("E-A-B", "f.py", 3)], []),
    ],
)  # fmt: skip
def test_a_breach_is_found(more: list[Section], uses: list[Use], problems: list[str]) -> None:
    assert [breach.problem for breach in breaches([HOSTS, *more], uses)] == problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("«VALUE» is over", "*VALUE* is over"),
        ("'«VALUE»': «KEY».", "'*VALUE*': *KEY*."),
        ("a«VALUE»s, `x`s", r"a\ *VALUE*\ s, ``x``\ s"),
        ("write `a*b`, x_y* and \\n", r"write ``a*b``, x\_y\* and \\n"),
        ("write `x=«VALUE»`", "write ``x=VALUE``"),
        ("«A»«B»", r"*A*\ *B*"),
    ],
)
def test_markup_of_a_message(text: str, expected: str) -> None:
    assert marked(text) == expected


def test_the_page_renders_without_a_warning() -> None:
    odd = Message("`x` and «A», *|_\\ " + "long " * 40, "«B»: «REASON»")
    for text in (page([HOSTS], [HOST, Use("E-EGRESS-PORT", "a.py", 1, (odd,))]), _committed()):
        warnings = io.StringIO()
        settings = {"warning_stream": warnings, "report_level": 2, "output_encoding": "unicode"}
        publish_string(text, writer=manpage.Writer(), settings_overrides=settings)
        assert warnings.getvalue() == ""


def _committed() -> str:
    return (TOP / error_pages.PAGE).read_text()


def test_the_page_is_written_and_then_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {
        "mcpwrap/a.py": MODULE,
        "docs/errors/hosts.toml": CATALOGUE,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    tree = ["--tree", str(tmp_path)]
    assert main([*tree, "--check"]) == 1
    assert "run `make errors-page`" in capsys.readouterr().err
    assert main(tree) == 1  # written, and one name is not used
    assert "no error is named E-EGRESS-PORT" in capsys.readouterr().err
    (tmp_path / "mcpwrap/b.py").write_text('log_line("wrong port [E-EGRESS-PORT]")')
    assert main(tree) == 0
    assert main([*tree, "--check"]) == 0
    assert (
        "    - *VALUE* is not a host (fix: write ``a.b``)\n"
        in (tmp_path / error_pages.PAGE).read_text()
    )

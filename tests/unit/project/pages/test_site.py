"""`make docs`: pages are staged, Sphinx builds them, and a broken link of any kind fails."""

from pathlib import Path

import pytest

from tests.project.pages.site import groups, main, navigation, staged
from tests.unit.project import trees

MANUAL = """\
.. Written by hand.

=======
mcpwrap
=======

---------
the units
---------

:Manual section: 8

FILES
=====

See **mcpwrap.toml**\\(5), **mcpwrap**\\(8) and **systemd**\\(1).
"""
TEXTS = {
    "README.md": """\
# mcpwrap

![Rooms](docs/rooms.svg) [a](docs/how-to/add.md#a-server) [b](docs/mcpwrap.8.rst#files)
[c](LICENSE) [d](https://a.example) See mcpwrap(8), `mcpwrap.toml(5)` and mcpwrap(1).
""",
    "LICENSE": "Free",
    "docs/rooms.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "docs/mcpwrap.8.rst": MANUAL,
    "docs/mcpwrap.toml.5.rst": MANUAL.replace("mcpwrap\n", "mcpwrap.toml\n").replace(
        "=======\nmcpwrap.toml\n=======", "============\nmcpwrap.toml\n============"
    ).replace(": 8", ": 5"),
    "docs/how-to/README.md": "# How-to\n\n[b](share.md), then [a](add.md).\n",
    "docs/how-to/add.md": "# Add\n\n## A server\n\n[a](../../README.md#mcpwrap)\n",
    "docs/how-to/share.md": "# Share\n",
    "docs/new/odd.md": "# Odd\n\n[a](../../README.md)\n",
    "ARCHITECTURE.md": "# Architecture\n",
}  # fmt: skip
BROKEN = """
[1](docs/gone.md) [2](docs/how-to/add.md#gone) ![3](docs/gone.png) [4](#gone)
[5](docs/mcpwrap.8.rst#gone)
"""


def test_the_site_is_built(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site"
    tree = trees.write(tmp_path / "tree", TEXTS)
    assert main(["--tree", str(tree), "--site", str(site)]) == 0, capfd.readouterr().err
    assert "not checked: https://a.example\n" in capfd.readouterr().out
    first = (site / "index.html").read_text()
    for target in (
        "docs/how-to/add.html#a-server",
        "docs/mcpwrap.8.html#files",
        'docs/mcpwrap.8.html"',
        'docs/mcpwrap.toml.5.html"',
        "docs/new/odd.html",
    ):
        assert f'href="{target}' in first
    assert "mcpwrap.1.html" not in first  # this tree has no such page
    assert 'href="../index.html' in (site / "docs/mcpwrap.8.html").read_text()
    manual = (site / "docs/mcpwrap.8.html").read_text()
    assert "<title>mcpwrap(8)" in manual
    _, _, article = manual.partition("<article")
    assert '<a class="reference internal" href="mcpwrap.toml.5.html">' in article
    assert ">mcpwrap.toml(5)</span></a>, " in article
    assert "<strong>mcpwrap</strong>(8)" in article  # a page does not link to itself
    assert "<strong>systemd</strong>(1)" in article


def test_broken_links_fail(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    texts = {**TEXTS, "README.md": TEXTS["README.md"] + BROKEN}
    tree = trees.write(tmp_path / "tree", texts)
    assert main(["--tree", str(tree), "--site", str(tmp_path / "site"), "--quiet"]) == 1
    told = capfd.readouterr()
    assert "not checked" not in told.out
    for problem in ("'docs/gone.md'", "'gone'", "docs/gone.png", "'docs/mcpwrap.8': 'gone'"):
        assert problem in told.err
    assert told.err.count("WARNING") == 5


def test_pages_are_in_groups(tmp_path: Path) -> None:
    assert groups(trees.write(tmp_path, TEXTS)) == {
        # In the order of the page that lists them.
        "How-to": ["docs/how-to/README.md", "docs/how-to/share.md", "docs/how-to/add.md"],
        "Manual": ["docs/mcpwrap.toml.5.rst", "docs/mcpwrap.8.rst"],  # by section
        "Design": ["ARCHITECTURE.md"],
        "Project": ["docs/new/odd.md"],
    }


def test_navigation_has_each_group() -> None:
    assert navigation({"Start": ["SECURITY.md"], "Manual": ["docs/mcpwrap.8.rst"]}) == (
        "\n```{toctree}\n:hidden:\n:caption: Start\n\nOverview <self>\n/SECURITY\n```\n"
        "\n```{toctree}\n:hidden:\n:caption: Manual\n\n/docs/mcpwrap.8\n```\n"
    )


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/proofs.md", "[a](../README.md)", "[a](../index.md)"),
        ("docs/proofs.md", "[a](../README.md#install)", "[a](../index.md#install)"),
        ("README.md", "[a](README.md) [b](SECURITY.md)", "[a](index.md) [b](SECURITY.md)"),
        ("docs/how-to/add.md", "[a](README.md)", "[a](README.md)"),  # that of its own folder
        ("docs/how-to/add.md", "[a](../../README.md)", "[a](../../index.md)"),
        ("README.md", "`[a](README.md)`\n```\n[a](README.md)\n```\n",
         "`[a](README.md)`\n```\n[a](README.md)\n```\n"),
        ("README.md", "[a](https://a.example/README.md)", "[a](https://a.example/README.md)"),
        ("docs/a.8.rst", MANUAL.partition("FILES")[0],
         ".. Written by hand.\n\n##########\nmcpwrap(8)\n##########\n\n*the units*\n\n"),
    ],
)  # fmt: skip
def test_a_page_is_staged(page: str, text: str, expected: str) -> None:
    assert staged(page, text) == expected

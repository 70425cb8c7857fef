"""`make docs`: build the documents as a site in dist/site, and check its links.

The pages link to each other by paths, as a forge shows them. They are copied with their paths to
a folder in which Sphinx builds, and there README.md is the first page.
"""

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.project.imports import TOP
from tests.project.pages import site_links

SITE = "dist/site"
SETTINGS = Path(__file__).parents[3] / "docs/site"
FIRST = "README.md"
# Groups of the navigation. A page is in the first one that has it, any other page in the last.
GROUPS = {
    "Start": ("SECURITY.md", "docs/security/*.md"),
    "How-to": ("docs/how-to/README.md", "docs/how-to/*.md"),
    "Manual": ("docs/mcpwrap.1.rst", *(f"docs/*.{section}.rst" for section in range(1, 9))),
    "Design": (
        "ARCHITECTURE.md",
        "docs/design/*.md",
        "docs/glossary.md",
        "mcpwrap/as_*/README.md",
        "mcpwrap/cli/README.md",
    ),
    "Project": ("CONTRIBUTING.md", "docs/proofs.md", "benchmarks/README.md", "CHANGELOG.md"),
}
PAGES = ("*.md", "docs/**/*.md", *(pattern for group in GROUPS.values() for pattern in group))
# Pages that list others, in the order in which those are read.
HUBS = ("docs/how-to/README.md", "ARCHITECTURE.md", FIRST)
LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<after>(?:#[^)\s]*)?\))")
CODE = re.compile(r"```.*?```|``[^`]*``|`[^`\n]*`", re.DOTALL)
MANUAL = re.compile(
    r"\A(?P<comment>(?:\.\. .*\n\n)?)=+\n(?P<name>.+)\n=+\n\n-+\n(?P<subject>.+)\n-+\n\n"
    r":Manual section: (?P<section>\d)\n"
)


def pages(tree: Path) -> list[str]:
    """Return the paths of the pages of a tree."""
    found = {path.relative_to(tree).as_posix() for pattern in PAGES for path in tree.glob(pattern)}
    return sorted(found)


def groups(tree: Path) -> dict[str, list[str]]:
    """Return the pages of each group of the navigation, in the order in which they are read."""
    left = [page for page in pages(tree) if page != FIRST]
    order = _order(tree)
    found: dict[str, list[str]] = {}
    for group, patterns in GROUPS.items():
        found[group] = []
        for pattern in patterns:
            matching = {path.relative_to(tree).as_posix() for path in tree.glob(pattern)}
            chosen = [page for page in left if page in matching]
            found[group] += sorted(chosen, key=lambda page: (order.get(page, len(order)), page))
            left = [page for page in left if page not in matching]
    found[next(reversed(GROUPS))] += left
    return {group: chosen for group, chosen in found.items() if chosen}


def _order(tree: Path) -> dict[str, int]:
    """Return the pages that others list, each with its place in these lists."""
    listed = [
        target
        for hub in HUBS
        if (tree / hub).exists()
        for target in targets(hub, (tree / hub).read_text())
    ]
    return {page: place for place, page in reversed(list(enumerate(listed)))}


def targets(page: str, text: str) -> Iterator[str]:
    """Return the paths to which a page of Markdown links, from the top of the tree."""
    for found in LINK.finditer(CODE.sub("", text)):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(page), found["path"]))


def staged(page: str, text: str) -> str:
    """Return a page as Sphinx reads it."""
    if page.endswith(".rst"):
        return MANUAL.sub(_titled, text)
    return _outside_of_code(text, lambda prose: LINK.sub(lambda found: _first(page, found), prose))


def _titled(found: re.Match[str]) -> str:
    """Return the head of a manual page: for Sphinx a subtitle is the first section."""
    title = f"{found['name']}({found['section']})"
    line = "#" * len(title)
    return f"{found['comment']}{line}\n{title}\n{line}\n\n*{found['subject']}*\n"


def _first(page: str, link: re.Match[str]) -> str:
    """Return a link; one to the first page has the path that this has here."""
    folder = posixpath.dirname(page)
    if posixpath.normpath(posixpath.join(folder, link["path"])) != FIRST:
        return link[0]
    return f"{link['before']}{posixpath.relpath('index.md', folder or '.')}{link['after']}"


def _outside_of_code(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(text[end:])])


def navigation(by_group: dict[str, list[str]]) -> str:
    """Return the tables of contents that the first page ends with."""
    text = ""
    for number, (group, listed) in enumerate(by_group.items()):
        first = ["Overview <self>"] if number == 0 else []
        entries = "\n".join([*first, *(f"/{posixpath.splitext(page)[0]}" for page in listed)])
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{entries}\n```\n"
    return text


def stage(tree: Path, folder: Path) -> None:
    """Write the pages of a tree to a folder, and the files that these link to."""
    for page in pages(tree):
        text = (tree / page).read_text()
        is_first = page == FIRST
        more = navigation(groups(tree)) if is_first else ""
        _write(folder / ("index.md" if is_first else page), staged(page, text) + more)
        if page.endswith(".md"):
            for target in targets(page, text):
                _copy(tree, target, folder)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _copy(tree: Path, target: str, folder: Path) -> None:
    """Copy a picture or another file that is not a page; Sphinx reports missing ones."""
    if (tree / target).is_file() and target != FIRST and not (folder / target).exists():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / target, folder / target)


def build(folder: Path, site: Path) -> bool:
    """Return whether Sphinx built the staged pages without a warning."""
    command = [
        *(sys.executable, "-m", "sphinx", "--builder", "html", "--fresh-env", "--quiet"),
        *("--fail-on-warning", "--jobs", str(os.cpu_count() or 1)),
        *("--conf-dir", str(SETTINGS), "--doctree-dir", str(folder / ".doctrees")),
        *(str(folder), str(site)),
    ]
    return subprocess.run(command, cwd=TOP).returncode == 0


def main(argv: list[str]) -> int:
    """Exit status: 0 built; 1 a warning of Sphinx or a broken link, each printed."""
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("--tree", type=Path, default=TOP, help="another checkout")
    parser.add_argument("--quiet", action="store_true", help="list no links to other sites")
    parser.add_argument("--site", type=Path, help="where to build; else dist/site of the tree")
    options = parser.parse_args(argv)
    site: Path = options.site or options.tree / SITE
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="mcpwrap-site-") as folder:
        stage(options.tree, Path(folder))
        is_built = build(Path(folder), site)
    links = site_links.check(site)
    for line in links.broken:
        print(line, file=sys.stderr)
    for url in [] if options.quiet else links.external:
        print(f"not checked: {url}")
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, {len(links.broken)} broken links")
    return 0 if is_built and not links.broken else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

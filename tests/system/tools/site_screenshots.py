"""Pictures of the site of `make docs` for docs/screenshots, by a real browser in a machine.

RUNS AS ROOT on the host, which it leaves as it was. A part of `make screenshots`.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.project.imports import TOP
from tests.project.pages import site
from tests.system.approvals.browser import Browser, browser
from tests.system.bed import installed, roots

SUITE = "bookworm"
FOLDER = "docs/screenshots"
AT = "/srv/site"  # in the machine; the pages need no web server
PAGES = {"first": "index.html", "how-to": "docs/how-to/add-a-server.html"}
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
# In CSS pixels; a page that scrolls sideways is wider than the window.
OVERFLOW = "result = driver.execute_script('return document.documentElement.scrollWidth')"


def main(argv: list[str]) -> int:
    """Exit status: 0 pictures are written; 1 the site is not right, or a page is too wide."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=TOP, help="another checkout")
    tree: Path = parser.parse_args(argv).tree
    roots.need_root("make screenshots")
    with tempfile.TemporaryDirectory() as built, installed.browser_machine(SUITE) as machine:
        if site.main(["--tree", str(tree), "--site", built, "--quiet"]):
            return 1
        shutil.copytree(built, machine.path(AT))
        machine.as_root(f"chmod -R go=rX {AT}; useradd -m reader")
        with browser(machine, "reader") as window:
            are_too_wide = [_pictures(window, tree / FOLDER, name) for name in PAGES]
    return 1 if any(are_too_wide) else 0


def _pictures(window: Browser, folder: Path, name: str) -> bool:
    """Write the pictures of a page; return whether it is wider than a window."""
    is_too_wide = False
    for size, (width, height) in SIZES.items():
        window.looks(width=width, height=height, scheme="light", is_phone=size == "phone")
        window.run("driver.get(url)", url=f"file://{AT}/{PAGES[name]}")
        window.screenshot(folder / f"site-{name}-{size}.png")
        if (found := window.run(OVERFLOW)) > width:
            print(f"{PAGES[name]}: is {found} pixels wide in a window of {width}", file=sys.stderr)
            is_too_wide = True
    return is_too_wide


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

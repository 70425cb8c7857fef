"""Links of a built site: each internal one has its target, and nothing is loaded from elsewhere."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that a browser fetches by itself; a person follows other links.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
LINKS = {"a": "href", **LOADED}
URLS = re.compile(r"""url\(\s*["']?(https?:[^"')]*)|@import\s+["'](https?:[^"']*)""")
STYLES = ("*.css", "*.svg")


@dataclass
class Page(HTMLParser):
    """Links and anchors of one page."""

    links: list[tuple[str, str]] = field(default_factory=list)  # tag, target
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the anchor of an element, and its link."""
        by_name = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := by_name.get(key))}
        if target := by_name.get(LINKS.get(tag, "")):
            self.links.append((tag, target))


@dataclass(frozen=True)
class Links:
    """Result of a check."""

    broken: list[str]  # lines to print
    external: list[str]  # URLs, which are not fetched


def check(site: Path) -> Links:
    """Return the broken links of a site, and the external ones."""
    pages = {path.relative_to(site).as_posix(): _page(path) for path in site.rglob("*.html")}
    broken, external = [], set()
    for name, page in sorted(pages.items()):
        for tag, target in page.links:
            if urlsplit(target).netloc:
                external.add(target)
                if tag in LOADED:
                    broken.append(f"{name}: loads {target} from another host")
            elif problem := _problem(name, target, pages, site):
                broken.append(f"{name}: {target}: {problem}")
    return Links([*dict.fromkeys(broken), *_styles(site)], sorted(external))


def _page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def _problem(name: str, target: str, pages: Mapping[str, Page], site: Path) -> str:
    """Return why a link has no target; an empty text if it has one."""
    parts = urlsplit(target)
    if parts.scheme:  # mailto:, data:
        return ""
    place = name
    if parts.path:
        path = (site / name).parent / unquote(parts.path)
        if not path.resolve().is_relative_to(site.resolve()):
            return "it is outside of the site"
        if not path.is_file():
            return "there is no such file"
        place = path.resolve().relative_to(site.resolve()).as_posix()
    if parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].anchors:
        return "the page has no such anchor"
    return ""


def _styles(site: Path) -> Iterator[str]:
    for path in sorted(path for pattern in STYLES for path in site.rglob(pattern)):
        for found in URLS.finditer(path.read_text()):
            where = path.relative_to(site).as_posix()
            yield f"{where}: loads {found[1] or found[2]} from another host"

"""Links of a built site: a broken one is named, and its twin is not."""

from pathlib import Path

import pytest

from tests.project.pages.site_links import check

OTHER = '<h1 id="here">Other</h1><a href="../index.html#top">back</a>'


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ('<a href="docs/other.html#here">', []),
        ('<a href="docs/other.html#gone">', ["docs/other.html#gone: the page has no such anchor"]),
        ('<a href="docs/gone.html">', ["docs/gone.html: there is no such file"]),
        ('<a href="docs/">', ["docs/: there is no such file"]),
        ('<a href="../secret.html">', ["../secret.html: it is outside of the site"]),
        ('<a href="#top">', []),
        ('<a href="#down">', ["#down: the page has no such anchor"]),
        ('<a href="%23a.html">', []),
        ('<img src="a.svg">', []),
        ('<img src="b.svg">', ["b.svg: there is no such file"]),
        ('<script src="b.js?v=1"></script>', ["b.js?v=1: there is no such file"]),
        ('<link rel="stylesheet" href="a.css?v=1">', []),
        ('<a href="mailto:a@b.example"><img src="data:,x">', []),
        ('<a href="https://a.example/x">', []),  # listed, not fetched
        ('<img src="https://a.example/x.png">',
         ["loads https://a.example/x.png from another host"]),
        ('<link href="//a.example/x.css">', ["loads //a.example/x.css from another host"]),
    ],
)  # fmt: skip
def test_a_link_is_checked(tmp_path: Path, body: str, broken: list[str]) -> None:
    site = tmp_path / "site"
    (site / "docs").mkdir(parents=True)
    (tmp_path / "secret.html").touch()
    for name, text in {
        "index.html": f'<body id="top">{body}',
        "docs/other.html": OTHER,
        "#a.html": "",
        "a.svg": "<svg/>",
        "a.css": "a { background: url(a.svg) }",
    }.items():
        (site / name).write_text(text)
    assert check(site).broken == [f"index.html: {problem}" for problem in broken]


@pytest.mark.parametrize(
    ("name", "text", "url"),
    [
        ("a.css", "@font-face { src: url('https://a.example/f.woff2') }", "https://a.example/f.woff2"),
        ("a.css", '@import "https://a.example/a.css";', "https://a.example/a.css"),
        ("a.svg", "<style>a { src: url(http://a.example/f) }</style>", "http://a.example/f"),
        ("a.css", "a { src: url(f.woff2) }", None),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>', None),
    ],
)  # fmt: skip
def test_what_a_style_loads_is_checked(
    tmp_path: Path, name: str, text: str, url: str | None
) -> None:
    (tmp_path / name).write_text(text)
    assert check(tmp_path).broken == ([f"{name}: loads {url} from another host"] if url else [])


def test_external_links_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://b.example"><a href="https://a.example">')
    assert check(tmp_path).external == ["https://a.example", "https://b.example"]

"""Recordings of a report: nothing of this machine is in one, and nothing is loaded for it."""

import re
import socket
from xml.etree import ElementTree as ET

import pytest

from tests.system.tools.recording import COLUMNS, MOST_LINES, TOP, Fact, Line, Text, svg

NAMESPACE = "http://www.w3.org/2000/svg"


def texts(picture: str) -> list[str]:
    """Return the texts of a picture that are not empty, in their order."""
    every = ET.fromstring(picture).iter(f"{{{NAMESPACE}}}text")
    return [text for one in every if (text := (one.text or "").replace("\xa0", " ").strip())]


def test_a_picture_has_the_lines() -> None:
    picture = svg("make demo", [Text("Use", is_title=True), Fact("it runs as", "UID 1"), Text()])
    assert texts(picture) == ["make demo", "Use", "it runs as", "UID 1"]


def test_a_picture_loads_nothing() -> None:
    picture = svg("make demo", [Text("Use")])
    assert re.findall(r"url\(|@import|href=", picture.replace("url(#demo-", "")) == []


def test_a_refusal_has_another_colour() -> None:
    colours = [
        re.findall(r"demo-r2 \{ fill: (#\w+)", svg("t", [Fact("it", seen)]))
        for seen in ("refused: no", "found")
    ]
    assert colours[0]
    assert colours[0] != colours[1]


def test_a_long_line_is_cut() -> None:
    assert texts(svg("t", [Text("x" * (COLUMNS + 1))])) == ["t", "x" * (COLUMNS - 1) + "…"]
    assert texts(svg("t", [Text("x" * COLUMNS)])) == ["t", "x" * COLUMNS]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([Text("x")] * (MOST_LINES + 1), "61 lines"),
        ([Text(f"at {TOP}/docs")], "of this machine"),
        ([Fact("host", socket.gethostname())], "of this machine"),
    ],
)
def test_a_wrong_recording_is_refused(lines: list[Line], problem: str) -> None:
    with pytest.raises(SystemExit, match=problem):
        svg("t", lines)
    assert svg("t", [Text("x")] * MOST_LINES)

"""Report and charts of `make soak`."""

from xml.etree import ElementTree as ET

import pytest

from tests.system.guest.soak.model import Call, Done
from tests.system.support.soak import chart, judging, report
from tests.system.support.soak.report import Run, Wanted
from tests.system.tools import soak

ENTRY = {
    "__MONOTONIC_TIMESTAMP": "1102500000",
    "_SYSTEMD_UNIT": "mcpwrap-gate.service",
    "MESSAGE": "gone",
}
WANTED = Wanted("bookworm", 20, 7)
RUN = Run(WANTED, 1000.0, "all is untouched", 0, [ENTRY])
ANSWERED = Call("short", "1", "answered", 1101.0, 1101.1, 1100.0, 1090.0, mark="a")
FAILED = Call("short", "1", "failed", 1102.0, 1103.0, 1101.1, 1090.0, mark="b", text="cut off")
AGAIN = Call("short", "2", "answered", 1104.0, 1105.0, 1104.0, 1104.0, mark="c")
KILLED = Done("kill gate", "", 1102.0, 1102.0, "SIGKILL 7")


def test_a_good_run() -> None:
    judgement = judging.judged([ANSWERED, FAILED, AGAIN], [KILLED], ["a", "c"])
    text = report.text(RUN, judgement)
    assert "**Good.**" in text
    assert "| kill gate | 1 | 3.00 | 3.00 | 3.00 | 3.00 | 3.00 | 3.00 |" in text
    assert "- kill gate: 1 times cut off" in text
    assert "without an explanation |" in text
    assert report.is_good(RUN, judgement)


@pytest.mark.parametrize(
    ("verify_status", "faults", "recorded", "shown"),
    [
        (0, [], ["a", "c"], "1102.50"),  # nothing explains it: planted by leaving the fault out
        (0, [KILLED], ["a"], "short, c: answered"),  # a lost record
        (1, [KILLED], ["a", "c"], "| 1: all is untouched |"),  # the audit was tampered with
    ],
)
def test_a_bad_run_ends_with_1(
    verify_status: int, faults: list[Done], recorded: list[str], shown: str
) -> None:
    run = Run(WANTED, 0.0, "all is untouched", verify_status, [ENTRY])
    judgement = judging.judged([ANSWERED, FAILED, AGAIN], faults, recorded)
    text = report.text(run, judgement)
    assert not report.is_good(run, judgement)
    assert soak.exit_status(run, judgement) == 1
    assert "**NOT good.**" in text
    assert shown in text


def test_a_chart_is_xml_and_names_its_lines() -> None:
    text = chart.lines("Memory", "MiB", {"a < b": [(0, 1), (60, 3)], "none": []})
    root = ET.fromstring(text)
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Memory", "a < b: 3 MiB", "1.0 min", "3 MiB", "0 MiB"} <= set(texts)
    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    left, right = chart.LEFT, chart.WIDTH - chart.RIGHT
    low = chart.HEIGHT - chart.BOTTOM - (chart.HEIGHT - chart.TOP - chart.BOTTOM) / 3
    assert line.attrib["points"] == f"{left:.1f},{low:.1f} {right:.1f},{chart.TOP:.1f}"


def test_a_chart_of_nothing_is_one() -> None:
    ET.fromstring(chart.lines("Memory", "MiB", {}))

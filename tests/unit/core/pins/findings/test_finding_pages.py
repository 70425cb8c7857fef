"""Pages that list the findings: each has all of them, as the code words them."""

from pathlib import Path

import pytest

from mcpwrap.core.pins.findings.finding_search import KINDS, FindingKind

TREE = Path(__file__).parents[5]
HOW_TO = (TREE / "docs/how-to/accept-changed-tools.md").read_text()
MANUAL = (TREE / "docs/mcpwrap.1.rst").read_text()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_finding_is_on_the_pages(kind: FindingKind) -> None:
    assert f"| `{kind.name}` | {kind.example} | {kind.reason} |" in HOW_TO
    assert f"- *{kind.name}*: {kind.reason[0].lower()}{kind.reason[1:]}" in MANUAL

"""Promises and stories: each row names stories that exist, each story file is named by a row."""

import pytest

from tests.system.support.tiers import FAST
from tests.system.tools import proofs

ROWS = proofs.all_rows()


@pytest.fixture(scope="module")
def fast() -> set[str]:
    return proofs.collected_stories(FAST)


@pytest.mark.parametrize("page", proofs.PAGES)
def test_each_row_names_a_story_that_make_test_runs(page: str, fast: set[str]) -> None:
    rows = list(proofs.rows(page))
    assert rows
    assert [row for row in rows if not fast.intersection(row.stories)] == []


PROMISES = "| promise | stories |\n|---|---|\n| It works. | `a/test_b.py::test_c` |\n"
THREATS = "| attacker | what is left |\n|---|---|\n| agent | `relay` |\n"


@pytest.mark.parametrize(
    ("text", "stories"),
    [
        (PROMISES, [("a/test_b.py::test_c",)]),
        (f"{THREATS}\n{PROMISES}", [("a/test_b.py::test_c",)]),
        (f"{PROMISES}\n{THREATS}", [("a/test_b.py::test_c",)]),  # a table without stories
        (PROMISES.replace("`", ""), [()]),  # a promise without a story is a row all the same
    ],
)
def test_a_row_is_one_of_a_table_of_promises(text: str, stories: list[tuple[str, ...]]) -> None:
    assert [row.stories for row in proofs.of_text("PAGE.md", text)] == stories


def test_each_story_that_is_named_exists() -> None:
    named = {story for row in ROWS for story in row.stories}
    assert named - proofs.written_stories() == set()


def test_each_file_of_stories_is_named() -> None:
    named = {story.partition("::")[0] for row in ROWS for story in row.stories}
    written = {story.partition("::")[0] for story in proofs.written_stories()}
    assert written - named == set()

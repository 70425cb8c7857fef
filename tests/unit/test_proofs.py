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


def test_each_story_that_is_named_exists() -> None:
    named = {story for row in ROWS for story in row.stories}
    assert named - proofs.written_stories() == set()


def test_each_file_of_stories_is_named() -> None:
    named = {story.partition("::")[0] for row in ROWS for story in row.stories}
    written = {story.partition("::")[0] for story in proofs.written_stories()}
    assert written - named == set()

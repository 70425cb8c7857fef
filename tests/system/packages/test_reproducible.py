"""Two builds of a package are the same bytes."""

import filecmp
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.bed import package
from tests.system.support.tiers import only_in_test_all

ANOTHER_FOLDER, ANOTHER_TIME = "srv/somewhere/else", "2031-02-03 04:05:06"
TARGETS = [package.Target("ubuntu24.04", "arm64"), package.Target("fc43", "amd64")]


@pytest.fixture
def folders() -> Iterator[list[Path]]:
    """Return a list for the folders of builds, which go with the test."""
    made: list[Path] = []
    yield made
    for folder in made:
        shutil.rmtree(folder)


def only(folder: Path) -> Path:
    """Return the one package in a folder."""
    (found,) = (path for path in folder.iterdir() if path.suffix in {".deb", ".rpm"})
    return found


@only_in_test_all("builds of a minute each; no other story uses their packages")
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.name)
def test_two_builds_are_the_same_bytes(target: package.Target, folders: list[Path]) -> None:
    folders.append(package.build_anew(target))
    former = os.umask(0o027)
    try:
        folders.append(package.build_anew(target, folder=ANOTHER_FOLDER, clock=ANOTHER_TIME))
    finally:
        os.umask(former)
    # The twin: with the time of the build in place of that of the version they differ.
    folders.append(package.build_anew(target, epoch=str(int(time.time()))))
    first, second, third = map(only, folders)
    assert filecmp.cmp(first, second, shallow=False)
    assert not filecmp.cmp(first, third, shallow=False)

"""Two builds of a package are the same bytes."""

import filecmp
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.bed import package
from tests.system.support.tiers import only_in_test_all

ANOTHER_FOLDER, ANOTHER_TIME = "srv/somewhere/else", "2031-02-03 04:05:06"


@pytest.fixture
def folders() -> Iterator[list[Path]]:
    """Return a list for the folders of builds, which go with the test."""
    made: list[Path] = []
    yield made
    for folder in made:
        shutil.rmtree(folder)


def built(folders: list[Path], *, folder: str = "build", clock: str = "", epoch: str = "") -> Path:
    """Build again, and return the package."""
    target = package.Target(TARGET, "arm64")
    folders.append(package.build_anew(target, folder=folder, clock=clock, epoch=epoch))
    (found,) = folders[-1].glob("*.deb")
    return found


TARGET = "ubuntu24.04"


@only_in_test_all("builds of several minutes; no other story uses their packages")
def test_two_builds_are_the_same_bytes(folders: list[Path]) -> None:
    first = built(folders)
    second = built(folders, folder=ANOTHER_FOLDER, clock=ANOTHER_TIME)
    assert filecmp.cmp(first, second, shallow=False)
    # The twin: with the time of the build in place of that of the version they differ.
    third = built(folders, epoch=str(int(time.time())))
    assert not filecmp.cmp(first, third, shallow=False)

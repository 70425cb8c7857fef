"""Distribution of a machine: the first of os-release(5)'s files that exists."""

from pathlib import Path

import pytest

from mcpwrap.linux import os_release

FEDORA, DEBIAN = "ID=fedora\n", "ID=debian\n"


@pytest.mark.parametrize(
    ("etc", "usr", "family"),
    [
        (DEBIAN, FEDORA, "debian"),
        (None, FEDORA, "fedora"),
        (None, None, "unknown"),
        ("", FEDORA, "unknown"),  # an empty file is one too
    ],
)
def test_the_first_file_that_exists_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    etc: str | None,
    usr: str | None,
    family: str,
) -> None:
    files = tmp_path / "etc", tmp_path / "usr"
    for file, text in zip(files, (etc, usr), strict=True):
        if text is not None:
            file.write_text(text)
    monkeypatch.setattr(os_release, "FILES", tuple(map(str, files)))
    assert os_release.distribution().family == family


def test_a_folder_or_bytes_in_its_place_are_no_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os_release, "FILES", (str(tmp_path),))
    assert os_release.distribution().family == "unknown"
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\xff\xfe" * 200_000 + b"\nID=debian\n")  # beyond what is read
    monkeypatch.setattr(os_release, "FILES", (str(garbage),))
    assert os_release.distribution().family == "unknown"

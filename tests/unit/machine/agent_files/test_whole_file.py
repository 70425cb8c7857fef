"""Opening a whole file of an agent, or the reason for a failure."""

import os
from pathlib import Path

import pytest

from mcpwrap.machine.agent_files.files import UnreadableFile
from mcpwrap.machine.agent_files.whole_file import OpenedFile, open_whole


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "1:2: not JSON"),
        (b'{"a": "\xff"}', "1:8: not UTF-8"),
        (b" " * 2**20 + b"{}", "over 1 MiB"),
    ],
)
def test_what_cannot_be_opened_is_reported_without_its_path(
    tmp_path: Path, content: bytes, why: str
) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(content)
    found = open_whole(file, os.geteuid(), "json", within=None, max_bytes=2**20)
    assert isinstance(found, UnreadableFile)
    assert found.why.startswith(why)
    assert "nothing was changed" not in found.why


def test_a_file_is_opened_or_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    assert open_whole(file, os.geteuid(), "toml", within=tmp_path, max_bytes=9) is None
    file.write_text("a = 1")
    found = open_whole(file, os.geteuid(), "toml", within=tmp_path, max_bytes=9)
    assert isinstance(found, OpenedFile)
    assert (found.opened.document.data, found.content) == ({"a": 1}, b"a = 1")

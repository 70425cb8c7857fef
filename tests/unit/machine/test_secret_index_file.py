"""Index of secrets on this machine: one reader for root's programs and for all others."""

from pathlib import Path

import pytest

from mcpwrap.errors import McpwrapError
from mcpwrap.machine import secret_index_file
from mcpwrap.plan import paths


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b'{"format":9}', ["format 9, and this version knows 1", "install the version of"]),
        (b'{"by_server":{"\xff":{}}}', ["damaged: ", "restore the file from a backup"]),
    ],
)
def test_an_index_that_cannot_be_read_is_reported_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, lines: list[str]
) -> None:
    file = tmp_path / "secrets.json"
    file.write_bytes(text)
    monkeypatch.setattr(paths, "SECRETS", str(file))
    monkeypatch.setattr(secret_index_file, "read_roots_own", lambda path: Path(path).read_bytes())
    with pytest.raises(McpwrapError) as refused:
        secret_index_file.read()
    assert refused.value.where == str(file)
    assert refused.value.problem.startswith(lines[0])
    assert refused.value.fix.startswith(lines[1])
    assert refused.value.code == "E-SECRET-INDEX-DAMAGED"


def test_a_new_machine_has_an_empty_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "SECRETS", str(tmp_path / "secrets.json"))
    assert secret_index_file.read().by_server == {}

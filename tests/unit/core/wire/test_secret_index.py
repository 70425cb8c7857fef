"""Index of secrets: of this format and undamaged, or a reason and a remedy."""

import pytest

from mcpwrap.core.secrets import at_rest
from mcpwrap.core.wire.secret_index import SecretIndex, SecretIndexError, SecretVersion, decode

SET = SecretVersion(version=3, is_set=True, changed_at="2026-01-01T00:00:00+00:00")
INDEX = SecretIndex().with_one("git", "TOKEN", SET)


def test_an_index_is_read_as_it_was_written() -> None:
    assert decode(at_rest.encode(INDEX).encode()) == INDEX


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        (b"", "damaged: ", "restore the file from a backup"),
        (b'{"by_server": {"git": 1}}', "damaged: ", "restore the file from a backup"),
        (b'{"by_server": {"\xff": {}}}', "damaged: ", "restore the file from a backup"),
        (b'{"format": 9}', "format 9, and this version knows 1", "install the version "),
    ],
)
def test_any_other_file_is_refused(text: bytes, problem: str, fix: str) -> None:
    with pytest.raises(SecretIndexError, match=problem) as refused:
        decode(text)
    assert refused.value.fix.startswith(fix)

"""URIs of files of runs: one spelling for each file."""

import pytest

from mcpwrap.core.execution import run_uris
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.text import uris

ID = "0123456789abcdef" * 2


@pytest.mark.parametrize("name", ["a.csv", "a b.csv", "é.txt", "100%.txt", "a..b", "?#&;~", "日本"])
def test_a_name_returns_from_its_uri(name: str) -> None:
    uri = str(RunUri(ID, name))
    assert run_uris.parse(uri) == RunUri(ID, name)
    assert run_uris.can_name(name)
    assert uris.is_normal(uri)  # so the gate forwards it


@pytest.mark.parametrize(
    "uri",
    [
        "", "run://", f"run://{ID}", f"run://{ID}/", f"run://{ID[:-1]}/a", f"run://{ID.upper()}/a",
        f"RUN://{ID}/a", f"run://{ID}/a/b", f"run://{ID}/a?b", f"run://{ID}/a#b", f"run://{ID}/..",
        f"run://{ID}/.a", f"run://{ID}/%2e%2e", f"run://{ID}/%61", f"run://{ID}/a b",
        f"run://{ID}/a%2Fb", f"run://{ID}/a%00", f"run://{ID}/%ff", f"run://{ID}/a%e9",
        f"run://{ID}/a%C3%a9", f"run://{ID}/{'x' * 256}", f" run://{ID}/a", f"run://{ID}/a\n",
    ],
)  # fmt: skip
def test_every_other_text_is_refused(uri: str) -> None:
    assert run_uris.parse(uri) is None


@pytest.mark.parametrize("name", ["a\\b", ".a", "a/b", "", "x" * 256])
def test_some_names_have_no_uri(name: str) -> None:
    assert not run_uris.can_name(name)

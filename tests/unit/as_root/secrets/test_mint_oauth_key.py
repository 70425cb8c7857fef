"""Key that seals a server's logins: made once, by the program."""

import base64
import threading
from pathlib import Path

import pytest

from mcpwrap.as_root.secrets import command, mint, store
from mcpwrap.core.names import OAUTH_KEY
from mcpwrap.core.secrets import aead
from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths

pytestmark = pytest.mark.usefixtures("store_folder")


def held(name: str = "remote") -> tuple[str, int]:
    found = store.take(name, [OAUTH_KEY])[OAUTH_KEY]
    return found.value, found.version


def test_it_is_made_once_for_each_server() -> None:
    mint.ensure_key("remote", OAUTH_KEY)
    value, version = held()
    assert len(base64.b64decode(value, validate=True)) == aead.KEY_BYTES
    mint.ensure_key("remote", OAUTH_KEY)
    assert held() == (value, version) == (value, 1)
    mint.ensure_key("other", OAUTH_KEY)
    assert held("other")[0] != value


def test_simultaneous_starts_make_one_key() -> None:
    threads = [
        threading.Thread(target=mint.ensure_key, args=["remote", OAUTH_KEY]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held()[1] == 1


def test_it_follows_a_new_store_key(capsys: pytest.CaptureFixture[str]) -> None:
    mint.ensure_key("remote", OAUTH_KEY)
    before = held()
    command.rekey(None)
    assert held() == before
    assert "1 secrets are sealed with a new store key" in capsys.readouterr().out


def test_a_removed_key_is_made_again() -> None:
    mint.ensure_key("remote", OAUTH_KEY)
    before = held()
    command.remove("remote", OAUTH_KEY)
    mint.ensure_key("remote", OAUTH_KEY)
    value, version = held()
    assert (value != before[0], version) == (True, 2)


def test_a_damaged_key_is_left_and_reported() -> None:
    mint.ensure_key("remote", OAUTH_KEY)
    path = Path(paths.sealed("remote", OAUTH_KEY))
    path.write_text("{}")
    mint.ensure_key("remote", OAUTH_KEY)
    with pytest.raises(
        McpwrapError, match=f"secret remove remote {OAUTH_KEY}`, restart it and log in"
    ):
        held()

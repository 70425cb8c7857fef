"""Key that seals the OAuth logins of a server, made at a start of its wrapper if missing."""

import base64
import os
from datetime import UTC, datetime

from mcpwrap.as_root.lock import in_turn
from mcpwrap.as_root.secrets import store
from mcpwrap.core.names import OAUTH_KEY
from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.at_rest import Label, Setting
from mcpwrap.linux import root_files
from mcpwrap.plan import paths


def ensure(name: str) -> None:
    """Make the key with which logins to the server `name` are sealed, unless there is one.

    A key that is there but does not open is left: whoever restores a backup has it again.

    Raises:
        McpwrapError: the store cannot be read, or has no key of its own.
        OSError: it cannot be written.
    """
    with in_turn(paths.SECRETS_LOCK):
        before = store.settings()
        known = before.of(name, OAUTH_KEY)
        if known and known.is_set:
            return
        label = Label(name, OAUTH_KEY, known.version + 1 if known else 1)
        value = base64.b64encode(os.urandom(aead.KEY_BYTES)).decode()
        store_keys, made = store.keys_or_new()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        setting = Setting(version=label.version, is_set=True, changed_at=now)
        sealed = store.sealed_file(value, label, store_keys[0])
        changed = store.settings_file(before.with_one(name, OAUTH_KEY, setting))
        root_files.replace_all([*made, sealed, changed])

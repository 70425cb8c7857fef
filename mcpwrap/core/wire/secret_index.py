"""Index of secrets, `/var/lib/mcpwrap/secrets.json`: their versions, and no value.

Root writes it, and every account can read it.
"""

import msgspec

FORMAT = 1


class SecretIndexError(ValueError):
    """Index that is damaged or of another format; `fix` is the remedy."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.fix = fix


class SecretVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Last change of one secret. A removed secret keeps its version, so no version repeats."""

    version: int
    is_set: bool
    changed_at: str  # RFC 3339, UTC


class SecretIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of `secrets.json`: by server, then by key."""

    format: int = FORMAT
    by_server: dict[str, dict[str, SecretVersion]] = {}

    def of(self, name: str, key: str) -> SecretVersion | None:
        """Return the last change of one secret; None if it was never set."""
        return self.by_server.get(name, {}).get(key)

    def with_one(self, name: str, key: str, setting: SecretVersion) -> "SecretIndex":
        """Return a copy of the index with this version of one secret."""
        mine = {**self.by_server.get(name, {}), key: setting}
        return SecretIndex(by_server={**self.by_server, name: dict(sorted(mine.items()))})

    def without_server(self, name: str) -> "SecretIndex":
        """Return a copy of the index without the secrets of one server."""
        return SecretIndex(by_server={n: s for n, s in self.by_server.items() if n != name})


def decode(text: bytes) -> SecretIndex:
    """Parse the index.

    Raises:
        SecretIndexError: it is damaged, or of another format.
    """
    try:
        found = msgspec.json.decode(text, type=SecretIndex)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SecretIndexError(f"damaged: {error}", "restore the file from a backup") from error
    if found.format != FORMAT:
        raise SecretIndexError(
            f"format {found.format}, and this version knows {FORMAT}",
            "install the version of mcpwrap that wrote it, or a later one",
        )
    return found

"""Credentials: headers from the wrapper, and their redaction from the server's messages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from mcpwrap.core.http import header_values
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.secrets.redact import Redactor, is_redactable

_UNREADABLE = (
    "The credential of this server cannot be read: see the journal of its wrapper "
    "[E-REMOTE-CREDENTIAL]"
)
_UNFIT = (
    "The credential of this server cannot be sent in a header: it has a character that is not "
    "allowed there [E-REMOTE-CREDENTIAL]"
)
_NAME = re.compile(header_values.FIELD_NAME)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 section 5.5
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,15} +(\S+)")  # section 11.4: Bearer X


@dataclass(slots=True)
class Credentials:
    """Credentials: of a file, which the wrapper replaces at each new secret, or fixed ones."""

    path: Path | None
    _seen: tuple[int, int, int] | None = None
    _headers: dict[str, str] = field(default_factory=dict)
    _value_by_name: dict[str, str] = field(default_factory=dict)  # all that were ever sent
    _redactor: Redactor = field(default_factory=lambda: Redactor({}))

    @classmethod
    def fixed(cls, headers: Mapping[str, str]) -> Self:
        """Return credentials that stay as they are.

        Raises:
            RemoteError: a value cannot be sent in a header.
        """
        found = cls(None)
        found._take(headers)
        return found

    def headers(self) -> dict[str, str]:
        """Return the headers that each request has now.

        Raises:
            RemoteError: the file cannot be read, or has no valid headers.
        """
        if self.path is None:
            return self._headers
        try:
            found = self.path.stat()
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen != self._seen:
                self._take(msgspec.json.decode(self.path.read_bytes(), type=dict[str, str]))
                self._seen = seen
        except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise RemoteError(_UNREADABLE) from error
        return self._headers

    def remember(self, value_by_name: Mapping[str, str]) -> None:
        """Redact these values too."""
        if value_by_name.items() <= self._value_by_name.items():
            return
        self._value_by_name |= value_by_name
        self._redactor = Redactor(self._value_by_name)

    def clean(self, line: bytes) -> bytes:
        """Return a line, newline included, with every value redacted that was ever sent."""
        return self._redactor.feed(line)

    def _take(self, given: Mapping[str, str]) -> None:
        headers = {name: value.strip() for name, value in given.items()}
        for name, value in headers.items():
            if not _NAME.fullmatch(name) or _CONTROL.search(value):
                raise RemoteError(_UNFIT)
        for name, value in headers.items():
            self._remember(name, _secret_of(value))
        self._redactor = Redactor(self._value_by_name)
        self._headers = headers

    def _remember(self, name: str, secret: str) -> None:
        if secret in self._value_by_name.values():
            return
        key, number = name, 1
        while key in self._value_by_name:
            number += 1
            key = f"{name} {number}"
        self._value_by_name[key] = secret


def _secret_of(value: str) -> str:
    """Return the token after the scheme, if it is long enough to redact; else the whole value."""
    found = _WITH_SCHEME.fullmatch(value)
    return found[1] if found and is_redactable(found[1]) else value

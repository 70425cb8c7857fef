"""Reader of one TOML table: keys are read by type, and errors are collected."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from mcpwrap.config.model import Problem
from mcpwrap.config.value_parsers import BadValueError

T = TypeVar("T")
MAX_ITEMS = 256
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


class TomlTableReader:
    """TOML table. No method raises: a wrong key gives its default, and a problem in `problems`."""

    def __init__(
        self, table: Mapping[str, object], *, file: str, name: str, problems: list[Problem]
    ) -> None:
        self._table = dict(table)
        self._file = file
        self._name = name
        self._problems = problems

    def has(self, key: str) -> bool:
        """Say whether the key is still to be read."""
        return key in self._table

    def note(self, key: str, problem: str, fix: str) -> None:
        """Add a problem at `key` of this table."""
        self._problems.append(Problem(self._file, self._name, key, problem, fix))

    def one(self, key: str, understand: Callable[[str], T], default: T) -> T:
        """Return the string at `key`, understood."""
        value = self._table.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, str):
            self.note(key, f"{_kind(value)} where text belongs", f'write `{key} = "…"`')
            return default
        return self._understood(key, understand, value, default)

    def many(
        self,
        key: str,
        understand: Callable[[str], T],
        default: tuple[T, ...] = (),
        *,
        may_be_empty: bool = True,
    ) -> tuple[T, ...]:
        """Return the list of strings at `key`, each understood; all that are wrong are noted."""
        value = self._table.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.note(key, f"{_kind(value)} where a list of text belongs", f'write `{key} = ["…"]`')
            return default
        if not value and not may_be_empty:
            self.note(key, "an empty list: nobody", "name at least one, or take the key out")
        if len(value) > MAX_ITEMS:
            self.note(key, f"{len(value)} entries", f"write at most {MAX_ITEMS}")
            return default
        good = (self._understood(f"{key}[{i}]", understand, v, None) for i, v in enumerate(value))
        return tuple(item for item in good if item is not None)

    def flag(self, key: str, *, usual: bool = False) -> bool:
        """Return the true or false at `key`; absent is what is usual."""
        value = self._table.pop(key, usual)
        if isinstance(value, bool):
            return value
        self.note(key, f"{_kind(value)} where true or false belongs", f"write `{key} = true`")
        return usual

    def count(self, key: str, default: int, last: int) -> int:
        """Return the whole number at `key`, from 1 to `last`."""
        value = self._table.pop(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= last:
            return value
        self.note(key, f"not a whole number from 1 to {last}", f"write `{key} = {default}`")
        return default

    def table(self, key: str) -> "TomlTableReader":
        """Return the table at `key`; absent is empty."""
        value = self._table.pop(key, {})
        if not isinstance(value, dict):
            self.note(key, f"{_kind(value)} where a table belongs", f"write `{key} = {{ … }}`")
            value = {}
        name = f"{self._name[:-1]}.{key}]" if self._name else f"[{key}]"
        return TomlTableReader(value, file=self._file, name=name, problems=self._problems)

    def flag_or_table(self, key: str) -> "TomlTableReader | None":
        """Return the table at `key`, an empty one for true; None for false or nothing."""
        value = self._table.get(key, False)
        if isinstance(value, dict):
            return self.table(key)
        is_there = self.flag(key)
        return self.table(key) if is_there else None

    def refuse(self, key: str, problem: str, fix: str) -> None:
        """Note a key that does not belong here, if it stands there; it is read no more."""
        if key in self._table:
            del self._table[key]
            self.note(key, problem, fix)

    def names(self) -> list[str]:
        """Return the keys that are still to be read."""
        return list(self._table)

    def finish(self, known: tuple[str, ...]) -> None:
        """Note every key that nobody asked for."""
        for key in self._table:
            shown = key if _PLAIN_KEY.fullmatch(key) else ascii(key)
            self.note(shown, "no such setting", f"write one of: {', '.join(known)}")

    def _understood(self, key: str, understand: Callable[[str], T], value: str, default: T) -> T:
        try:
            return understand(value)
        except BadValueError as problem:
            self.note(key, problem.problem, problem.fix)
            return default


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, dict) else "a date")

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
    """Reader of one TOML table.

    No method raises: for a wrong value it returns the default, and adds a problem to `problems`.
    """

    def __init__(
        self, table: Mapping[str, object], *, file: str, name: str, problems: list[Problem]
    ) -> None:
        self._table = dict(table)
        self._file = file
        self._name = name
        self._problems = problems

    def has(self, key: str) -> bool:
        """Return whether the table has the key and it was not read yet."""
        return key in self._table

    def has_table(self, key: str) -> bool:
        """Return whether the table has a table at the key and it was not read yet."""
        return isinstance(self._table.get(key), dict)

    def has_text(self, key: str) -> bool:
        """Return whether the table has a text at the key and it was not read yet."""
        return isinstance(self._table.get(key), str)

    def note(self, key: str, problem: str, fix: str, *, code: str) -> None:
        """Add a problem at `key` of this table."""
        self._problems.append(Problem(self._file, self._name, key, problem, fix, code=code))

    def one(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """Return the string at `key`, parsed."""
        value = self._table.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, str):
            self.note(
                key,
                f"{_kind(value)} where text belongs",
                f'write `{key} = "…"`',
                code="E-CONFIG-TYPE",
            )
            return default
        return self._parsed(key, parse, value, default)

    def many(
        self,
        key: str,
        parse: Callable[[str], T],
        default: tuple[T, ...] = (),
        *,
        may_be_empty: bool = True,
    ) -> tuple[T, ...]:
        """Return the list of strings at `key`, each parsed; every wrong one is noted."""
        value = self._table.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.note(
                key,
                f"{_kind(value)} where a list of text belongs",
                f'write `{key} = ["…"]`',
                code="E-CONFIG-TYPE",
            )
            return default
        if not value and not may_be_empty:
            self.note(
                key,
                "an empty list",
                "write at least one entry, or remove the key",
                code="E-CONFIG-EMPTY-LIST",
            )
        if len(value) > MAX_ITEMS:
            self.note(
                key, f"{len(value)} entries", f"write at most {MAX_ITEMS}", code="E-CONFIG-TOO-MANY"
            )
            return default
        good = (self._parsed(f"{key}[{i}]", parse, v, None) for i, v in enumerate(value))
        return tuple(item for item in good if item is not None)

    def flag(self, key: str, *, usual: bool = False) -> bool:
        """Return the true or false at `key`; `usual` if it is absent."""
        value = self._table.pop(key, usual)
        if isinstance(value, bool):
            return value
        self.note(
            key,
            f"{_kind(value)} where true or false belongs",
            f"write `{key} = true`",
            code="E-CONFIG-TYPE",
        )
        return usual

    def count(self, key: str, default: int, last: int) -> int:
        """Return the whole number at `key`, from 1 to `last`."""
        value = self._table.pop(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= last:
            return value
        self.note(
            key,
            f"not a whole number from 1 to {last}",
            f"write `{key} = {default}`",
            code="E-CONFIG-NUMBER",
        )
        return default

    def table(self, key: str) -> "TomlTableReader":
        """Return the table at `key`; an empty one if it is absent."""
        value = self._table.pop(key, {})
        if not isinstance(value, dict):
            self.note(
                key,
                f"{_kind(value)} where a table belongs",
                f"write `{key} = {{ … }}`",
                code="E-CONFIG-TYPE",
            )
            value = {}
        name = f"{self._name[:-1]}.{key}]" if self._name else f"[{key}]"
        return TomlTableReader(value, file=self._file, name=name, problems=self._problems)

    def flag_or_table(self, key: str) -> "TomlTableReader | None":
        """Return the table at `key`, an empty one for true; None if it is false or absent."""
        value = self._table.get(key, False)
        if isinstance(value, dict):
            return self.table(key)
        is_there = self.flag(key)
        return self.table(key) if is_there else None

    def refuse(self, key: str, problem: str, fix: str, *, code: str) -> None:
        """Note a key that does not belong in this table, if present, and drop it."""
        if key in self._table:
            del self._table[key]
            self.note(key, problem, fix, code=code)

    def names(self) -> list[str]:
        """Return the keys that were not read yet."""
        return list(self._table)

    def valid_names(self, parse: Callable[[str], str]) -> list[str]:
        """Return the keys that this parser accepts; every other one is noted."""
        return [key for key in self._table if self._parsed(ascii(key), parse, key, None)]

    def finish(self, known: tuple[str, ...], ours: tuple[str, ...] = ()) -> None:
        """Note every key that was not read. `ours` are the keys of its sub-table `mcpwrap`."""
        for key in self._table:
            shown = key if _PLAIN_KEY.fullmatch(key) else ascii(key)
            fix = f"write one of: {', '.join(known)}"
            if key in ours:
                fix = f"move it to [{self._name[1:-1]}.mcpwrap]"
            self.note(shown, "no such setting", fix, code="E-CONFIG-UNKNOWN-KEY")

    def _parsed(self, key: str, parse: Callable[[str], T], value: str, default: T) -> T:
        try:
            return parse(value)
        except BadValueError as problem:
            self.note(key, problem.problem, problem.fix, code=problem.code)
            return default


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, dict) else "a date")

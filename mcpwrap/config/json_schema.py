"""JSON Schemas (2020-12) of policy files and configuration files, for editors.

A schema refuses what a type can state: unknown and missing keys, other types, other words. What
depends on several values is left to the parsers. Of what they accept, it refuses only a setting at
its default in the table of a server for which it has no effect.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from mcpwrap.config.file_types.config_file import ConfigFile
from mcpwrap.config.file_types.fields import FileTable, KeyConstraint, key_of
from mcpwrap.config.policy.file_types import PolicyFile

Schema = dict[str, object]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[object, Schema] = {
    Any: {},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    int: {"type": "integer"},
    str: {"type": "string"},
}
_LENGTHS = {"array": "Items", "object": "Properties", "string": "Length"}


def policy_schema() -> Schema:
    """Return the schema of a policy file."""
    return _schema("policy", "Policy of mcpwrap", PolicyFile)


def config_schema() -> Schema:
    """Return the schema of `config.toml` and of the files in `conf.d`."""
    return _schema("config", "Configuration of mcpwrap", ConfigFile)


def _schema(kind: str, title: str, file: type[FileTable]) -> Schema:
    tables = _Tables()
    return {
        "$schema": DIALECT,
        "$id": f"urn:mcpwrap:schema:{kind}",
        "title": title,
        **tables.schema_of(file),
        "$defs": tables.schema_by_name,
    }


class _Tables:
    """Schemas of the tables to which a file's own table refers."""

    def __init__(self) -> None:
        self.schema_by_name: dict[str, Schema] = {}

    def schema_of(self, table: type[FileTable]) -> Schema:
        """Return the schema of a table, and add those to which it refers."""
        types = table.types_by_attribute
        return {
            "type": "object",
            "description": table.__doc__,
            "properties": {key_of(name): self._value(kind) for name, kind in types.items()},
            "required": [key_of(name) for name in types if not hasattr(table, name)],
            "additionalProperties": False,
            **table.relations,
        }

    def _value(self, kind: object) -> Schema:
        """Return the schema of values of a type."""
        if arguments := get_args(kind):
            return self._composed(get_origin(kind), *arguments)
        if isinstance(kind, type) and issubclass(kind, FileTable):
            return self._reference(kind)
        return dict(_TYPES[kind])

    def _composed(self, origin: object, *arguments: Any) -> Schema:
        if origin is Annotated:
            return self._constrained(*arguments)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is list:
            return _without_empty({"type": "array", "items": self._value(*arguments)})
        if origin is dict:
            return self._dictionary(*arguments)
        return {"anyOf": [self._value(one) for one in arguments]}  # union

    def _constrained(self, kind: object, *constraints: KeyConstraint) -> Schema:
        schema = self._value(kind)
        for one in constraints:
            schema.update(_words(one, _LENGTHS.get(str(schema.get("type", "object")), "")))
        return schema

    def _dictionary(self, key: object, value: object) -> Schema:
        names = {word: what for word, what in self._value(key).items() if word != "type"}
        return _without_empty(
            {"type": "object", "propertyNames": names, "additionalProperties": self._value(value)}
        )

    def _reference(self, table: type[FileTable]) -> Schema:
        if table.__name__ not in self.schema_by_name:
            self.schema_by_name[table.__name__] = self.schema_of(table)
        return {"$ref": f"#/$defs/{table.__name__}"}


def _words(constraint: KeyConstraint, length: str) -> Iterator[tuple[str, object]]:
    """Yield the words of a constraint. `length` is what is counted in values of the type."""
    yield from _without_empty(
        {
            "description": constraint.description,
            "examples": list(constraint.examples),
            "pattern": constraint.pattern,
        }
    ).items()
    bounds = {
        "minimum": constraint.ge,
        "maximum": constraint.le,
        f"min{length}": constraint.min_length,
        f"max{length}": constraint.max_length,
    }
    yield from ((word, bound) for word, bound in bounds.items() if bound is not None)


def _without_empty(schema: Schema) -> Schema:
    return {word: what for word, what in schema.items() if what not in ("", [], {})}


SCHEMAS: Mapping[str, Callable[[], Schema]] = {"config": config_schema, "policy": policy_schema}

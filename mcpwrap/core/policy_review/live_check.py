"""Rules of a policy that no listed tool meets, and conditions on arguments that no tool has.

The tools are those that were accepted at the gate. A server whose tools are not known counts as one
that may have any.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mcpwrap.core.policy.argument_path import PathStep, steps_of
from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Policy,
    Rule,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.globs import matches_any

Schemas = Mapping[str, Json]  # inputSchema by the name of a tool
_KINDS = {SQL_ARGUMENTS, SHELL_ARGUMENTS}
_UNIONS = ("anyOf", "oneOf", "allOf", "then", "else")
_DESCRIBING = {"properties", "items", "prefixItems", "$ref", *_UNIONS}
_MAX_DEPTH = 32  # of references and unions


@dataclass(frozen=True, slots=True)
class ListedTools:
    """Tools of the configured servers; None where they are not known."""

    by_server: Mapping[str, Schemas | None]

    def unknown(self) -> list[str]:
        """Return the servers whose tools are not known."""
        return sorted(name for name, tools in self.by_server.items() if tools is None)


class DeadRule(msgspec.Struct, frozen=True):
    """Rule, or condition of a rule, that can never apply to a listed tool."""

    rule: str
    problem: str
    argument: str = ""  # of the condition; "" for the rule


def dead_rules(policy: Policy, listed: ListedTools) -> list[DeadRule]:
    """Return what can never apply, in the order of the rules. Rules on methods are not checked."""
    found: list[DeadRule] = []
    for rule in policy.rules:
        if rule.tools:
            found += _of_rule(rule, listed)
    return found


def _of_rule(rule: Rule, listed: ListedTools) -> Iterator[DeadRule]:
    servers = [name for name in listed.by_server if matches_any(rule.servers, name)]
    if not servers:
        yield DeadRule(rule.name, f"no configured server is {_either(rule.servers)}")
        return
    known = [tools for name in servers if (tools := listed.by_server[name]) is not None]
    if len(known) < len(servers):
        return
    met = [schema for tools in known for schema in _met(rule, tools)]
    if not met:
        yield DeadRule(rule.name, f"no listed tool is {_either(rule.tools)}")
        return
    for condition in rule.when:
        about = condition if isinstance(condition, ArgumentCondition) else condition.condition
        if about.arg not in _KINDS and not any(_has(schema, about.arg) for schema in met):
            yield DeadRule(
                rule.name, f"no tool that it meets has the argument {about.arg}", about.arg
            )


def _met(rule: Rule, tools: Schemas) -> list[Json]:
    return [schema for tool, schema in tools.items() if matches_any(rule.tools, tool)]


def _either(globs: Sequence[str]) -> str:
    return " or ".join(globs)


def _has(schema: Json, path: str) -> bool:
    return _may_have(schema, schema, steps_of(path), _MAX_DEPTH)


def _may_have(root: Json, schema: Json, steps: Sequence[PathStep], depth: int) -> bool:
    """Return whether a schema has a value at a path, or leaves open whether there is one."""
    if not steps or not isinstance(schema, dict) or depth == 0:
        return schema is not False
    if isinstance(schema.get("$ref"), str):
        return _may_have(root, _referenced(root, str(schema["$ref"])), steps, depth - 1)
    if any(_may_have(root, part, steps, depth - 1) for part in _parts(schema)):
        return True
    if isinstance(steps[0], str):
        return _object_may_have(root, schema, steps, depth)
    return any(_may_have(root, each, steps[1:], depth - 1) for each in _elements(schema))


def _object_may_have(
    root: Json, schema: dict[str, Json], steps: Sequence[PathStep], depth: int
) -> bool:
    step = steps[0]
    properties = schema.get("properties")
    if isinstance(properties, dict) and step in properties:
        return _may_have(root, properties[str(step)], steps[1:], depth - 1)
    if "patternProperties" in schema or schema.get("additionalProperties", False) is not False:
        return True
    # An object within the arguments that says nothing of its keys has any; the arguments have none.
    is_within = schema is not root and not _parts(schema)
    says_nothing = not properties and "additionalProperties" not in schema
    return is_within and says_nothing and _is_a(schema, "object")


def _elements(schema: dict[str, Json]) -> list[Json]:
    """Return the schemas of the elements of a list."""
    if not _is_a(schema, "array"):
        return []
    return [*_listed(schema.get("prefixItems")), *_listed(schema.get("items", True))]


def _parts(schema: dict[str, Json]) -> list[Json]:
    """Return the schemas that are combined in one, but for those that describe no keys."""
    parts = [part for key in _UNIONS for part in _listed(schema.get(key))]
    return [part for part in parts if isinstance(part, dict) and _DESCRIBING & part.keys()]


def _is_a(schema: dict[str, Json], kind: str) -> bool:
    return "type" not in schema or kind in _listed(schema["type"])


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _referenced(root: Json, reference: str) -> Json:
    """Return the schema that a reference leads to; True, which is any, for one elsewhere."""
    if not reference.startswith("#"):
        return True
    found: Json = root
    for name in reference.removeprefix("#").split("/")[1:]:
        if not isinstance(found, dict) or name not in found:
            return True
        found = found[name]
    return found

"""Arguments that are SQL or shell command lines, by schemas and by names."""

import json
from pathlib import Path

import pytest

from mcpwrap.core.policy.argument_path import PathMarker
from mcpwrap.core.policy.arguments.kinds import (
    ArgumentKind,
    KnownTools,
    SchemaKinds,
    is_for_sql,
)
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.protocol.json_value import Json

REAL = Path(__file__).parents[4] / "shared/definitions/real"
SQL, SHELL, OTHER = ArgumentKind.SQL, ArgumentKind.SHELL, ArgumentKind.OTHER
STRING: Json = {"type": "string"}


@pytest.mark.parametrize(
    ("tool", "server", "truth"),
    [
        ("read_query", "x", True),
        ("execute_sql", "x", True),
        ("executeSql", "x", True),
        ("pg_execute_query", "x", True),
        ("mysql_query", "x", True),
        ("query", "x", True),
        ("query", "postgres", True),
        ("list_items", "sqlite-data", True),
        ("query_database", "x", True),
        ("search_database", "x", False),
        ("search_docs", "supabase", False),
        ("nosql_find", "x", False),
        ("search", "web", False),
        ("notion_query", "notion", False),
    ],
)
def test_names_tell_a_tool_for_sql(tool: str, server: str, truth: bool) -> None:  # noqa: FBT001
    assert is_for_sql(tool, server) is truth


@pytest.mark.parametrize(
    ("key", "about", "kind"),
    [
        ("query", {"type": "string", "description": "SELECT SQL query to execute"}, SQL),
        ("query", {"type": "string", "description": "The SQL query to run"}, SQL),
        ("stmt", {"type": "string", "description": "SQL to execute"}, SQL),
        ("input", {"type": "string", "title": "Sql", "description": ""}, SQL),
        ("text", {"type": "string", "description": "A PostgreSQL query"}, SQL),
        ("queries", {"type": "array", "items": STRING, "description": "SQL statements"}, SQL),
        ("query", {"anyOf": [STRING], "description": "Query written in SQL"}, SQL),
        ("query", {"type": "string", "description": "Search query"}, OTHER),
        ("query", {"type": "string", "description": "Natural language, turned into an SQL query"},
         OTHER),
        ("query", {"type": "string", "description": "JQL query"}, OTHER),
        ("sql", {"type": "string", "description": "SQL with regex"}, None),
        ("dialect", {"type": "string", "description": "SQL dialect"}, None),
        ("dialect", {"type": "string", "enum": ["a"], "description": "SQL query"}, OTHER),
        ("use_sql", {"type": "boolean", "description": "SQL query"}, OTHER),
        ("table", {"type": "string", "description": "Name of the SQL table"}, None),
        ("command", {"type": "string", "description": "Shell command"}, SHELL),
        ("c", {"type": "string", "description": "The command line to execute"}, SHELL),
        ("command", {"type": "string", "description": "Which editor command: view or create"},
         None),
        ("query", 5, None),
    ],
)  # fmt: skip
def test_a_schema_states_a_kind(key: str, about: Json, kind: ArgumentKind | None) -> None:
    known = SchemaKinds({"inputSchema": {"type": "object", "properties": {key: about}}})
    assert known.kinds.get(key.replace("_", "")) is kind
    assert known.is_closed is isinstance(about, dict)


# In the schema of one property, or beside it: forms of which a value may be any object.
HIDES_PROPERTIES: list[Json] = [
    {"$ref": "#/$defs/Input"},
    {"description": "anything"},
    {"type": "object"},
    {"type": ["object", "null"]},
    {"type": [{}]},
    {"type": "array"},
    {"type": "array", "items": {"$ref": "#/$defs/Step"}},
    {"type": "array", "items": {"type": "array", "items": {"type": "object"}}},
    {"anyOf": [{"$ref": "#/$defs/Input"}, {"type": "null"}]},
    {"oneOf": [{"type": "string"}, True]},
    {"anyOf": [{"anyOf": [{"anyOf": [{"anyOf": [STRING]}]}]}]},
    {"type": "object", "properties": {}, "allOf": [{"$ref": "#/$defs/Input"}]},
    {"type": "object", "properties": {}, "patternProperties": {"^s": STRING}},
    {"type": "object", "properties": {}, "additionalProperties": STRING},
    {"type": "object", "properties": {}, "additionalProperties": True},
]
SHOWS_PROPERTIES: list[Json] = [
    {"type": "integer"},
    {"type": ["string", "null"]},
    {"enum": ["a"]},
    {"const": 5},
    {"type": "array", "items": STRING},
    {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    {"anyOf": [STRING, {"type": "null"}]},
    {"oneOf": [{"type": "array", "items": STRING}, {"type": "boolean"}]},
    {"type": "object", "properties": {"a": STRING}, "additionalProperties": False},
]


@pytest.mark.parametrize(
    ("about", "may_have"),
    [
        *((about, True) for about in HIDES_PROPERTIES),
        *((about, False) for about in SHOWS_PROPERTIES),
    ],
)
def test_a_schema_that_does_not_show_all_properties_leaves_none_out(
    about: Json,
    may_have: bool,  # noqa: FBT001
) -> None:
    known = SchemaKinds({"inputSchema": {"type": "object", "properties": {"input": about}}})
    arguments = ToolArguments("do", "x", known)
    assert known.is_closed is not may_have
    assert arguments.may_have(SQL) is may_have
    drop: Json = {"input": {"sql": "DROP TABLE t"}}
    assert arguments.of(SQL, drop) == (("input.sql", "DROP TABLE t"),)


def selected(
    tool: str, arguments: Json, schema: Json = None, kind: ArgumentKind = SQL
) -> list[tuple[str, object]]:
    known = SchemaKinds({"inputSchema": schema}) if schema else None
    return list(ToolArguments(tool, "server", known).of(kind, arguments))


PLAIN: Json = {"properties": {"query": {"type": "string", "description": "Words to look for"}}}
IS_SQL: Json = {"properties": {"text": {"type": "string", "description": "SQL query"}}}
INNER: Json = {"properties": {"a": {"properties": {"b": {"description": "SQL query"}}}}}


@pytest.mark.parametrize(
    ("tool", "arguments", "schema", "found"),
    [
        ("any", {"sql": "a", "query": "b"}, None, [("sql", "a")]),
        ("any", {"SQL": "a", "sqlQuery": "b"}, None, [("SQL", "a"), ("sqlQuery", "b")]),
        ("read_query", {"query": "b", "limit": 5}, None, [("query", "b")]),
        ("read_query", {"query": "b"}, PLAIN, [("query", "b")]),  # the schema states nothing
        ("any", {"text": "b"}, IS_SQL, [("text", "b")]),
        ("any", {"queries": [{"sql": "a", "params": []}, {"sql": "b"}]}, None,
         [("queries[0].sql", "a"), ("queries[1].sql", "b")]),
        ("run_sql", {"queries": ["a", "b"]}, None, [("queries[0]", "a"), ("queries[1]", "b")]),
        ("any", {"a": {"b": "c"}}, INNER, [("a.b", "c")]),
        ("any", {"sql": 5}, None, []),
        ("any", {"sql": None}, None, []),
        ("any", "sql", None, []),
        ("any", {"a": {"b": {"c": {"d": {"sql": "x"}}}}}, None, []),  # too deep
    ],
)  # fmt: skip
def test_arguments_of_sql(
    tool: str, arguments: Json, schema: Json, found: list[tuple[str, object]]
) -> None:
    assert selected(tool, arguments, schema) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"command": "ls -l"}, [("command", "ls -l")]),
        ({"commands": ["ls", "rm x"]}, [("commands[0]", "ls"), ("commands[1]", "rm x")]),
        ({"command": ["rm", "-rf", "a b"]}, [("command", "rm -rf 'a b'")]),
        ({"command": ["sh", "-c", "ls; pwd"]}, [("command", "sh -c 'ls; pwd'")]),
        ({"command": "rm", "args": ["-rf", "a b"]}, [("command", "rm -rf 'a b'")]),
        ({"command": "rm", "args": [5]}, [("command", "rm")]),
        ({"command": "rm", "args": []}, [("command", "rm")]),
        ({"command": "rm", "args": "-rf /x"}, [("command", "rm -rf /x")]),
        ({"commandLine": "a", "cwd": "/"}, [("commandLine", "a")]),
    ],
)
def test_command_lines(arguments: Json, found: list[tuple[str, object]]) -> None:
    assert selected("start_process", arguments, kind=SHELL) == found


def test_too_many_values_cannot_be_judged() -> None:
    found = selected("any", {"a": [{"sql": "x"} for _ in range(2000)]})
    assert all(isinstance(text, str) for _, text in found[:500])
    assert not isinstance(found[-1][1], str)


def test_a_tool_whose_schema_names_no_sql_has_none() -> None:
    schema: Json = {"properties": {"path": STRING, "mode": {"enum": ["a"]}}}
    tool = ToolArguments("read_file", "files", SchemaKinds({"inputSchema": schema}))
    assert not tool.may_have(SQL)
    assert not tool.may_have(SHELL)
    assert ToolArguments("read_file", "files", None).may_have(SQL)
    free = SchemaKinds({"inputSchema": {"properties": {"params": {"type": "object"}}}})
    assert ToolArguments("read_file", "files", free).may_have(SQL)


def test_kinds_in_the_definitions_of_real_servers() -> None:
    found: dict[str, set[str]] = {}
    for file in sorted(REAL.glob("*.json")):
        for tool in json.loads(file.read_text())["tools"]:
            known = SchemaKinds(tool)
            arguments = ToolArguments(tool["name"], file.stem, known)
            keys = {**dict.fromkeys(known.unsaid), **known.kinds}
            for kind in (SQL, SHELL):
                call: dict[str, Json] = dict.fromkeys(keys, "x")
                if arguments.may_have(kind) and arguments.of(kind, call):
                    names = {path for path, _ in arguments.of(kind, call)}
                    found.setdefault(f"{kind.value} {file.stem} {tool['name']}", set()).update(
                        names
                    )
    assert found == {"shell desktop-commander start_process": {"command"}}


def test_of_many_tools_and_properties_the_first_are_kept() -> None:
    known = KnownTools()
    for number in range(1100):
        known.take(f"t{number}", b"{}")
    assert known.get("t1000") is not None
    assert known.get("t1099") is None
    properties: dict[str, Json] = {f"p{number}": STRING for number in range(300)}
    many = SchemaKinds({"inputSchema": {"properties": properties}})
    assert not many.is_closed
    assert len(many.unsaid) < 300


def test_one_property_of_two_with_a_name_is_enough() -> None:
    inner: Json = {"properties": {"q": {"type": "string", "description": "SQL query"}}}
    other: Json = {"type": "string", "description": "Search text"}
    both = SchemaKinds({"inputSchema": {"properties": {"q": other, "a": inner}}})
    assert both.kinds == {"q": SQL}
    assert SchemaKinds({"inputSchema": {"properties": {"a": inner, "q": other}}}).kinds == {
        "q": SQL
    }


def test_values_too_deep_or_too_many_cannot_be_judged() -> None:
    deep: Json = {"sql": [[[[["DROP TABLE t"]]]]]}
    [(path, value)] = selected("any", deep)
    assert (path, isinstance(value, str)) == ("sql[0][0][0]", False)
    many: Json = {"sql": [["x"] for _ in range(2000)]}
    assert not isinstance(selected("any", many)[-1][1], str)


@pytest.mark.parametrize(("chars", "judged"), [(20_000, 3), (20_001, 2)])
def test_texts_beyond_a_bound_cannot_be_judged(chars: int, judged: int) -> None:
    """A first text of any length can; each text is parsed by several rules and dialects."""
    texts: list[Json] = ["y" * 90_000, "x" * chars, "x" * chars]
    found = selected("t", {"sql": texts})
    assert [value is not PathMarker.MISFIT for _, value in found] == [n < judged for n in range(3)]

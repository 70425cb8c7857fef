"""Kind of an argument: SQL, a shell command line, or neither, by a tool's schema or by names.

A schema decides where it is plain. A server that wants to evade a rule can write any schema: rules
on kinds guard against accidents.
"""

import re
from collections.abc import Mapping
from enum import Enum

import msgspec

from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json


class ArgumentKind(Enum):
    """Kind of text that an argument holds."""

    SQL = "sql"
    SHELL = "shell"
    OTHER = "other"  # the schema says what it is, and it is neither


# In the place of a path: each argument that the tool's schema, or its name, says to be of the kind.
SQL_ARGUMENTS, SHELL_ARGUMENTS = "@sql", "@shell"
KIND_BY_PATH: Mapping[str, ArgumentKind] = {
    SQL_ARGUMENTS: ArgumentKind.SQL, SHELL_ARGUMENTS: ArgumentKind.SHELL
}  # fmt: skip
MAX_DEPTH = 4  # of objects and lists, in a schema and in arguments
_MAX_PROPERTIES = 256  # of one tool, those of inner objects included
_MAX_TOOLS = 1024  # whose schemas are kept
_MAX_TEXT_CHARS = 1000  # of a title or description
_SCALARS = ("boolean", "integer", "null", "number", "string")
# Beside `properties` they declare more, in a form that is not read here.
_MORE_PROPERTIES = (
    "$dynamicRef", "$ref", "allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf",
    "patternProperties", "then",
)  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(text: str) -> frozenset[str]:
    return frozenset(map(folded, _words(text)))


_SQL_KEYS = _names("""
    sql sqls sql_query sql_queries sql_statement sql_statements sql_text sql_string sql_code
    sql_command sql_commands sql_script raw_sql select_sql query_sql sql_select sql_stmt
""")
# Of a tool that is for SQL, by its name or its server's.
_QUERY_KEYS = _names("""
    q query queries query_text query_string statement statements stmt select_query commands script
""")
_SHELL_KEYS = _names("""
    command commands cmd cmds command_line cmdline shell_command bash_command
""")
_SCRIPT_KEYS = _names("script scripts")  # of a tool that runs commands, by its name
# A program and its words: `{command: "rm", args: ["-rf", "/x"]}`.
WORDS_KEYS = _names("args argv arguments command_args")
# Words of a tool's or a server's name. The last ones take text for a search instead.
_SQL_WORDS = _words("""
    bigquery clickhouse cockroach cockroachdb database databases databricks db dbhub duckdb
    mariadb motherduck mssql mysql oracle pg pgsql postgres postgresql psql redshift snowflake
    sql sqlite sqlserver supabase timescale trino tsql
""")
_SQL_TOOLS = frozenset({
    "delete_query", "exec_query", "execute_query", "execute_select", "insert_query", "query",
    "read_query", "run_query", "run_select_query", "select_query", "update_query", "write_query",
})  # fmt: skip
_SEARCH_WORDS = frozenset({"doc", "docs", "documentation", "find", "help", "lookup", "search"})
_SHELL_WORDS = _words("""
    bash cli cmd command commands console exec execute powershell process run shell ssh terminal
    zsh
""")
_SQL_TYPE = r"(?:select|insert|update|delete|ddl|dml|read-?only|parameteri[sz]ed|raw)"
_CODE = r"(?:quer(?:y|ies)|statements?|commands?|scripts?|code)\b"
_IS_SQL = re.compile(
    rf"\bsql\b(?: or \w+)?(?: {_SQL_TYPE})?\s+{_CODE}"
    rf"|\b{_CODE}\s+(?:written in|in|as|using|of)\s+(?:\w+\s+)?sql\b"
    rf"|\b(?:{_SQL_TYPE}|postgres(?:ql)?|mysql|sqlite|duckdb|mariadb|t-sql)\s+(?:sql\s+)?"
    r"(?:quer(?:y|ies)|statements?)\b"
    r"|^(?:the |a |raw |valid )*sql(?:\s+to\b|[.:]?\s*$)"
)
_IS_NO_SQL = re.compile(
    r"natural[- ]language|plain english|\bgraphql\b|\bjql\b|\bcql\b|\bpromql\b|\blogql\b|\bkql\b"
    r"|\bsparql\b|\bcypher\b|\blucene\b|\bjsonpath\b|\bregex|\bregular expression|\bmongo"
    r"|\bkeywords?\b|\bsearch (?:term|text|quer|string|phrase|for)|\bfull[- ]text\b|\bquestion\b"
)
_IS_SHELL = re.compile(
    r"\b(?:shell|bash|terminal|console|powershell|cli|command[- ]line)\s+"
    r"(?:command|script|code|line)s?\b"
    r"|\bcommand(?:s|\(s\)|[- ]line)?\s+(?:line\s+)?to\s+(?:run|execute|start|send)\b"
    r"|\bthe (?:full )?command line\b"
)


def words_of_name(name: str) -> frozenset[str]:
    """Return the words of a name, in lower case: of `runSqlQuery` and `run_sql-query` the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.split(r"[^a-z0-9]+", spaced.lower()))


def is_for_sql(tool: str, server: str) -> bool:
    """Return whether the name of a tool, or of its server, says that it takes SQL."""
    words = words_of_name(tool)
    if words & _SEARCH_WORDS:
        return False
    is_named = tool.lower().rpartition(".")[2] in _SQL_TOOLS or _says_sql(words)
    return is_named or _says_sql(words_of_name(server))


def _says_sql(words: frozenset[str]) -> bool:
    return any(word in _SQL_WORDS or (word.endswith("sql") and word != "nosql") for word in words)


def is_for_shell(tool: str) -> bool:
    """Return whether the name of a tool says that it runs commands."""
    return bool(words_of_name(tool) & _SHELL_WORDS)


def kinds_by_name(tool: str, server: str) -> Mapping[str, ArgumentKind]:
    """Return the kinds of the arguments of a tool, by their folded keys, as names tell."""
    kinds = dict.fromkeys(_SQL_KEYS, ArgumentKind.SQL)
    for_sql = is_for_sql(tool, server)
    if for_sql:
        kinds |= dict.fromkeys(_QUERY_KEYS, ArgumentKind.SQL)
    for_shell = is_for_shell(tool)
    shell = _SHELL_KEYS | _SCRIPT_KEYS if for_shell else _SHELL_KEYS
    if for_sql:
        shell -= kinds.keys()
    return kinds | dict.fromkeys(shell, ArgumentKind.SHELL)


class SchemaKinds:
    """Kinds that the schema of a tool states, by the folded keys of its properties."""

    def __init__(self, definition: Json) -> None:
        self.kinds: dict[str, ArgumentKind] = {}
        self.is_closed = True  # every property of every object is declared
        self.unsaid: set[str] = set()  # properties of text of which the schema states nothing
        self._left = _MAX_PROPERTIES
        of = definition if isinstance(definition, dict) else {}
        schema = of.get("inputSchema")
        self._take_object(schema if isinstance(schema, dict) else {}, MAX_DEPTH)

    def _take_object(self, schema: dict[str, Json], depth: int) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not depth:
            self.is_closed = False
            return
        self.is_closed = self.is_closed and not _declares_more(schema)
        for key, about in properties.items():
            self._left -= 1
            if self._left < 0:
                self.is_closed = False
                return
            self._take(key, about if isinstance(about, dict) else {}, depth)

    def _take(self, key: str, about: dict[str, Json], depth: int) -> None:
        inner = _element(about)
        if _is_object(inner):
            self._take_object(inner, depth - 1)
            return
        self.is_closed = self.is_closed and _has_no_object(about, depth)
        text = _text(about) if inner is about else f"{_text(about)} {_text(inner)}"
        kind = _stated(key, text, _is_text(inner))
        name = folded(key)
        if kind is None:
            self.unsaid.add(name)
        elif self.kinds.get(name) in {None, ArgumentKind.OTHER}:
            self.kinds[name] = kind


class KnownTools:
    """Kinds of arguments that the schemas of a session's tools state."""

    def __init__(self) -> None:
        self.version = 0  # counts the changes
        self._by_tool: dict[str, SchemaKinds] = {}

    def take(self, tool: str, definition: bytes) -> None:
        """Keep the kinds of one tool, as the server lists it now; its definition is JSON."""
        if tool not in self._by_tool and len(self._by_tool) >= _MAX_TOOLS:
            return
        self._by_tool[tool] = SchemaKinds(msgspec.json.decode(definition))
        self.version += 1

    def get(self, tool: str) -> SchemaKinds | None:
        """Return the kinds of a tool that the server has listed."""
        return self._by_tool.get(tool)


def _element(about: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of a list's elements, or of the value itself."""
    items = about.get("items")
    return items if isinstance(items, dict) else about


def _is_object(schema: dict[str, Json]) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _declares_more(schema: dict[str, Json]) -> bool:
    """Return whether an object may have declared properties that are not in `properties`."""
    others = schema.get("additionalProperties", False)
    return others is not False or any(key in schema for key in _MORE_PROPERTIES)


def _has_no_object(schema: Json, depth: int) -> bool:
    """Return whether a value is surely no object, and has none in it; a `$ref` may be one."""
    if not isinstance(schema, dict) or not depth:
        return False
    if "enum" in schema or "const" in schema:
        return True
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        return all(_has_no_object(branch, depth - 1) for branch in branches)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and not _has_no_object(schema.get("items"), depth - 1):
        return False
    return all(one == "array" or one in _SCALARS for one in kinds)


def _is_text(schema: dict[str, Json]) -> bool:
    """Return whether a value may be any text."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else ["string" if kind is None else kind]
    return "string" in kinds and "enum" not in schema and "const" not in schema


def _text(about: dict[str, Json]) -> str:
    texts = (about.get("title"), about.get("description"))
    return " ".join(text[:_MAX_TEXT_CHARS] for text in texts if isinstance(text, str)).strip()


def _stated(key: str, about: str, is_text: bool) -> ArgumentKind | None:  # noqa: FBT001
    """Return the kind that a property's type and text state; None if they do not."""
    if not is_text:
        return ArgumentKind.OTHER
    text = about.lower()
    if _IS_NO_SQL.search(text) and folded(key) not in _SQL_KEYS:
        return ArgumentKind.OTHER
    if _IS_SQL.search(text):
        return ArgumentKind.SQL
    return ArgumentKind.SHELL if _IS_SHELL.search(text) else None

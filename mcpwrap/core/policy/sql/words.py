"""Statements that their words tell, where sqlglot leaves them unparsed.

Each pattern is of a whole statement: prose that begins with the same words does not match.
"""

import re
from collections.abc import Mapping
from enum import Enum

from mcpwrap.core.policy.rules import Dialect


class StatementKind(Enum):
    """Kind of a statement that its words determine."""

    TELLS = "tells"  # it only reports: a pragma, a SHOW, or an EXPLAIN that runs nothing
    LISTS = "lists"  # a pragma that shows as many rows as there are errors
    SETS = "sets"  # any other pragma, or a SET of constants
    DELETES = "deletes"  # in a form that sqlglot does not know
    DROPS = "drops"  # an object that sqlglot does not know
    ALTERS = "alters"  # likewise
    REACHES = "reaches"  # files, programs or other databases
    UNKNOWN = "unknown"  # it might do anything


_NAME = r"""(?:[a-z_][a-z0-9_$]*|"[^"\\;]+"|`[^`\\;]+`|\[[^\]\\;]+\])"""
_NAMES = rf"{_NAME}(?:\.{_NAME})*"
_TEXT = r"N?'[^'\\]*'"
_ACCOUNT = rf"(?:{_NAMES}|{_TEXT})(?:@(?:{_NAMES}|{_TEXT}))?"
# Statements of words and names that show tables, columns or settings. Source: those of SHOW in
# postgresql.org/docs/current/sql-show.html, dev.mysql.com/doc/refman/8.4/en/show.html and
# duckdb.org/docs/guides/meta; learn.microsoft.com, catalog stored procedures. Logs of MySQL have
# whole rows.
_ARGUMENT = rf"(?:@[a-z_]+\s*=\s*)?(?:{_TEXT}|{_NAMES})"
_CATALOG_PROCEDURES = (
    "help|helptext|helpindex|helpconstraint|helpdb|columns|tables|databases|pkeys|fkeys|statistics"
    "|spaceused|stored_procedures|special_columns|column_privileges|table_privileges"
)
SHOWING: Mapping[Dialect, str] = {
    "postgres": rf"SHOW(\s+{_NAMES}){{1,4}}",
    "mysql": rf"SHOW(?!\s+(BINLOG|RELAYLOG)\b)(\s+{_NAMES}){{1,6}}(\s+LIKE\s+'[^'\\]*')?"
    rf"|SHOW\s+GRANTS\s+FOR\s+{_ACCOUNT}(\(\))?"
    rf"|(DESC|DESCRIBE|EXPLAIN)(\s+{_NAMES}){{1,2}}|USE\s+{_NAME}",
    "duckdb": rf"(SHOW|DESC|DESCRIBE|SUMMARIZE|USE)\s+{_NAMES}"
    rf"|SHOW\s+(ALL\s+TABLES|TABLES\s+FROM\s+{_NAMES})",
    "tsql": rf"((EXEC|EXECUTE)\s+)?((master\.)?(sys|dbo)?\.)?sp_({_CATALOG_PROCEDURES})"
    rf"(\s+{_ARGUMENT}(\s*,\s*{_ARGUMENT})*)?|USE\s+{_NAME}",
}
_DROPPED = (
    r"(?:ACCESS\s+METHOD|AGGREGATE|APPLICATION\s+ROLE|ASSEMBLY|CERTIFICATE|COLLATION|CONVERSION"
    r"|DATABASE|DEFAULT|DOMAIN|EVENT\s+TRIGGER|EVENT|EXTENSION|FOREIGN\s+DATA\s+WRAPPER"
    r"|FOREIGN\s+TABLE|FULLTEXT\s+INDEX|FUNCTION|GROUP|INDEX|LANGUAGE|LOGIN|MACRO"
    r"|MATERIALIZED\s+VIEW|OPERATOR|OWNED\s+BY|PERSISTENT\s+SECRET|POLICY|PROCEDURE|PROC"
    r"|PUBLICATION|ROLE|ROUTINE|RULE|SCHEMA|SECRET|SEQUENCE|SERVER|STATISTICS|SUBSCRIPTION"
    r"|SYNONYM|TABLESPACE|TABLE|TEMPORARY\s+TABLE|TRIGGER|TYPE|USER\s+MAPPING\s+FOR|USER|VIEW)"
)
_DROP_TAIL = (
    r"(?:\s+(?:CASCADE(?:\s+CONSTRAINTS)?|RESTRICT|FORCE)|\s+(?:WITH\s*)?\(\s*FORCE\s*\)"
    rf"|\s+ON\s+(?:SERVER\s+)?{_NAMES}|\s+SERVER\s+{_NAMES}|\s*\([a-z0-9_, \[\]]*\))*"
)
_DROPPING = rf"DROP\s+{_DROPPED}\s+(?:IF\s+EXISTS\s+)?{_ACCOUNT}(?:\s*,\s*{_ACCOUNT})*{_DROP_TAIL}"
_DELETING = (
    r"DELETE\s+TOP\s*\(\s*[0-9]+\s*\)\s+(?:PERCENT\s+)?FROM\s+"
    rf"{_NAMES}(?:\s+WHERE\s.*)?|DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)+FROM\s+{_NAMES}.*"
)
_ALTERED = (
    r"(?:AGGREGATE|AUTHORIZATION|COLLATION|COLUMN|DATABASE|DOMAIN|EVENT|EXTENSION"
    r"|FOREIGN\s+TABLE|FUNCTION|GROUP|INDEX|LOGIN|MATERIALIZED\s+VIEW|POLICY|PROCEDURE|PUBLICATION"
    r"|ROLE|ROUTINE|SCHEMA|SEQUENCE|SERVER\s+ROLE|SERVER|STATISTICS|SUBSCRIPTION|TABLESPACE|TABLE"
    r"|TRIGGER|TYPE|USER|VIEW)"
)
_ALTER_ACTIONS = (
    r"ADD|ALGORITHM|ALTER|ATTACH|AUTO_INCREMENT|CACHE|CHANGE|CHARACTER|CHECK|CLUSTER|COLLATE"
    r"|COMMENT|CONNECTION|CONVERT|CREATEDB|DEFAULT|DETACH|DISABLE|DISCARD|DROP|ENABLE|ENCRYPTED"
    r"|ENGINE|FORCE|IDENTIFIED|IMPORT|INCREMENT|INHERIT|LOGIN|MODIFY|NO|NOCHECK|NOLOGIN"
    r"|NOSUPERUSER|OPTIONS|ORDER|OWNED|OWNER|PASSWORD|REBUILD|REFRESH|RENAME|REORGANIZE|REPLICA"
    r"|RESET|RESTART|ROW_FORMAT|SET|SUPERUSER|SWITCH|TO|UPDATE|VALIDATE|VALID|WITH"
)
_ALTERING = (
    rf"ALTER\s+{_ALTERED}\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?{_ACCOUNT}(?:\s*\([^)]*\))?"
    rf"(?:\s+ON\s+{_NAMES})?\s+(?:{_ALTER_ACTIONS})\b.*"
    r"|ALTER\s+SYSTEM\s+(?:SET|RESET)\b.*|ALTER\s+DEFAULT\s+PRIVILEGES\b.*"
)
# Files, programs, other databases. Source: postgresql.org, sql-copy; dev.mysql.com, load-data and
# select-into; duckdb.org, copy, extensions, attach; learn.microsoft.com, bulk-insert and xp_*.
_REACHING = (
    r"COPY\s.*\b(?:FROM|TO)\s+(?:PROGRAM\s+)?E?'.*|LOAD\s+(?:DATA|XML)\b.*\bINFILE\b.*"
    r"|SELECT\s.*\bINTO\s+(?:OUTFILE|DUMPFILE)\b.*"
    rf"|(?:FORCE\s+)?INSTALL\s+(?:{_NAME}|{_TEXT})(?:\s+FROM\s+(?:{_NAME}|{_TEXT}))?"
    rf"|LOAD\s+(?:{_NAME}|{_TEXT})|ATTACH\s+.*{_TEXT}.*|BULK\s+INSERT\s+{_NAMES}\s+FROM\s.*"
    r"|(?:EXPORT|IMPORT)\s+DATABASE\s+.*'.*|BACKUP\s+(?:DATABASE|LOG)\s.*\bTO\s+(?:DISK|URL)\b.*"
    r"|(?:(?:EXEC|EXECUTE)\s+)?(?:master\.)?(?:(?:sys|dbo)?\.)?(?:xp_|sp_oa)\w+\b.*"
    r"|IMPORT\s+FOREIGN\s+SCHEMA\s.*|CREATE\s+(?:SERVER|FOREIGN\s+TABLE|SUBSCRIPTION)\s.*"
)
_VALUE = rf"(?:{_TEXT}|{_NAMES}|-?[0-9]+(?:\.[0-9]+)?)"
_SETTING = (
    rf"SET\s+(?:(?:SESSION|LOCAL|GLOBAL)\s+)?{_NAMES}\s*(?:=|\s+TO\s)\s*{_VALUE}(?:\s*,\s*{_VALUE})*"
    r"|SET\s+[a-z_]+\s+(?:ON|OFF)|SET\s+NAMES\s+'?[a-z0-9_]+'?"
    r"|SET\s+(?:SESSION\s+)?TRANSACTION(?:\s+[a-z]+)+"
)
# They change where the texts of later statements end. Source: postgresql.org,
# runtime-config-compatible; dev.mysql.com, sql-mode and charset-connection; learn.microsoft.com,
# set-quoted-identifier.
_CHANGES_READING = re.compile(
    r"\b(?:ansi_defaults|backslash_quote|character_set_client|charset|client_encoding"
    r"|quoted_identifier|sql_mode|standard_conforming_strings|names(?!\s+'?utf8))",
    re.ASCII | re.IGNORECASE,
)
_BY_WORDS = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (_SETTING, StatementKind.SETS),
        (_DELETING, StatementKind.DELETES),
        (_DROPPING, StatementKind.DROPS),
        (_ALTERING, StatementKind.ALTERS),
        (_REACHING, StatementKind.REACHES),
    )
)
_SHOWING = {
    dialect: re.compile(pattern, re.ASCII | re.IGNORECASE) for dialect, pattern in SHOWING.items()
}
_IS_NAME = re.compile(_NAMES, re.ASCII | re.IGNORECASE)
_MAX_CHARS = 10_000  # of a statement that is searched for words


def shows(written: str, dialect: Dialect) -> bool:
    """Return whether a statement only shows names, types and settings."""
    pattern = _SHOWING.get(dialect)
    return pattern is not None and pattern.fullmatch(written) is not None


def kind_by_words(written: str) -> StatementKind:
    """Return the kind of a statement that sqlglot does not know."""
    if len(written) > _MAX_CHARS:
        return StatementKind.UNKNOWN
    matching = (kind for pattern, kind in _BY_WORDS if pattern.fullmatch(written))
    kind = next(matching, StatementKind.UNKNOWN)
    changes_reading = kind is StatementKind.SETS and _CHANGES_READING.search(written)
    return StatementKind.UNKNOWN if changes_reading else kind


def is_name(text: str) -> bool:
    """Return whether a text is one name of a table."""
    return _IS_NAME.fullmatch(text) is not None

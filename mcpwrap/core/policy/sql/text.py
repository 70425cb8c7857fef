"""SQL text cut into statements and parsed, if sqlglot and databases read it alike.

The author of the SQL may know where sqlglot and a database differ. Text that is known to have two
readings is not judged at all, and a rule that blocks then applies.

The parsers have a step budget, because those of sqlglot may backtrack without end. `FROM t JOIN t
JOIN t …` without ON is read twice from each JOIN on, `a::STRUCT(STRUCT(…` from each word on: twenty
of them take minutes, in sqlglot 30. The work is counted in steps from one token to another; SQL
that is not made for this takes 1 to 1.5 for each token. `a[1][1]…` and `a.b().b()…` are read once,
but sqlglot visits the whole tree so far at each link: each node is a step.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import ErrorLevel, Token, Tokenizer, TokenType, exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.dialects.tsql import TSQL
from sqlglot.parser import Parser

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.words import StatementKind, is_name, kind_by_words, shows

# Named here so that they are loaded now: the process that judges can open no file.
GRAMMARS: dict[Dialect, type[Grammar]] = {
    "sqlite": SQLite,
    "postgres": Postgres,
    "mysql": MySQL,
    "duckdb": DuckDB,
    "tsql": TSQL,
}
STEPS_PER_TOKEN = 5
MORE_STEPS = 2000  # for 8 JOINs without ON; take 15 ms
_LINKS = frozenset({TokenType.L_BRACKET, TokenType.DOT})
MAX_CHARS = 100_000
_MAX_CACHED_CHARS = 300_000  # of all texts, once for each dialect
_CHARS_OF_AN_ENTRY = 100
MAX_TOKENS = 10_000  # take 0.15 s
MAX_NAME_BYTES = 63  # postgresql.org/docs/current/sql-syntax-lexical.html: NAMEDATALEN - 1
# All control characters but tab, newline, form feed and return: those are space in every dialect.
_SPACE = " \t\n\r\f"
_CONTROL = [chr(c) for c in (*range(9), 11, *range(14, 32), 127)]
_QUOTED = frozenset({
    TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING,
    TokenType.UNICODE_STRING, TokenType.BYTE_STRING, TokenType.IDENTIFIER,
})  # fmt: skip
_COMMANDS = frozenset({*Tokenizer.COMMANDS, TokenType.REPLACE, TokenType.LOCK, TokenType.END})
# MySQL executes such comments, and sqlglot takes braces for a comment of Jinja.
_NO_COMMENT = ("/*!", "/*M!", "{")
# With these a statement of T-SQL begins without a `;` before it; sqlglot takes some for names.
_BEGINNINGS = frozenset({
    "ALTER", "BACKUP", "BEGIN", "BULK", "COMMIT", "CREATE", "DBCC", "DECLARE", "DELETE", "DENY",
    "DROP", "EXEC", "EXECUTE", "GO", "GRANT", "IF", "INSERT", "KILL", "MERGE", "PRINT",
    "RAISERROR", "RECONFIGURE", "RESTORE", "RETURN", "REVOKE", "REVERT", "ROLLBACK", "SAVE",
    "SHUTDOWN", "THROW", "TRUNCATE", "UPDATE", "USE", "WAITFOR", "WHILE",
})  # fmt: skip
_STATEMENTS = (
    exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Insert, exp.Update, exp.Delete,
    exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Transaction, exp.Commit,
    exp.Rollback, exp.Attach, exp.Detach, exp.Analyze,
)  # fmt: skip
_EXPLAIN_OPTIONS = frozenset({"ANALYZE", "ANALYSE", "VERBOSE"})
_OPTION = r"[a-z_]+(?: +[a-z0-9_]+)?"
_MORE_EXPLAIN_OPTIONS = re.compile(
    rf"\({_OPTION}(?: *, *{_OPTION})*\)\s*|FORMAT *= *[a-z]+\s+", re.ASCII | re.IGNORECASE
)
_WITH_CODE = frozenset({"FUNCTION", "PROCEDURE", "TRIGGER"})
# Pragmas that only report, with an argument or without one, and those that report without one.
# Source: sqlite.org/pragma.html; duckdb.org/docs/configuration/pragmas.
_REPORTING = frozenset({
    "collation_list", "compile_options", "database_list", "foreign_key_list",
    "function_list", "index_info", "index_list", "index_xinfo", "module_list", "pragma_list",
    "show_tables", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
_REPORTING_IF_BARE = frozenset({
    "application_id", "auto_vacuum", "cache_size", "data_version", "encoding", "foreign_keys",
    "freelist_count", "integrity_check", "journal_mode", "page_count", "page_size", "quick_check",
    "schema_version", "synchronous", "user_version",
})  # fmt: skip
# Pragmas with a row for each error; the last two have up to 100 of them, or up to their argument.
_LISTING = frozenset({"foreign_key_check", "integrity_check", "quick_check"})
# It would write text that it cannot parse, which an agent sent, to stderr.
sqlglot.logger.disabled = True


class StepLimitError(Exception):  # an outcome, and not a ParseError, which parsers catch
    """Text that exceeds its step budget."""


@dataclass(slots=True)
class Budget:
    """Steps left for all statements of one text."""

    steps: int


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """Statement of an EXPLAIN: it may be executed, and only its plan is shown."""

    tree: exp.Expr


Statement = exp.Expr | ExplainStatement | StatementKind


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """Statement, and its text."""

    statement: Statement
    written: str


_Found = tuple[WrittenStatement, ...] | None


class _Cache(dict[tuple[str, Dialect], _Found]):
    """Statements of the last texts, because several rules test each text of a call."""

    def __init__(self) -> None:
        super().__init__()
        self._chars = 0

    def __missing__(self, key: tuple[str, Dialect]) -> _Found:
        """Parse a text; clear a full cache."""
        found = _parsed_text(*key)
        self._chars += len(key[0]) + _CHARS_OF_AN_ENTRY
        if self._chars > _MAX_CACHED_CHARS:
            self.clear()
            self._chars = len(key[0]) + _CHARS_OF_AN_ENTRY
        self[key] = found
        return found


_CACHE = _Cache()


def statements(untrusted_text: str, dialect: Dialect) -> _Found:
    """Return the statements of a text; None if it cannot be judged."""
    return _CACHE[untrusted_text, dialect]


def _parsed_text(untrusted_text: str, dialect: Dialect) -> _Found:
    if len(untrusted_text) > MAX_CHARS or any(char in untrusted_text for char in _CONTROL):
        return None
    text = _without_explain(untrusted_text, dialect)
    try:
        tokens = GRAMMARS[dialect]().tokenize(text)
        if len(tokens) > MAX_TOKENS or not _reads_one_way(text, tokens):
            return None
        if dialect == "postgres" and not all(_is_plain_name(token, text) for token in tokens):
            return None
        budget = budget_for(len(tokens))
        found = [_statement(part, text, dialect, budget) for part in _parts(tokens)]
    except Exception:  # noqa: BLE001 - StepLimitError, RecursionError, or any error of a parser
        return None
    if text is not untrusted_text and found:
        first = _explained(found[0].statement, tokens, dialect)
        found[0] = WrittenStatement(first, f"EXPLAIN {found[0].written}")
    return tuple(found)


def budget_for(tokens: int) -> Budget:
    """Return the budget of a text with this number of tokens."""
    return Budget(STEPS_PER_TOKEN * tokens + MORE_STEPS)


def parse_statement(
    tokens: list[Token], text: str, dialect: Dialect, budget: Budget
) -> exp.Expr | None:
    """Return the tree of one statement; None if it is not a statement.

    Raises:
        StepLimitError: the budget is exhausted.
        SqlglotError: it cannot be parsed. A parser may raise any other error too.
    """
    parser = _PARSERS[dialect](dialect=GRAMMARS[dialect](), error_level=ErrorLevel.IMMEDIATE)
    parser.budget = budget
    [tree] = parser.parse(tokens, text)
    return tree


def _without_explain(text: str, dialect: Dialect) -> str:
    """Return the text without an EXPLAIN at its start.

    sqlglot leaves everything after it unparsed. It explains a statement only if a word follows:
    after a comment there may be a `;`, which ends it.
    """
    bare = text.lstrip(f"{_SPACE};")
    is_explain = bare[:7].upper() == "EXPLAIN" and bare[7:8] in {*_SPACE, "("}
    after = bare[7:].lstrip(_SPACE)
    if dialect != "sqlite":
        options = _MORE_EXPLAIN_OPTIONS.match(after)
        after = after[options.end() :] if options else after
    if dialect == "mysql" and is_name(after.rstrip(f"{_SPACE};")):
        return text  # EXPLAIN of a table describes it
    return after if is_explain and after[:1].isalpha() else text


def _reads_one_way(text: str, tokens: Sequence[Token]) -> bool:
    """Return whether databases see the same words: no character outside quotes deceives."""
    end = 0
    before = TokenType.SEMICOLON
    for token in tokens:
        gap = text[end : token.start]
        end = token.end + 1
        # After such a word sqlglot leaves the text up to the next `;` unparsed, as a string.
        is_quoted = token.token_type in _QUOTED and before not in _COMMANDS
        before = token.token_type
        word = "" if is_quoted else text[token.start : end]
        if _deceives(word) or _deceives(gap) or any(mark in gap for mark in _NO_COMMENT):
            return False
    rest = text[end:]
    return not (_deceives(rest) or any(mark in rest for mark in _NO_COMMENT))


def _is_plain_name(token: Token, text: str) -> bool:
    """Return whether PostgreSQL sees the same name: it cuts long ones, and U&"..." has escapes."""
    if token.token_type in _QUOTED - {TokenType.IDENTIFIER}:
        return True
    is_escaped = token.token_type is TokenType.IDENTIFIER and (
        text[max(token.start - 2, 0) : token.start].upper() == "U&"
    )
    return not is_escaped and len(token.text.encode()) <= MAX_NAME_BYTES


def _deceives(text: str) -> bool:
    """Return whether Python sees space or a keyword where a database sees a name.

    After `FROM t`, SQLite takes `LIMIT` with a no-break space and a 5 for an alias of t, and also
    with an i that has no dot, which becomes I in capitals.
    """
    if text.isascii():
        return False
    has_space = any(char.isspace() and not char.isascii() for char in text)
    return has_space or text.upper().isascii() or text.lower().isascii()


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each statement; two semicolons in a row enclose no statement."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _statement(
    tokens: list[Token], text: str, dialect: Dialect, budget: Budget
) -> WrittenStatement:
    written = text[tokens[0].start : tokens[-1].end + 1]
    return WrittenStatement(_classified(tokens, text, dialect, budget, written), written)


def _classified(
    tokens: list[Token], text: str, dialect: Dialect, budget: Budget, written: str
) -> Statement:
    first = _word(tokens[0])
    if first == "PRAGMA":
        return _pragma(tokens[1:]) if dialect in {"sqlite", "duckdb"} else StatementKind.UNKNOWN
    if dialect == "tsql" and any(_word(token) in _BEGINNINGS for token in tokens[1:]):
        kind = kind_by_words(written)  # BULK INSERT
        return kind if kind is StatementKind.REACHES else StatementKind.UNKNOWN
    if shows(written, dialect):
        return StatementKind.TELLS
    tree = _parsed(tokens, text, dialect, budget)
    return kind_by_words(written) if tree is None else tree


def _parsed(tokens: list[Token], text: str, dialect: Dialect, budget: Budget) -> exp.Expr | None:
    """Return the tree of a statement; None if sqlglot does not know the whole statement."""
    if dialect != "sqlite" and _word(tokens[0]) in _EXPLAIN_OPTIONS:
        tokens = tokens[1:]  # with ANALYZE it is executed; ANALYZE alone changes only statistics
    try:
        tree = parse_statement(tokens, text, dialect, budget)
    except StepLimitError:
        raise
    except Exception:  # noqa: BLE001 - as above; the other statements are still judged
        return None
    if not isinstance(tree, _STATEMENTS) or tree.find(exp.Command):
        return None
    return tree if _is_whole(tree, tokens) else None


def _is_whole(tree: exp.Expr, tokens: list[Token]) -> bool:
    """Return whether a statement has all of its parts: sqlglot takes prose for some of them.

    `update readme`, `insert coin`, `delete account page`, `delete from cart button`, `create table
    tennis`. And the code of a function or a trigger is not parsed.
    """
    match tree:
        case exp.Update():
            return bool(tree.expressions)
        case exp.Insert():
            return tree.expression is not None or bool(tree.args.get("default"))
        case exp.Attach():
            return tree.find(exp.Literal, exp.Placeholder) is not None or any(
                token.token_type in _QUOTED for token in tokens
            )
        case exp.Delete():
            has_where = tree.args.get("where") is not None
            has_from = any(_word(token) in {"FROM", "WHERE"} for token in tokens)
            return has_from and (has_where or not _is_renamed(tree)) and _names_its_sources(tree)
        case exp.Create():
            kind = str(tree.args.get("kind")).upper()
            is_named = kind == "TABLE" and isinstance(tree.this, exp.Table)
            has_more = tree.expression or tree.args.get("properties")
            return kind not in _WITH_CODE and not (is_named and not has_more)
        case _:
            return True


def _names_its_sources(tree: exp.Delete) -> bool:
    """Return whether the tables before FROM are among those behind it: `DELETE t FROM t JOIN u`."""
    named = [table.name.casefold() for table in tree.args.get("tables") or ()]
    if not isinstance(tree.this, exp.Table):  # DELETE t WHERE …, of T-SQL
        return tree.args.get("where") is not None
    sources = [*tree.find_all(exp.Table)]
    behind = {one.alias_or_name.casefold() for one in sources if one.arg_key != "tables"}
    return all(name in behind for name in named)


def _is_renamed(tree: exp.Delete) -> bool:
    """Return whether a DELETE has nothing but a table and another name for it."""
    is_plain = not (tree.args.get("using") or tree.args.get("tables") or tree.args.get("returning"))
    return is_plain and isinstance(tree.this, exp.Table) and bool(tree.this.alias)


def _explained(found: Statement, tokens: list[Token], dialect: Dialect) -> Statement:
    """Classify an explained statement. SQLite runs none, but a pragma acts when it is compiled.

    Source: sqlite.org/lang_explain.html; sqlite.org/pragma.html.
    """
    if dialect == "tsql":  # it has no EXPLAIN: the rest may be executed
        return found
    if dialect != "sqlite":
        return ExplainStatement(found) if isinstance(found, exp.Expr) else found
    words = [_word(token) for token in tokens[:3]]
    if words[:2] == ["QUERY", "PLAN"]:
        words, tokens = words[2:], tokens[2:]
    return _pragma(tokens[1:]) if words[:1] == ["PRAGMA"] else StatementKind.TELLS


def _word(token: Token) -> str:
    return "" if token.token_type in _QUOTED else token.text.upper()


def _pragma(tokens: list[Token]) -> Statement:
    """Classify `name`, `schema.name`, and either followed by `= value` or `(value)`."""
    words = [token.text.lower() for token in tokens]
    if words[1:2] == ["."]:
        words = words[2:]
    name = words[0] if words else ""
    if name in _REPORTING or (name in _REPORTING_IF_BARE and len(words) == 1):
        return StatementKind.TELLS
    return StatementKind.LISTS if name in _LISTING else StatementKind.SETS


class _StepCountingParser(Parser):
    """Base of the parsers that counts steps. Every move, forward or back, is by `_advance`."""

    budget: Budget

    def _advance(self, times: int = 1) -> None:
        self._take_step()
        super()._advance(times)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        # Called before each link of a chain. A column is never large.
        if this and self._curr.token_type in _LINKS and not isinstance(this, exp.Column):
            for _ in this.walk():
                self._take_step()
        return super()._parse_bracket(this)

    def _take_step(self) -> None:
        self.budget.steps -= 1
        if self.budget.steps < 0:
            raise StepLimitError


def _counting(grammar: type[Grammar]) -> type[_StepCountingParser]:
    return type(f"Counting{grammar.__name__}", (_StepCountingParser, grammar.parser_class), {})


_PARSERS = {dialect: _counting(grammar) for dialect, grammar in GRAMMARS.items()}

"""Query that counts the rows which an UPDATE or DELETE would change, where that is certain."""

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.text import GRAMMARS, statements

# In these the statements below mean the same.
_DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres", "mysql")
# Begin comments or escapes in some only: MySQL reads `2--1` as 2 minus minus 1.
_READ_APART = ("--", "#", "/*", "\\")
_KNOWN = frozenset({"this", "expressions", "where"})  # parts of a statement
_READS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Func, exp.Anonymous, exp.Command)
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def counting_query(untrusted_text: str) -> str | None:
    """Return a SELECT that counts the rows; None if the statement is of another kind, or unclear.

    It has the table and the condition as they are written. A condition with a function or another
    query is left: its value may differ, or do something. So is a text with a mark of a comment or
    an escape, even within quotes.
    """
    if any(mark in untrusted_text for mark in _READ_APART):
        return None
    trees = [_only_statement(untrusted_text, dialect) for dialect in _DIALECTS]
    if not all(tree is not None and _is_simple(tree) for tree in trees):
        return None
    tokens = GRAMMARS["sqlite"]().tokenize(untrusted_text)
    kinds = [token.token_type for token in tokens]
    where = kinds.index(TokenType.WHERE) if TokenType.WHERE in kinds else len(tokens)
    is_delete = kinds[0] is TokenType.DELETE
    table = tokens[2:where] if is_delete else tokens[1 : kinds.index(TokenType.SET)]
    if not _is_one_name(table):
        return None
    named = untrusted_text[table[0].start : table[-1].end + 1]
    condition = tokens[where + 1 :]
    while condition and condition[-1].token_type is TokenType.SEMICOLON:
        condition.pop()
    query = f"SELECT count(*) FROM {named}"  # noqa: S608 - shown, and judged like any other
    if where == len(tokens):
        return query
    return f"{query} WHERE {untrusted_text[condition[0].start : condition[-1].end + 1]}"


def _only_statement(text: str, dialect: Dialect) -> exp.Expr | None:
    found = statements(text, dialect)
    if found is None or len(found) != 1 or not isinstance(found[0].statement, exp.Expr):
        return None
    return found[0].statement


def _is_simple(tree: exp.Expr) -> bool:
    """Return whether a statement changes rows of one table, by a condition on them alone."""
    if not isinstance(tree, exp.Update | exp.Delete):
        return False
    given = {name for name, value in tree.args.items() if value}
    where = tree.args.get("where")
    if where is not None and any(
        isinstance(node, _READS) and not isinstance(node, exp.Connector) for node in where.walk()
    ):
        return False
    return given <= _KNOWN


def _is_one_name(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are names between dots."""
    return len(tokens) % 2 == 1 and all(
        token.token_type in _NAMES if place % 2 == 0 else token.token_type is TokenType.DOT
        for place, token in enumerate(tokens)
    )

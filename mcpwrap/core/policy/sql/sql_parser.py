"""SQL parsers with a step budget: those of sqlglot may backtrack without end.

`FROM t JOIN t JOIN t …` without ON is read twice from each JOIN on, `a::STRUCT(STRUCT(…` from each
word on: twenty of them take minutes, in sqlglot 30. The work is counted in steps from one token to
another; SQL that is not made for this takes 1 to 1.5 for each token. `a[1][1]…` and `a.b().b()…`
are read once, yet sqlglot goes over all of the tree so far at each link: each node is a step.
"""

from dataclasses import dataclass

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.dialects.tsql import TSQL
from sqlglot.parser import Parser

from mcpwrap.core.policy.rules import Dialect

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


class StepLimitError(Exception):  # an outcome, and not a ParseError, which parsers catch
    """Text that exceeds its step budget."""


@dataclass(slots=True)
class Budget:
    """Steps left for all statements of one text."""

    steps: int


def budget_for(tokens: int) -> Budget:
    """Return what a text of so many tokens may take."""
    return Budget(STEPS_PER_TOKEN * tokens + MORE_STEPS)


def parse(tokens: list[Token], text: str, dialect: Dialect, budget: Budget) -> exp.Expr | None:
    """Return the tree of one statement; None if it is none.

    Raises:
        TooMuchWork: the budget is used up.
        SqlglotError: it is not understood; and whatever else a parser meets.
    """
    parser = _PARSERS[dialect](dialect=GRAMMARS[dialect](), error_level=ErrorLevel.IMMEDIATE)
    parser.budget = budget
    [tree] = parser.parse(tokens, text)
    return tree


class _Counting(Parser):
    """Base of the parsers that counts steps. All ways forward and back are `_advance`."""

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


def _counting(grammar: type[Grammar]) -> type[_Counting]:
    return type(f"Counting{grammar.__name__}", (_Counting, grammar.parser_class), {})


_PARSERS = {dialect: _counting(grammar) for dialect, grammar in GRAMMARS.items()}

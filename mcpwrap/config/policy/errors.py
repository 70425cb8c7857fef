"""Errors in a policy, each with file, line and column."""

from dataclasses import dataclass

from mcpwrap.errors import UsageError, problem_lines


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Position in a file. Both numbers count from 1, columns in characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Flaw:
    """Single error in a policy."""

    mark: SourcePosition
    problem: str
    fix: str
    code: str  # the name in mcpwrap-errors(7)

    def lines(self) -> list[str]:
        """Return the lines that are printed."""
        return problem_lines(str(self.mark), self.problem, self.fix, code=self.code)

    def __str__(self) -> str:
        return "\n".join(self.lines())


class PolicyError(UsageError):
    """All errors of a policy, found in one pass."""

    def __init__(self, flaws: list[Flaw]) -> None:
        first = flaws[0]
        super().__init__(first.problem, where=str(first.mark), fix=first.fix, code=first.code)
        self.flaws = tuple(flaws)

    def lines(self) -> list[str]:
        """Return the lines of all errors, then their number."""
        count = len(self.flaws)
        head = f"{count} {'problem' if count == 1 else 'problems'}; nothing was changed"
        return [*(line for flaw in self.flaws for line in flaw.lines()), head]

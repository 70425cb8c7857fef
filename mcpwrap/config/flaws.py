"""What is wrong in a policy, and where: file, line and column."""

from dataclasses import dataclass

from mcpwrap.errors import UsageError


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file. Both count from 1, columns in characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong."""

    mark: Mark
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.mark}: {self.problem}\n  fix: {self.fix}"


class PolicyError(UsageError):
    """Everything that is wrong with a policy, found in one pass."""

    def __init__(self, flaws: list[Flaw]) -> None:
        first = flaws[0]
        super().__init__(first.problem, where=str(first.mark), fix=first.fix)
        self.flaws = tuple(flaws)

    def __str__(self) -> str:
        count = len(self.flaws)
        head = f"{count} {'problem' if count == 1 else 'problems'}; nothing was changed"
        return "\n".join([*map(str, self.flaws), head])

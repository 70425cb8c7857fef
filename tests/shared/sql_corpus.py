"""SQL texts of `sql/*.sql`: ordinary ones, and hostile ones made to look ordinary.

`honest.sql` is what agents and people write at work, `harmful.sql` what the default policy is for;
`phrases.txt` has search phrases in English, which are not SQL.

A line `--@ sqlite duckdb` names the dialects of the texts below it; each of them begins at the left
edge, and lines indented by a tab continue it. A line with `--#` gives the reason.
"""

from pathlib import Path
from typing import get_args

from mcpwrap.core.policy.rules import Dialect

FOLDER = Path(__file__).parent / "sql"
DIALECTS = get_args(Dialect)
DATABASES: tuple[Dialect, ...] = ("sqlite", "postgres", "mysql", "duckdb")


def texts(name: str, dialect: Dialect) -> list[str]:
    """Return the texts of a file for a dialect, in their order."""
    found: list[str] = []
    is_meant = False
    for line in (FOLDER / f"{name}.sql").read_text().splitlines():
        if line.startswith("--@"):
            is_meant = dialect in line.split()
        elif is_meant and line.startswith("\t"):
            found[-1] += "\n" + line[1:]
        elif is_meant and line and not line.startswith("--#"):
            found.append(line)
    return found


def all_texts(name: str) -> list[str]:
    """Return the texts of a file, each once."""
    return list(dict.fromkeys(text for dialect in DIALECTS for text in texts(name, dialect)))


def phrases() -> list[str]:
    """Return the search phrases."""
    return (FOLDER / "phrases.txt").read_text().splitlines()

"""Command lines of `shell/*.txt`: honest ones as agents write them, and harmful ones.

Each begins at the left edge; lines indented by a tab continue it. A line with `##` gives the
reason, and one with `#@` the rule of the default policy that the lines below it are for.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "shell"
WORKSPACES = ("/home/alice/project",)  # of the server that runs them


def honest() -> list[str]:
    """Return the honest lines."""
    return [text for _, text in _texts("honest")]


def harmful() -> list[tuple[str, str]]:
    """Return the harmful lines, each with its rule."""
    return _texts("harmful")


def _texts(name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    rule = ""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        if line.startswith("#@ "):
            rule = line[3:]
        elif line.startswith("\t"):
            found[-1] = (rule, f"{found[-1][1]}\n{line[1:]}")
        elif line == "" and found:
            found[-1] = (rule, f"{found[-1][1]}\n")
        elif not line.startswith("## "):
            found.append((rule, line))
    return found

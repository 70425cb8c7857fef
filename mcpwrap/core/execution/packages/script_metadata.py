"""Metadata block of a script: the packages and the Python version that it requires.

Read by mcpwrap alone: uv never gets the script, because its `[tool.uv]` can name folders and build
programs that uv would run. All but `dependencies` and `requires-python` is ignored.

Source: PEP 723. Its regular expression is the reference, and takes quadratic time for a script made
for that; this scanner takes linear time, and a test compares the two.
"""

import re
from collections.abc import Iterator

import msgspec
import tomli

from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.text.sanitise import one_line

_START = re.compile(r"# /// ([a-zA-Z0-9-]+)")
_CLOSE = "# ///"


class ScriptMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Requirements of a script, as they are written in it: they are not yet parsed."""

    dependencies: tuple[str, ...] = ()
    requires_python: str = msgspec.field(name="requires-python", default="")


def read(code: str) -> ScriptMetadata:
    """Return the metadata of a script; that without a block requires nothing.

    Raises:
        PackageError: there are two blocks, or the block is not TOML with values of the right types.
    """
    blocks = [content for kind, content in _blocks(code) if kind == "script"]
    if len(blocks) > 1:
        raise _refusal("the code has more than one `# /// script` block")
    if not blocks:
        return ScriptMetadata()
    try:
        return msgspec.convert(tomli.loads(blocks[0]), ScriptMetadata)
    except msgspec.ValidationError as error:
        raise _refusal(f"the `# /// script` block: {one_line(str(error)[:200])}") from error
    # Besides TOMLDecodeError: a number of 5000 digits, and tables that are nested too deep.
    except (ValueError, RecursionError) as error:
        why = one_line(str(error)[:200])
        raise _refusal(f"the `# /// script` block is not valid TOML: {why}") from error


def _blocks(code: str) -> Iterator[tuple[str, str]]:
    """Yield kind and content of each metadata block.

    A block ends at the last `# ///` of the comment lines that follow its start, as the greedy
    regular expression finds it.
    """
    # Tools read scripts as text files, which makes each line end a newline.
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    closes = _last_closes(lines)
    number = 0
    while number < len(lines):
        start = _START.fullmatch(lines[number])
        # A line of content is required, as the expression does.
        if start and closes[number] >= number + 2:
            content = lines[number + 1 : closes[number]]
            yield start[1], "".join(f"{line[1:].removeprefix(' ')}\n" for line in content)
            number = closes[number]
        number += 1


def _last_closes(lines: list[str]) -> list[int]:
    """Return for each line the last `# ///` of the unbroken comment lines after it; -1 for none."""
    closes = [-1] * len(lines)
    last = -1
    for number in range(len(lines) - 1, -1, -1):
        closes[number] = last
        line = lines[number]
        if line != "#" and not line.startswith("# "):
            last = -1
        elif line == _CLOSE and last == -1:
            last = number
    return closes


def _refusal(problem: str) -> PackageError:
    return PackageError(
        problem,
        fix='write one block as PEP 723 does: `dependencies = ["numpy"]` between '
        "`# /// script` and `# ///`",
        code="E-PACKAGE-SCRIPT",
    )

"""Page of changes on standard output: the text by which a person decides."""

from collections.abc import Iterable

import msgspec

from mcpwrap.cli.approvals.text import PIPE_WIDTH, PageLine, change_page, pieces
from mcpwrap.core.pins.changes_text import change_lines, value_of
from mcpwrap.core.pins.definition_diff import compare, introduced
from mcpwrap.core.pins.pin_question import NOTHING, HeldChange, HeldChanges
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.linux import tty


def print_page(lines: Iterable[PageLine]) -> None:
    """Print lines, folded for the terminal."""
    folded = pieces(list(lines), tty.columns() or PIPE_WIDTH)
    tty.say_lines(tty.styled(line.text, *line.styles) for line in folded)


def print_changes(changes: HeldChanges) -> None:
    """Print all changes, what is new first."""
    print_page(change_page(change_lines(changes)))


def change_fields(one: HeldChange) -> Json:
    """Return a change for `--json`."""
    is_new = bytes(one.before) == bytes(NOTHING)
    before = None if is_new else value_of(one.before)
    after = value_of(one.after)
    difference: list[Json] = [
        {"path": path, "parts": [[part.sign, part.text] for part in parts]}
        for path, parts in ([] if is_new else compare(before, after))
    ]
    return {
        "kind": one.kind,
        "name": one.name,
        "what": one.what,
        "digest": one.digest,
        "before": before,
        "after": after,
        "introduces": [] if is_new else list(introduced(before, after)),
        "findings": msgspec.to_builtins(one.findings),
        "difference": difference,
    }

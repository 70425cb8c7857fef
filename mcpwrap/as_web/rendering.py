"""HTML templates. Every value that a template shows is made visible and escaped."""

from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mcpwrap.as_web.approval_client import PendingCall
from mcpwrap.as_web.viewer import name_of
from mcpwrap.core.approval.rendering import DiffLine, difference, pretty
from mcpwrap.core.pins import changes_text, pin_question
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.approval_socket import MAX_REASON_BYTES, MAX_TIMES, MINUTES

_FOLDER = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript"}
# The time of a comparison is the square of it, and the agent chooses the number of lines.
MAX_COMPARED_LINES = 1000

_CLASSES = {  # of a line of changes, in page.css
    "heading": "title",
    "path": "place",
    "left out": "place",
    "warning": "warn",
    "added": "plus",
    "removed": "minus",
}


class Pages:
    """Templates and static files, which are read once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["clock"] = _clock
        self._environment.filters["iso"] = _iso
        self._environment.filters["account"] = name_of
        limits = {"max_times": MAX_TIMES, "minutes": MINUTES, "max_reason": MAX_REASON_BYTES}
        self._environment.globals.update(limits)
        self.static = {
            path.name: (path.read_bytes(), _TYPES[path.suffix])
            for path in (_FOLDER / "static").iterdir()
            if path.suffix in _TYPES
        }

    def render(self, template: str, values: dict[str, object]) -> str:
        """Return a page, or a part of one."""
        return self._environment.get_template(template).render(values)


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_full(call: PendingCall) -> dict[str, object]:
    """Return the values for the page of one call. A comparison may take long."""
    if call.seen.question.method == pin_question.METHOD:
        return _definitions_in_full(call)
    now, before = pretty(call.seen.question), call.seen.before
    values: dict[str, object] = {"call": call.pending, "seen": call.seen, "arguments": now}
    changed: list[DiffLine] = []
    comparison = "none"
    if before is not None:
        longest = max(now.count("\n"), pretty(before).count("\n"))
        comparison = "too-long" if longest > MAX_COMPARED_LINES else "compared"
        changed = difference(before, call.seen.question) if comparison == "compared" else []
    return values | {"comparison": comparison, "changed": changed}


def _definitions_in_full(call: PendingCall) -> dict[str, object]:
    """Return the values for the page of a question on definitions that are held back."""
    lines = changes_text.change_lines(pin_question.changes_in(call.seen.question))
    return {"call": call.pending, "seen": call.seen, "lines": lines, "classes": _CLASSES}

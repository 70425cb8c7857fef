"""HTML templates. Every value that a template shows is made visible and escaped."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mcpwrap.as_web.viewer import name_of
from mcpwrap.core.approval.rule_text import span_text
from mcpwrap.core.approval.views.preview import ShownPreview, shown_preview
from mcpwrap.core.approval.views.question_groups import shown_together
from mcpwrap.core.approval.views.rendering import difference
from mcpwrap.core.approval.views.shown_arguments import DiffLine, plain_lines, shown_arguments
from mcpwrap.core.pins import changes_text, pin_question
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.approval_socket import MAX_REASON_BYTES, MAX_TIMES, MINUTES
from mcpwrap.gate_client.group_answers import PendingCall

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
        self._environment.filters["day"] = _day
        self._environment.filters["account"] = name_of
        self._environment.filters["span"] = span_text
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


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_full(call: PendingCall) -> dict[str, object]:
    """Return the values for the page of one call. A comparison may take long."""
    if call.seen.question.method == pin_question.METHOD:
        return _definitions_in_full(call)
    question, before = call.seen.question, call.seen.before
    shown = shown_arguments(question, call.pending.deciding)
    values: dict[str, object] = {"call": call.pending, "seen": call.seen, "shown": shown}
    values["preview"] = _preview(call)
    changed: list[DiffLine] = []
    comparison = "none"
    if before is not None:
        longest = max(len(plain_lines(question)), len(plain_lines(before)))
        comparison = "too-long" if longest > MAX_COMPARED_LINES else "compared"
        changed = difference(before, question) if comparison == "compared" else []
    return values | {"comparison": comparison, "changed": changed}


def group_in_full(calls: Sequence[PendingCall]) -> dict[str, object]:
    """Return the values for the page of a group; long calls are left for their own pages."""
    together = {one.id for one in shown_together(call.pending for call in calls)}
    members = [
        (call, shown_arguments(call.seen.question, call.pending.deciding), _preview(call))
        for call in calls
        if call.pending.id in together
    ]
    others = [call.pending for call in calls if call.pending.id not in together]
    return {"first": calls[0].pending, "members": members, "others": others}


def _preview(call: PendingCall) -> ShownPreview | None:
    preview = call.seen.preview
    return shown_preview(preview, call.seen.question) if preview else None


def _definitions_in_full(call: PendingCall) -> dict[str, object]:
    """Return the values for the page of a question on definitions that are held back."""
    lines = changes_text.change_lines(pin_question.changes_in(call.seen.question))
    return {"call": call.pending, "seen": call.seen, "lines": lines, "classes": _CLASSES}

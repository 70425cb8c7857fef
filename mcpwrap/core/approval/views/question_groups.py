"""Groups of pending questions of one kind: calls of one tool, by one account, for one rule."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.views.shown_arguments import ShownArgument, shown_arguments
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.wire.approval_socket import Pending

MAX_COLUMNS = 3
_MAX_BRIEF_CHARS = 120
MAX_SHOWN_BYTES = 256 * 1024  # of the documents of a group that are answered together

Brief = tuple[tuple[str, str], ...]


class QuestionGroup(msgspec.Struct, frozen=True):
    """Pending questions of one kind, oldest first; often one alone."""

    key: str  # the same for all questions of this kind, now and later
    pending: tuple[Pending, ...]

    @property
    def first(self) -> Pending:
        """Return the oldest question."""
        return self.pending[0]

    @property
    def is_several(self) -> bool:
        """Return whether it has more than one question."""
        return len(self.pending) > 1


def grouped(pending: Iterable[Pending]) -> tuple[QuestionGroup, ...]:
    """Return the groups, in the order of their oldest questions.

    Only calls of tools are grouped: other questions are answered one by one.
    """
    found: dict[str, list[Pending]] = {}
    for one in pending:
        found.setdefault(_key(one), []).append(one)
    return tuple(QuestionGroup(key, tuple(members)) for key, members in found.items())


def _key(one: Pending) -> str:
    kind = [
        str(one.agent_uid), one.server, one.method, one.target, one.rule, one.message, one.may,
        *one.asking, "", *one.deciding, "", *one.exact,
        "" if one.method == TOOLS_CALL else one.id,
    ]  # fmt: skip
    return hashlib.sha256(msgspec.json.encode(kind)).hexdigest()[:16]


def are_of_one_kind(one: Question, other: Question) -> bool:
    """Return whether two documents are of one kind: what a page of a group states once for all."""
    names = ("agent_uid", "server", "method", "target")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def shown_together(pending: Iterable[Pending]) -> tuple[Pending, ...]:
    """Return the questions of a group that are short enough to be read, and answered, together."""
    left = MAX_SHOWN_BYTES
    found = []
    for one in pending:
        if one.size <= left:
            left -= one.size
            found.append(one)
    return tuple(found)


def brief(question: Question, deciding: Sequence[str]) -> Brief:
    """Return up to three arguments to tell a call from others of its group, with their first lines.

    They are the arguments that the rules are about, or the first ones where the rules are about
    none. The page of the call has all of them, whole.
    """
    parts = shown_arguments(question, deciding)
    chosen = [part for part in parts if part.is_deciding] or parts
    return tuple((_cut(part.path), _first_line(part)) for part in chosen[:MAX_COLUMNS])


def columns(briefs: Sequence[Brief]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the arguments of several calls as columns: their names, and a row for each call."""
    by_path = [dict(each) for each in briefs]
    paths = tuple(dict.fromkeys(path for each in by_path for path in each))[:MAX_COLUMNS]
    return paths, [tuple(each.get(path, "") for path in paths) for each in by_path]


def _first_line(part: ShownArgument) -> str:
    first, *rest = (line.text for line in part.lines)
    return _cut(f"{first} …" if rest else first)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_BRIEF_CHARS else f"{text[:_MAX_BRIEF_CHARS]}…"


def summary(outcomes: Sequence[str], total: int) -> str:
    """Return the outcomes of the answers to a group as text, as `23 approved, 2 gone`."""
    count_by_outcome = Counter(outcomes)
    parts = [f"{count} {outcome}" for outcome, count in count_by_outcome.items()]
    if unsent := total - len(outcomes):
        parts.append(f"{unsent} not answered")
    return ", ".join(parts)

"""Entries of an agent's file, wrapped or put back: a file in, bytes out."""

from collections.abc import Iterable

from mcpwrap.config.agent_files.edit import Change, Splice, applied, splices
from mcpwrap.config.agent_files.launch import NotUnderstood, Remote, Stdio
from mcpwrap.config.agent_files.opened import Listed, Opened, open_file
from mcpwrap.config.agent_files.spans import YAML_BLOCK, Entry, FileError, Key
from mcpwrap.config.agent_files.words import Listener, Stub, Target, Words


def wrapping(words: Words, listed: Listed, target: Target) -> Change:
    """Return how an entry becomes the stub, or a URL of this machine.

    Raises:
        ValueError: it was not understood, or the agent has no servers with a URL.
    """
    value = _table(listed)
    if isinstance(listed.launch, NotUnderstood):
        raise ValueError(listed.launch.why)  # noqa: TRY004 - it is a table, but not a server
    settings = words.settings(value, target)
    return Change(
        entry=listed.entry,
        settings=settings,
        dropped=words.dropped(settings, value),
        main=words.main_of(value),
    )


def rewritten(opened: Opened, changes: Iterable[Change]) -> bytes:
    """Return the file with these entries changed, and read again to see that nothing else is.

    Raises:
        FileError: that cannot be done without changing more.
    """
    text, data = opened.document.text, opened.document.data
    todo: list[Splice] = []
    for change in changes:
        todo += splices(text, change)
        data = _with(data, change.entry.path, change.value())
    return _checked(opened, applied(text, todo), data)


def _checked(opened: Opened, text: str, data: object) -> bytes:
    content = opened.content(text)
    try:
        found = open_file(opened.file, opened.language, content).document.data
    except FileError:
        found = None
    if found != data:
        raise FileError(
            "an entry cannot be rewritten without changing more; nothing was changed",
            where=opened.file,
            fix="write it in the usual form, without anchors or dotted keys",
        )
    return content


def put_back(
    opened: Opened, before: Opened, pairs: Iterable[tuple[Listed, Listed]], words: Words
) -> bytes:
    """Return the file with wrapped entries as they were, and all else as it is now.

    `pairs` has each entry as it is in `opened`, and in `before`, where none is wrapped.

    Raises:
        FileError: that cannot be done without changing more.
    """
    text, data = opened.document.text, opened.document.data
    todo: list[Splice] = []
    for now, then in pairs:
        if splice := _as_it_was(opened, before, now, then, words):
            todo.append(splice)
            data = _with(data, now.entry.path, then.entry.value)
            continue
        change = _back(now, then, words)
        try:
            todo += splices(text, change)
        except ValueError as error:
            problem = (
                f"`{now.entry.name}` had {error}, which cannot be written; nothing was changed"
            )
            raise FileError(problem, where=opened.file, fix="take it from the backup") from error
        data = _with(data, now.entry.path, change.value())
    return _checked(opened, applied(text, todo), data)


def _as_it_was(
    opened: Opened, before: Opened, now: Listed, then: Listed, words: Words
) -> Splice | None:
    """Return what puts the very text back; None if somebody has changed the entry since.

    So it is where the entry reads as it does when that of `before` is wrapped once more.
    """
    target = _target(now)
    if target is None or now.entry.region is None or then.entry.region is None:
        return None
    once_more = open_file(
        before.file, before.language, rewritten(before, [wrapping(words, then, target)])
    )
    entry = next(e for e in once_more.document.entries(then.at) if e.path == then.entry.path)
    was = then.entry.region.of(before.document.text)
    text = once_more.document.text
    if entry.region is None or _lines_of(opened, now.entry) != _lines_of(once_more, entry):
        return None
    if applied(text, [Splice(entry.region.start, entry.region.end, was)]) != before.document.text:
        return None
    return Splice(now.entry.region.start, now.entry.region.end, was)


def _lines_of(opened: Opened, entry: Entry) -> str:
    """Return the text of an entry; in YAML, where each line of it begins says what it is."""
    text = opened.document.text
    if entry.region is None:
        return ""
    line = text.rfind("\n", 0, entry.region.start) + 1
    column = entry.region.start - line if entry.form == YAML_BLOCK else 0
    return " " * column + entry.region.of(text)


def _target(now: Listed) -> Target | None:
    match now.launch:
        case Stdio(args=(name,)):
            return Stub(name)
        case Remote(url=url):
            return Listener(url)
        case _:
            return None


def _back(now: Listed, then: Listed, words: Words) -> Change:
    """Return how an entry gets back the keys by which it was started, and keeps the others."""
    was, current = _table(then), _table(now)
    keys = words.about_starting() | {words.type}
    return Change(
        entry=now.entry,
        settings={key: was[key] for key in was if key in keys},
        dropped=frozenset(key for key in current if key in keys and key not in was),
        main=words.main_of(current),
    )


def _table(listed: Listed) -> dict[str, object]:
    value = listed.entry.value
    if not isinstance(value, dict):
        raise TypeError(listed.entry.name)
    return value


def _with(data: object, path: tuple[Key, ...], value: object) -> object:
    """Return the data with another value at a path."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(data, list):
        return [_with(v, rest, value) if i == first else v for i, v in enumerate(data)]
    if isinstance(data, dict):
        return {k: _with(v, rest, value) if k == first else v for k, v in data.items()}
    raise TypeError(path)

"""Writer of mcpwrap's entries in an agent's file: wrap, unwrap, or write a new fragment.

Wrapping and unwrapping take a parsed file and return bytes. A configuration fragment is written
like the agent's file, and lists the servers for that agent.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml

from mcpwrap.config.agent_files.entry_schema import (
    EntrySchema,
    ListenerUrl,
    RunLine,
    Stub,
    Target,
)
from mcpwrap.config.agent_files.known_agents import KnownAgent
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile, open_file
from mcpwrap.config.agent_files.run_line import is_run_line
from mcpwrap.config.agent_files.syntax.document import (
    TOML_TABLE,
    YAML_BLOCK,
    FileError,
    Key,
    ServerEntry,
)
from mcpwrap.config.agent_files.syntax.text_edits import (
    Change,
    TextEdit,
    apply_edits,
    text_edits,
    written,
)
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport

KeyPath = tuple[Key, ...]
Entries = dict[str, dict[str, object]]


def wrapping(words: EntrySchema, listed: ListedServer, target: Target) -> Change:
    """Return the change by which an entry starts the stub or `run`, or has a listener's URL.

    Raises:
        ValueError: it was not understood, or the agent does not support servers with a URL.
    """
    value = _table(listed)
    if isinstance(listed.launch, UnknownTransport):
        raise ValueError(listed.launch.why)  # noqa: TRY004 - the type is right, the value is not
    settings = words.settings(value, target)
    kept = frozenset[str]()
    if isinstance(target, RunLine):
        kept = words.kept_by_run(value)
    elif isinstance(target, Stub):
        kept = words.kept_by_stub(value)
    return Change(
        entry=listed.entry,
        settings=settings,
        dropped=words.dropped(settings, value) - kept,
        main=words.main_of(value),
    )


def rewritten(opened: ParsedFile, changes: Iterable[Change]) -> bytes:
    """Return the file with these entries changed. It is parsed again to check that all else stays.

    Raises:
        FileError: the change would affect something else.
    """
    text, data = opened.document.text, opened.document.data
    todo: list[TextEdit] = []
    for change in changes:
        todo += text_edits(text, change)
        data = _with(data, change.entry.path, change.value())
    return _checked(opened, apply_edits(text, todo), data)


def replaced(
    opened: ParsedFile, at: Sequence[str], gone: Sequence[str], new: Mapping[str, object]
) -> bytes:
    """Return the file with these entries of one table replaced by others, in the first one's place.

    Raises:
        FileError: the change would affect something else, or the table is a list.
    """
    *above, name = at
    table = next((one for one in opened.document.entries(above) if one.name == name), None)
    if table is None or not isinstance(table.value, dict):
        raise FileError(
            "lists its servers without their names as keys; nothing was changed",
            where=opened.file,
            fix="write the entry by hand: `mcpwrap convert` prints it",
            code="E-AGENT-FILE-LIST",
        )
    change = Change(entry=table, settings=new, dropped=frozenset(gone) - new.keys(), main=gone[0])
    text = apply_edits(opened.document.text, _spliced(opened, change))
    return _checked(opened, text, _with(opened.document.data, table.path, change.value()))


def put_back(
    opened: ParsedFile,
    before: ParsedFile,
    pairs: Sequence[tuple[ListedServer, ListedServer]],
    words: EntrySchema,
) -> bytes:
    """Return the file with wrapped entries as they were, and all else as it is now.

    `pairs` has each entry as it is in `opened`, and as in `before`, where it is not wrapped. An
    entry without a later change gets its exact text back; another gets back the replaced keys.

    Raises:
        FileError: the change would affect something else.
    """
    text, data = opened.document.text, opened.document.data
    once_more = _once_more(before, pairs, words)
    if once_more.document.text == text:
        return before.content(before.document.text)
    whole = _whole(before, once_more, [then for _, then in pairs])
    todo: list[TextEdit] = []
    for now, then in pairs:
        wrapped = whole.get(then.entry.path)
        if wrapped and _lines_of(opened, now.entry) == _lines_of(once_more, wrapped):
            start, end = _region(now.entry)
            todo.append(TextEdit(start, end, before.document.text[slice(*_region(then.entry))]))
            data = _with(data, now.entry.path, then.entry.value)
            continue
        change = _back(now, then, words)
        todo += _spliced(opened, change)
        data = _with(data, now.entry.path, change.value())
    return _checked(opened, apply_edits(text, todo), data)


def new_entries(agent: KnownAgent, targets: Mapping[str, Target]) -> Entries:
    """Return the entry of each server.

    Raises:
        ValueError: a target is a URL, and this agent does not support servers with a URL.
    """
    return {name: agent.words.new_entry(name, target) for name, target in targets.items()}


def config_fragment(agent: KnownAgent, found: Entries) -> str:
    """Return these entries with all tables around them, written like the agent's file."""
    file = agent.files[0]
    keys = [key for key in file.at[0] if key is not None]
    if file.language == "toml":
        return "\n".join(_toml_table(".".join([*keys, name]), found[name]) for name in found)
    data: object = list(found.values()) if agent.has_list else found
    for key in reversed(keys):
        data = {key: data}
    if file.language == "yaml":
        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _checked(opened: ParsedFile, text: str, data: object) -> bytes:
    content = opened.content(text)
    try:
        is_right = open_file(opened.file, opened.language, content).document.data == data
    except (FileError, RecursionError):
        is_right = False
    if not is_right:
        raise FileError(
            "an entry cannot be rewritten without changing other text; nothing was changed",
            where=opened.file,
            fix="write the entry in the usual form, without anchors or dotted keys",
            code="E-AGENT-FILE-REWRITE",
        )
    return content


def _once_more(
    before: ParsedFile, pairs: Iterable[tuple[ListedServer, ListedServer]], words: EntrySchema
) -> ParsedFile:
    """Return the file from before with the same entries wrapped as they are now."""
    changes = [wrapping(words, then, _target(now, then)) for now, then in pairs]
    return open_file(before.file, before.language, rewritten(before, changes))


def _whole(
    before: ParsedFile, once_more: ParsedFile, then: Sequence[ListedServer]
) -> dict[KeyPath, ServerEntry]:
    """Return the entries of `once_more` that differ from before only in their own text."""
    old = sorted((one.entry for one in then), key=_region)
    found = {
        e.path: e
        for at in dict.fromkeys(one.at for one in then)
        for e in once_more.document.entries(at)
    }
    new = [found[entry.path] for entry in old]
    gaps = list(zip(_gaps(before, old), _gaps(once_more, new), strict=True))
    are_same = [was == now for was, now in gaps]
    return {entry.path: entry for n, entry in enumerate(new) if are_same[n] and are_same[n + 1]}


def _gaps(file: ParsedFile, entries: Iterable[ServerEntry]) -> Iterator[str]:
    """Yield the text before, between and after these entries."""
    at = 0
    for entry in entries:
        if entry.region:
            yield file.document.text[at : entry.region.start]
            at = entry.region.end
        else:
            yield file.document.text  # without a region of its own: it differs, so no entry matches
    yield file.document.text[at:]


def _spliced(opened: ParsedFile, change: Change) -> list[TextEdit]:
    try:
        return text_edits(opened.document.text, change)
    except ValueError as error:
        raise FileError(
            f"{change.entry.name!a} had {error}, which mcpwrap cannot write; nothing was changed",
            where=opened.file,
            fix="copy the entry from the backup",
            code="E-AGENT-FILE-RESTORE",
        ) from error


def _region(entry: ServerEntry) -> tuple[int, int]:
    return (entry.region.start, entry.region.end) if entry.region else (0, 0)


def _lines_of(opened: ParsedFile, entry: ServerEntry) -> str:
    """Return the text of an entry; in YAML with its indentation, which is part of the meaning."""
    text, (start, end) = opened.document.text, _region(entry)
    column = start - text.rfind("\n", 0, start) if entry.form == YAML_BLOCK else 0
    return " " * column + text[start:end]


def _target(now: ListedServer, then: ListedServer) -> Target:
    """Return what an entry was wrapped as; a server without a name, if that is not seen."""
    was_remote = isinstance(then.launch, HttpTransport)
    match now.launch:
        case StdioTransport(command, args, env, inherits=inherits) if is_run_line(now.launch):
            return RunLine(command, args, *((env, inherits) if was_remote else ()))
        case StdioTransport(args=(name,), inherits=inherits):
            return Stub(name, inherits)
        case HttpTransport(url=url):
            return ListenerUrl(url)
        case _:
            return Stub("")


def _back(now: ListedServer, then: ListedServer, words: EntrySchema) -> Change:
    """Return the change that restores the keys by which an entry was started, and keeps others."""
    was, current = _table(then), _table(now)
    keys = words.about_starting() | {words.type}
    if is_run_line(now.launch):
        keys -= words.kept_by_run(was)
    return Change(
        entry=now.entry,
        settings={key: was[key] for key in was if key in keys},
        dropped=frozenset(key for key in current if key in keys and key not in was),
        main=words.main_of(current),
    )


def _table(listed: ListedServer) -> dict[str, object]:
    return listed.entry.value if isinstance(listed.entry.value, dict) else {}


def _with(data: object, path: KeyPath, value: object) -> object:
    """Return the data with another value at a path."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(data, list):
        return [_with(v, rest, value) if i == first else v for i, v in enumerate(data)]
    items = data.items() if isinstance(data, dict) else ()
    return {k: _with(v, rest, value) if k == first else v for k, v in items}


def _toml_table(name: str, entry: Mapping[str, object]) -> str:
    lines = [f"[{name}]", *(written(TOML_TABLE, key, value) for key, value in entry.items())]
    return "\n".join(lines) + "\n"

"""Entries of each agent's file that start `mcpwrap run`: variables stay, and all is put back."""

from pathlib import Path

import pytest

from mcpwrap.config.agent_files.entry_schema import EntrySchema, RunLine
from mcpwrap.config.agent_files.entry_writer import put_back, rewritten, wrapping
from mcpwrap.config.agent_files.known_agents import BY_ID, KnownAgent
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile, open_file, servers
from mcpwrap.config.agent_files.rollback import RollbackConflict, roll_back
from mcpwrap.config.agent_files.run_line import run_arguments
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from tests.unit.config.agent_files.files import FIXTURES, agent_of, listed, opened, understood

PROGRAM = "/home/alice/venv/bin/mcpwrap"
A = ("mcpServers", "a")


def target_of(one: ListedServer) -> RunLine:
    match one.launch:
        case StdioTransport(command, args, env):
            options = tuple(word for name in env for word in ("--inherit", name))
            return RunLine(PROGRAM, run_arguments("one", options, (command, *args)))
        case HttpTransport(url):
            options = ("--url", url, "--bearer-from", "BEARER_TOKEN")
            return RunLine(PROGRAM, run_arguments("one", options), {"BEARER_TOKEN": "s"}, ("OWN",))
        case _:
            raise AssertionError(one)


def run(file: ParsedFile, agent: KnownAgent) -> ParsedFile:
    changes = [wrapping(agent.words, one, target_of(one)) for one in understood(file, agent)]
    return open_file(file.file, file.language, rewritten(file, changes))


def back(now: ParsedFile, before: ParsedFile, agent: KnownAgent) -> bytes:
    places = [(*one.at, one.entry.name) for one in understood(before, agent)]
    return roll_back(now, before, places, agent.words).content


each_file = pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)


@each_file
def test_a_program_keeps_its_variables_and_its_folder(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    after = run(before, agent)
    for now, then in zip(understood(after, agent), understood(before, agent), strict=True):
        assert isinstance(now.launch, StdioTransport)
        target = target_of(then)
        assert (now.launch.command, now.launch.args) == (PROGRAM, target.args)
        if isinstance(then.launch, StdioTransport):
            assert now.launch.env == then.launch.env
            assert now.launch.cwd == then.launch.cwd
            assert now.launch.inherits == then.launch.inherits
        else:
            assert now.launch.env == {"BEARER_TOKEN": "s"}
            assert now.launch.inherits == (("OWN",) if agent.words.inherits else ())
            assert isinstance(now.entry.value, dict)
            assert agent.words.headers not in now.entry.value


@each_file
def test_it_is_put_back_byte_for_byte(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    assert back(run(before, agent), before, agent) == path.read_bytes()


@each_file
def test_what_was_changed_in_between_stays(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    after = run(before, agent)
    text = after.document.text
    head = "# new\n"
    if before.language == "json":
        at = text.index("{") + 1
        head = f'{text[:at]}"new": [1, 2], '
        text = text[at:]
    changed = open_file(path.name, before.language, after.content(f"{head}{text}"))
    content = back(changed, before, agent)
    found = open_file(path.name, before.language, content)
    assert [one.launch for one in listed(found, agent)] == [
        one.launch for one in listed(before, agent)
    ]
    added = b"# new\n" if before.language != "json" else b'"new": [1, 2], '
    assert content.replace(added, b"", 1) == path.read_bytes()


CURSOR = BY_ID["cursor"].words
ENTRY = '{"command": "npx", "args": ["x", "~/n"], "env": {"K": "old"}, "sandbox": true, "t": 1}'
LINE = RunLine(PROGRAM, run_arguments("a", ("--inherit", "K"), ("npx", "x", "/home/alice/n")))
REMOTE = '{"url": "https://x.example/", "headers": {"Authorization": "Bearer s"}}'
REMOTE_LINE = RunLine(
    PROGRAM, run_arguments("a", ("--url", "https://x.example/", "--bearer-from", "T")), {"T": "s"}
)


def file_of(entry: str) -> ParsedFile:
    return open_file("f", "json", f'{{"mcpServers": {{"a": {entry}}}}}'.encode())


def of(file: ParsedFile, words: EntrySchema = CURSOR) -> ListedServer:
    [one] = servers(file, [("mcpServers",)], words)
    return one


def changed(entry: str, line: RunLine, *replaced: tuple[str, str]) -> tuple[ParsedFile, ParsedFile]:
    """Return the file before, and wrapped with later changes; each also changes another text."""
    before = file_of(entry)
    text = rewritten(before, [wrapping(CURSOR, of(before), line)]).decode()
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    return before, open_file("f", "json", text.encode())


@pytest.mark.parametrize(
    ("old", "new", "expected", "lost"),
    [
        ('"t": 1', '"t": 2', ENTRY.replace('"t": 1', '"t": 2'), ""),
        # The person's own variables are not those of a wrapped entry: a new value stays.
        ('"old"', '"new"', ENTRY.replace('"old"', '"new"'), ""),
        ('"--inherit"', '"--network", "--inherit"', ENTRY, ""),
        (PROGRAM, "/elsewhere/bin/mcpwrap", ENTRY, ""),
        ('"/home/alice/n"', '"/home/alice/n", "more"', ENTRY, "command, args"),
        ('"npx"', '"bunx"', ENTRY, "command, args"),
    ],
)
def test_a_line_that_was_changed_is_put_back(old: str, new: str, expected: str, lost: str) -> None:
    before, now = changed(ENTRY, LINE, (old, new))
    done = roll_back(now, before, [A], CURSOR)
    found = of(open_file("f", "json", done.content)).entry.value
    assert found == of(file_of(expected)).entry.value
    what = f"loses settings that were changed beside `mcpwrap run`: {lost}"
    assert done.lost == ((RollbackConflict(A, what),) if lost else ())


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ('"T": "s"', '"T": "other"', ""),
        ('"T": "s"', '"T": "s", "U": "v"', "U"),
    ],
)
def test_a_url_that_was_changed_is_put_back(old: str, new: str, lost: str) -> None:
    before, now = changed(REMOTE, REMOTE_LINE, (old, new))
    done = roll_back(now, before, [A], CURSOR)
    assert of(open_file("f", "json", done.content)).entry.value == of(before).entry.value
    what = f"loses settings that were changed beside `mcpwrap run`: {lost}"
    assert done.lost == ((RollbackConflict(A, what),) if lost else ())


def test_another_program_in_its_place_is_left() -> None:
    before, now = changed(ENTRY, LINE, (PROGRAM, "/usr/bin/other"))
    done = roll_back(now, before, [A], CURSOR)
    assert done.back == ()
    assert [one.what for one in done.conflicts] == ["was changed since, and stays as it is"]


def test_a_sandbox_of_the_agent_is_replaced() -> None:
    words = BY_ID["vscode"].words
    before = file_of(ENTRY)
    [one] = servers(before, [("mcpServers",)], words)
    after = open_file("f", "json", rewritten(before, [wrapping(words, one, LINE)]))
    [found] = servers(after, [("mcpServers",)], words)
    assert isinstance(found.entry.value, dict)
    assert found.entry.value.keys() == {"command", "args", "env", "t"} | {"type"} & (
        found.entry.value.keys()
    )
    assert put_back(after, before, [(found, one)], words) == before.content(before.document.text)

"""Realistic file of each agent: wrapped, checked, put back; only wrapped entries differ."""

from pathlib import Path

import pytest

from mcpwrap.config.agent_files.entry_schema import STUB, ListenerUrl
from mcpwrap.config.agent_files.entry_writer import rewritten, wrapping
from mcpwrap.config.agent_files.known_agents import AGENTS, KnownAgent, _project
from mcpwrap.config.agent_files.parsed_file import ParsedFile, open_file
from mcpwrap.config.agent_files.syntax.document import at_keys
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport
from mcpwrap.core.mount_layout import is_held
from mcpwrap.core.names import server_name_for
from tests.unit.config.agent_files.files import (
    FIXTURES,
    agent_of,
    listed,
    opened,
    read_otherwise,
    understood,
    unwrapped,
    wrapped,
)

SECRET = "s3cr3t"
# The number of servers in each file, and of entries that are not servers.
EXPECTED = {
    "amp": (2, 0),
    "antigravity": (2, 0),
    "claude-code": (3, 0),
    "claude-desktop": (2, 0),
    "cline": (2, 0),
    "codex": (3, 0),
    "continue": (3, 0),
    "copilot": (2, 0),
    "cursor": (2, 0),
    "devin": (2, 0),
    "gemini": (3, 0),
    "goose": (3, 1),
    "kiro": (2, 0),
    "opencode": (2, 1),
    "qwen": (2, 0),
    "vscode": (2, 0),
    "windsurf": (2, 0),
    "zed": (2, 1),
}

each_file = pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)


def test_each_agent_has_a_file() -> None:
    assert {path.stem for path in FIXTURES} == {agent.id for agent in AGENTS} == EXPECTED.keys()


def test_each_agent_s_file_in_a_project_is_one_that_servers_cannot_write() -> None:
    files = [file for agent in AGENTS for file in agent.files if file.scope == "project"]
    assert len(files) > 10
    assert [file.path for file in files if not is_held(file.path)] == []
    with pytest.raises(ValueError, match=r"^.new/mcp.json is not in HELD of core/mount_layout.py$"):
        _project(".new/mcp.json")


@each_file
def test_each_server_is_found(path: Path) -> None:
    agent, file = agent_of(path), opened(path)
    kinds = [isinstance(one.launch, UnknownTransport) for one in listed(file, agent)]
    assert (kinds.count(False), kinds.count(True)) == EXPECTED[path.stem]
    assert read_otherwise(file.language, path.read_bytes()) == comparable(file.document.data, path)


def comparable(data: object, path: Path) -> object:
    """Return our data in the form of another parser, which follows aliases."""
    if path.stem == "continue" and isinstance(data, dict):
        other = read_otherwise("yaml", path.read_bytes())
        assert isinstance(other, dict)
        return data | {"models": other["models"]}
    return data


@each_file
def test_a_wrapped_file_says_so_to_its_agent_and_has_no_secret(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    after = wrapped(before, agent)
    content = after.content(after.document.text)
    assert SECRET in before.document.text or path.stem == "antigravity"
    assert SECRET.encode() not in content
    data = read_otherwise(before.language, content)
    was = read_otherwise(before.language, path.read_bytes())
    for now, then in zip(understood(after, agent), understood(before, agent), strict=True):
        name = server_name_for(then.entry.name)
        folder = then.launch.cwd if isinstance(then.launch, StdioTransport) else ""
        folder = folder if folder.startswith("${") else ""  # the open one, which stays
        assert now.launch == StdioTransport(STUB, (name,), cwd=folder)
        entry = at_keys(data, now.entry.path)
        old = at_keys(was, then.entry.path)
        assert isinstance(entry, dict)
        assert isinstance(old, dict)
        about = agent.words.about_starting() | {agent.words.type}
        kept = {key: value for key, value in old.items() if key not in about}
        assert kept.items() <= entry.items()
        ours = {agent.words.command, agent.words.args, "type", *(["cwd"] if folder else [])}
        assert entry.keys() - kept.keys() <= ours
    assert without(data, after, agent) == without(was, before, agent)


def without(data: object, file: ParsedFile, agent: KnownAgent) -> object:
    """Return the data of a file without the servers that are wrapped."""
    for one in reversed(understood(file, agent)):
        outer = at_keys(data, one.entry.path[:-1])
        assert isinstance(outer, (dict, list))
        del outer[one.entry.path[-1]]  # type: ignore[arg-type] # a key of a dict, a place in a list
    return data


def rest(file: ParsedFile, agent: KnownAgent) -> list[str]:
    """Return the texts between the entries that are wrapped."""
    regions = [one.entry.region for one in understood(file, agent)]
    text, at, parts = file.document.text, 0, []
    for region in sorted((r for r in regions if r), key=lambda region: region.start):
        parts.append(text[at : region.start])
        at = region.end
    return [*parts, text[at:]]


@each_file
def test_all_other_bytes_are_the_same(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    after = wrapped(before, agent)
    assert rest(after, agent) == rest(before, agent)
    assert len(rest(before, agent)) == EXPECTED[path.stem][0] + 1
    content = after.content(after.document.text)
    assert (content.count(b"\r\n") == content.count(b"\n")) == (path.stem in {"vscode", "cursor"})
    assert content.startswith(b"\xef\xbb\xbf") == (path.stem == "claude-desktop")


@each_file
def test_to_wrap_twice_changes_nothing(path: Path) -> None:
    agent = agent_of(path)
    once = wrapped(opened(path), agent)
    assert wrapped(once, agent).document.text == once.document.text


@each_file
def test_what_is_put_back_is_what_was_there(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    assert unwrapped(wrapped(before, agent), before, agent) == path.read_bytes()


CHANGES = {
    "json": ("mcpServers", "mcpServers"),
    "toml": ('model = "gpt-x"', 'model = "gpt-y" # better'),
    "yaml": ("name: ", "name:  "),
}


@each_file
def test_what_was_changed_in_between_stays(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    after = wrapped(before, agent)
    text = after.document.text
    if before.language == "json":
        at = text.index("{") + 1
        text = f'{text[:at]}"new": [1, 2], {text[at:]}'
    else:
        text = f"# new\n{text}"
    changed = open_file(path.name, before.language, after.content(text))
    back = open_file(path.name, before.language, unwrapped(changed, before, agent))
    added = text.removesuffix(after.document.text)
    assert '"new"' in back.document.text or back.document.text.startswith("# new\n")
    assert [one.launch for one in listed(back, agent)] == [
        one.launch for one in listed(before, agent)
    ]
    was = before.document.text
    if before.language == "json":
        assert back.document.text.replace('"new": [1, 2], ', "") == was
    else:
        assert back.document.text == added + was


@each_file
def test_an_entry_that_was_changed_in_between_keeps_that(path: Path) -> None:
    """The entry still has our name, and a key was added beside it."""
    agent, before = agent_of(path), opened(path)
    after = wrapped(before, agent)
    text = after.document.text
    match before.language:
        case "json":
            added = text.replace(f'"{STUB}"', f'"{STUB}", "later": 1')
            added = text.replace(f'["{STUB}"', f'["{STUB}"') if not agent.words.args else added
        case "toml":
            added = text.replace(f'command = "{STUB}"', f'later = 1\ncommand = "{STUB}"')
        case _:
            added = text.replace("timeout: 300", "timeout: 301")
    changed = open_file(path.name, before.language, after.content(added))
    back = open_file(path.name, before.language, unwrapped(changed, before, agent))
    assert [one.launch for one in listed(back, agent)] == [
        one.launch for one in listed(before, agent)
    ]
    assert back.document.text.count("later") == added.count("later")
    assert back.document.text.count("301") == added.count("301")


@each_file
def test_an_agent_that_speaks_http_gets_a_url(path: Path) -> None:
    agent, before = agent_of(path), opened(path)
    url = "http://127.78.0.1:52100/"
    found = understood(before, agent)
    if not agent.words.urls:
        with pytest.raises(ValueError, match="http"):
            wrapping(agent.words, found[0], ListenerUrl(url))
        return
    content = rewritten(before, [wrapping(agent.words, one, ListenerUrl(url)) for one in found])
    assert SECRET.encode() not in content
    after = open_file(path.name, before.language, content)
    assert [one.launch for one in understood(after, agent)] == [HttpTransport(url)] * len(found)
    for one in understood(after, agent):
        value = one.entry.value
        assert isinstance(value, dict)
        if agent.words.names_remote:
            assert value[agent.words.type] == agent.words.remote
    assert unwrapped(after, before, agent) == path.read_bytes()

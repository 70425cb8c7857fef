"""Unwrapping a file that was changed since: our entries are restored, all others stay."""

import json

import pytest

from mcpwrap.config.agent_files.entry_schema import STUB, EntrySchema, ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import rewritten, wrapping
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.parsed_file import ParsedFile, open_file, servers
from mcpwrap.config.agent_files.rollback import EntryPath, Rollback, RollbackConflict, roll_back
from mcpwrap.config.agent_files.syntax.document import FileError
from mcpwrap.config.agent_files.wrap_status import LINK

WORDS = EntrySchema()
A, B = ("s", "a"), ("s", "b")
CHANGED = "was changed since, and stays as it is"
BEFORE = b"""\
{
  "s": {
    "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "timeout": 1},
    "b": {"url": "https://x.example/", "headers": {"H": "v"}}
  }
}
"""


def opened(content: bytes) -> ParsedFile:
    return open_file("f", "json", content)


def wrapped(*targets: Target) -> str:
    file = opened(BEFORE)
    listed = servers(file, [("s",)], WORDS)
    changes = [wrapping(WORDS, *pair) for pair in zip(listed, targets, strict=True)]
    return rewritten(file, changes).decode()


def back(now: str | bytes, *entries: EntryPath) -> Rollback:
    content = now if isinstance(now, bytes) else now.encode()
    return roll_back(opened(content), opened(BEFORE), entries or (A, B), WORDS)


STUBS = wrapped(Stub("a"), Stub("b"))


@pytest.mark.parametrize(
    "text",
    [STUBS, wrapped(ListenerUrl("http://127.78.0.1:52100/"), Stub("gone"))],
)
def test_an_unchanged_file_gets_its_exact_bytes_back(text: str) -> None:
    assert back(text) == Rollback(BEFORE, (A, B))
    assert back(text, A, A).back == (A,)


def test_only_what_was_wrapped_is_turned_back() -> None:
    done = back(STUBS, A)
    assert json.loads(done.content)["s"]["b"] == {"command": STUB, "args": ["b"]}
    assert (done.back, done.conflicts) == ((A,), ())


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (f'"{STUB}"', '"mcpwrap-connect"', ""),
        (f'"{STUB}", "args": ["a"]', f'"{LINK}a"', ""),
        ('["a"]', '["elsewhere"]', ""),
        ('["a"]', '["a"], "env": {"T": "x"}', "T"),
        ('["a"]', '["a"], "cwd": "/x", "envFile": "y", "env": {"T": "x"}', "T, envFile, cwd"),
        (f'"command": "{STUB}", "args": ["a"]', '"url": "http://127.78.9.9:52100/x"', ""),
        (
            f'"command": "{STUB}", "args": ["a"]',
            '"url": "http://127.78.9.9:52100/", "headers": {"C": "x"}, "auth": {}',
            "C, auth",
        ),
    ],
)
def test_what_leads_to_us_is_ours_whatever_it_says_besides(old: str, new: str, lost: str) -> None:
    done = back(STUBS.replace(old, new, 1).replace('"timeout": 1', '"timeout": 2'))
    assert done.back == (A, B)
    assert json.loads(done.content) == json.loads(BEFORE.replace(b'"timeout": 1', b'"timeout": 2'))
    what = f"loses settings that were added beside the stub: {lost}"
    assert done.lost == ((RollbackConflict(A, what),) if lost else ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f'"{STUB}"', '"/usr/local/bin/other"'),
        (f'"{STUB}"', f'"{STUB}-2"'),
        (f'"command": "{STUB}", "args": ["a"]', '"url": "http://127.0.0.1:52100/"'),
        (f'"command": "{STUB}", "args": ["a"]', '"disabled": true'),
        (f'"command": "{STUB}", "args": ["a"]', f'"command": "{STUB}", "url": "https://x/"'),
    ],
)
def test_a_changed_entry_is_left_and_named(old: str, new: str) -> None:
    text = STUBS.replace(old, new, 1)
    done = back(text)
    assert done.back == (B,)
    assert done.conflicts == (RollbackConflict(A, CHANGED),)
    assert json.loads(done.content)["s"] == {
        "a": json.loads(text)["s"]["a"],
        "b": json.loads(BEFORE)["s"]["b"],
    }


def test_what_is_gone_stays_gone() -> None:
    gone = RollbackConflict(A, "was removed from the file, and is not restored")
    text = STUBS.replace('"a":', '"renamed":', 1)
    assert back(text).conflicts == (gone,)
    assert back("{}") == Rollback(b"{}", (), (gone, RollbackConflict(B, gone.what)))
    assert back('{"s": []}').content == b'{"s": []}'


def test_what_was_never_wrapped_is_nothing_to_do() -> None:
    """The record was written, but the file was not rewritten."""
    assert back(BEFORE) == Rollback(BEFORE)
    changed = BEFORE.replace(b'"timeout": 1', b'"later": 1')
    assert back(changed) == Rollback(changed)


def test_an_entry_that_was_none_before_is_left() -> None:
    before = opened(BEFORE.replace(b'"command": "npx"', b'"odd": 1'))
    assert roll_back(opened(STUBS.encode()), before, [A], WORDS).conflicts == (
        RollbackConflict(A, CHANGED),
    )


CONTINUE = BY_ID["continue"].words
LIST = "mcpServers:\n- name: x\n  command: {}\n- name: x\n  command: {}\n"


def of_list(now: str, before: str) -> Rollback:
    now_file, before_file = (open_file("f", "yaml", text.encode()) for text in (now, before))
    return roll_back(now_file, before_file, [("mcpServers", "x")], CONTINUE)


def test_two_of_one_name_in_a_list_are_told_apart_by_their_order() -> None:
    stub = f'"{STUB}"\n  args: ["x"]'
    before = LIST.format("a", "b")
    assert of_list(LIST.format(stub, stub), before).content == before.encode()
    done = of_list("# new\n" + LIST.format("c", stub), before)
    assert done.content == b"# new\n" + LIST.format("c", "b").encode()
    assert [left.what for left in done.conflicts] == [CHANGED]


def test_one_of_two_in_a_list_could_be_either() -> None:
    now = f"mcpServers:\n- name: x\n  command: {STUB}\n  args: [x]\n"
    done = of_list(now, LIST.format("a", "b"))
    assert done.content == now.encode()
    assert [left.what for left in done.conflicts] == [
        "is not the only entry of its name any more; all of them stay as they are"
    ]


def test_what_cannot_be_put_back_is_said() -> None:
    """The person made our command an anchor, and uses it elsewhere."""
    before = "s:\n  a:\n    command: x\n"
    now = f"s:\n  a:\n    command: &stub {STUB}\n    args: [a]\nother: *stub\n"
    now_file, before_file = (open_file("f", "yaml", text.encode()) for text in (now, before))
    with pytest.raises(FileError, match="cannot be rewritten without changing other text"):
        roll_back(now_file, before_file, [A], WORDS)

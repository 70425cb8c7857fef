"""Broken files: the error names the flaw, with its line and column."""

import time

import pytest

from mcpwrap.config.agent_files.entry_schema import EntrySchema, Stub
from mcpwrap.config.agent_files.entry_writer import rewritten, wrapping
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES, open_file, servers
from mcpwrap.config.agent_files.syntax.document import FileError, Language

ROWS: list[tuple[Language, bytes, str, str]] = [
    ("json", b"", "f:1:1", "not JSON"),
    ("json", b"[]", "f:1:1", "not a JSON object"),
    ("json", b'{"a": 1,\n "a": 2}', "f:2:2", "'a' appears twice in one object"),
    ("json", b'{"a": [{"b": {"c": 1, "\\u0063": 2}}]}', "f:1:23", "'c' appears twice"),
    ("json", b'{\n "a": tru }', "f:2:7", "not JSON: Expecting value"),
    ("json", b'{"a": 1 "b": 2}', "f:1:9", "not JSON: Expecting ',' delimiter"),
    ("json", b'{"a": NaN}', "f:1:7", "not JSON: NaN"),
    ("json", b'{"a": ["NaN", // c\n -Infinity]}', "f:2:2", "not JSON: -Infinity"),
    ("json", b'{"a": "b\nc"}', "f:1:9", "not JSON: Invalid control character"),
    ("json", b'{"a": 1} x', "f:1:10", "not JSON: Extra data"),
    ("json", b'{"a": 1 /* x', "f:1:9", "not JSON"),
    ("json", b'{, "a": 1}', "f:1:2", "not JSON"),
    ("json", b'{"a": [1 2]}', "f:1:10", "not JSON"),
    ("json", b"{'a': 1}", "f:1:2", "not JSON"),
    ("json", b'{"a": ' + b"[" * 100_000, "f:1:1", "nested too deep"),
    # The text after a repeated key is not decoded: it may be anything, or nothing.
    *[
        (
            "json",
            b'{"a":' * 70 + b'{"k":1,"k":2}' + b"}" * 69 + rest,
            "f:1:1",
            "a key' appears twice",
        )
        for rest in (b',"b":nope}', b',"b":' + b"[" * 100_000, b',"b":1')
    ],
    ("json", b'// c\n{"a": ' + b"[" * 100_000, "f:1:1", "nested too deep"),
    ("json", '{"ä": "'.encode() + b"\xff", "f:1:8", "not UTF-8"),
    ("json", '{"a": 1}'.encode("utf-16"), "f:1:1", "not UTF-8"),
    ("toml", b"a = 1\na = 2\n", "f:2:6", "Cannot overwrite a value"),
    ("toml", b"a = 1\nb = \n", "f:2:5", "not TOML: Invalid value"),
    ("toml", b'a = """', "f:1:8", "not TOML"),
    ("toml", b"a = " + b"[" * 100_000, "f:1:1", "nested too deep"),
    ("toml", b"a." * 100_000 + b"a = 1", "f:1:1", "nested too deep"),
    ("toml", b"a = " + b"1" * 10_000, "f:1:1", "a number too long"),
    ("toml", b"\xef\xbb\xbf\xef\xbb\xbfa = 1", "f:1:1", "not TOML"),
    ("toml", b"#" * (1024 * 1024 + 1), "f", "over 1 MiB"),
    ("yaml", b"a: 1\nb:\n  c: 2\n  c: 3\n", "f:4:3", "'c' appears twice in one table"),
    ("yaml", b"a: [1", "f:1:6", "not YAML"),
    ("yaml", b"a: 1\n\tb: 2\n", "f:2:1", "not YAML"),
    ("yaml", b"a: 1\nb: *c\n", "f:2:4", "the anchor &c does not exist"),
    ("yaml", b"a: \x07", "f:1:1", "not YAML"),
    ("yaml", b"a: 1\n---\nb: 2\n", "f:2:1", "a second document"),
    ("yaml", b"? [a]\n: b\n", "f:1:3", "a list, table or alias as a key"),
    ("yaml", b"a: " + b"[" * 500, "f:1:68", "nested too deep"),
    ("yaml", b"#" * (1024 * 1024 + 1), "f", "over 1 MiB"),
    ("json", b" " * (MAX_BYTES + 1), "f", "over 16 MiB"),
]


@pytest.mark.parametrize(("language", "content", "place", "problem"), ROWS)
def test_a_broken_file_is_refused(
    language: Language, content: bytes, place: str, problem: str
) -> None:
    with pytest.raises(FileError) as caught:
        open_file("f", language, content)
    assert caught.value.where == place
    assert problem in caught.value.problem
    assert caught.value.problem.endswith("nothing was changed") or "object" in problem
    assert caught.value.fix
    assert caught.value.exit_code == 2


def test_yaml_deeper_than_the_parser_goes_is_refused_too() -> None:
    """PyYAML 6.0.4 looks ahead, and stops at 1000 levels before it emits the first event."""
    with pytest.raises(FileError, match=r"nested too deep|not YAML: .*nesting depth"):
        open_file("f", "yaml", b"a: " + b"[" * 100_000)


@pytest.mark.parametrize(
    ("language", "content"),
    [
        ("json", b'\xef\xbb\xbf{"a": 1e999, "b": ' + b"1" * 10_000 + b', "c": "\\ud800"}'),
        ("toml", b""),
        ("toml", b"\xef\xbb\xbfa = nan\n"),
        ("yaml", b""),
        ("yaml", b"# only this\n"),
        ("yaml", b"- a list\n"),
        ("yaml", b"a: *b\n".replace(b"*b", b"&b [1]\nc: !!str 5")),
    ],
)
def test_what_is_odd_and_no_server_is_left_alone(language: Language, content: bytes) -> None:
    file = open_file("f", language, content)
    assert servers(file, [("s",), ("a", None, "s")], EntrySchema()) == []
    assert rewritten(file, []) == content


@pytest.mark.parametrize("comment", ["", "// c\n"])
def test_a_file_of_10_mb_is_rewritten_in_time(comment: str) -> None:
    history = ", ".join(['{"display": "' + "x" * 90 + '", "pasted": {}}'] * 90_000)
    text = f'{comment}{{"history": [{history}], "s": {{"a": {{"command": "x"}}}}}}'
    assert len(text) > 10_000_000
    start = time.process_time()
    file = open_file("f", "json", text.encode())
    [one] = servers(file, [("s",)], EntrySchema())
    content = rewritten(file, [wrapping(EntrySchema(), one, Stub("a"))])
    assert time.process_time() - start < 30  # 0.6 s and 0.9 s on an idle machine
    assert content.endswith(b'{"command": "/usr/bin/mcpwrap-connect", "args": ["a"]}}}')


def test_too_many_servers_are_refused() -> None:
    text = "".join(f"[s.a{number}]\ncommand = 'x'\n" for number in range(1001))
    with pytest.raises(FileError, match="1001 servers"):
        servers(open_file("f", "toml", text.encode()), [("s",)], EntrySchema())


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "/*x" * 400_000,
        '{"a": "' + '\\"' * 400_000,
        '{"a": ' + '[{"k": ' * 400 + "[" + "1," * 50_000 + '1], "k": 1' + "}]" * 400 + "}",
        '{"a": 1' + " , " * 400_000,
    ],
)
def test_what_is_broken_on_purpose_takes_no_time(text: str) -> None:
    start = time.process_time()
    with pytest.raises(FileError):
        open_file("f", "json", text.encode())
    assert time.process_time() - start < 30


def test_many_keys_take_no_time() -> None:
    keys = "".join(f"k{number} = {number}\nenv.k{number} = 'x'\n" for number in range(10_000))
    file = open_file("f", "toml", f"[s.a]\ncommand = 'x'\n{keys}".encode())
    start = time.process_time()
    [one] = servers(file, [("s",)], EntrySchema())
    content = rewritten(file, [wrapping(EntrySchema(), one, Stub("a"))])
    assert b"env" not in content
    assert time.process_time() - start < 30

"""Edit of one entry, in each syntax in which it can be written."""

from datetime import date

import pytest

from mcpwrap.config.agent_files.entry_schema import EntrySchema, Stub
from mcpwrap.config.agent_files.entry_writer import put_back, rewritten, wrapping
from mcpwrap.config.agent_files.parsed_file import open_file, servers
from mcpwrap.config.agent_files.syntax.document import (
    JSON,
    TOML_INLINE,
    YAML_FLOW,
    FileError,
    Language,
    Opaque,
    SyntaxStyle,
)
from mcpwrap.config.agent_files.syntax.text_edits import as_text
from mcpwrap.config.agent_files.transport import UnknownTransport

S = "/usr/bin/mcpwrap-connect"
WORDS = EntrySchema(further=("env_vars",))
AT = {"json": ("s",), "toml": ("s",), "yaml": ("s",)}


def wrap(language: Language, text: str, words: EntrySchema = WORDS) -> str:
    file = open_file("f", language, text.encode())
    found = [
        wrapping(words, one, Stub(one.entry.name or "x"))
        for one in servers(file, [("s",)], words)
        if not isinstance(one.launch, UnknownTransport)
    ]
    return rewritten(file, found).decode()


# The entry `a` before and after, in `{"s": {"a": …}}`.
JSON_ROWS = [
    ('{"command":"x"}', f'{{"command":"{S}", "args": ["a"]}}'),
    ('{"command": "x", "args": [], "env": {}}', f'{{"command": "{S}", "args": ["a"]}}'),
    ('{"env": {}, "command": "x", "args": []}', f'{{ "command": "{S}", "args": ["a"]}}'),
    ('{"command": "x", "k": 1, "env": {"A": "b"}}', f'{{"command": "{S}", "args": ["a"], "k": 1}}'),
    ('{"k": [1,2], "url": "u"}', f'{{"k": [1,2], "command": "{S}", "args": ["a"]}}'),
    ('{"type": "http", "url": "u", }', f'{{"type": "stdio", "command": "{S}", "args": ["a"], }}'),
    ('{"command": "x", /* c */ "args": []}', f'{{"command": "{S}", /* c */ "args": ["a"]}}'),
    ('{"command": "x" /* , */ , "cwd": "y"}', f'{{"command": "{S}", "args": ["a"] /* , */ }}'),
    ("{\n\t'command': 'x'}".replace("'", '"'), f'{{\n\t"command": "{S}",\n\t"args": ["a"]}}'),
    ('{\n "command": "x",\n "env": {}\n}', f'{{\n "command": "{S}",\n "args": ["a"]\n}}'),
    ('{\n "command": "x",\n "env": {},\n}', f'{{\n "command": "{S}",\n "args": ["a"],\n}}'),
    # Comments stay, also that of a removed key.
    (
        '{\n "command": "x",\n "env": {} // e\n}',
        f'{{\n "command": "{S}",\n "args": ["a"]\n  // e\n}}',
    ),
    ('{\r\n "command": "x"\r\n}', f'{{\r\n "command": "{S}",\r\n "args": ["a"]\r\n}}'),
    # An escaped key is the same key.
    ('{"c\\u006fmmand": "x"}', f'{{"c\\u006fmmand": "{S}", "args": ["a"]}}'),
]


@pytest.mark.parametrize(("before", "after"), JSON_ROWS)
def test_json(before: str, after: str) -> None:
    around = '// "s": {{}}\n{{"a": {{}}, "s": {{"b": {{"no": 1}}, "a" : {0}}}, "t": [ ]}}\n'
    eol = "\r\n" if "\r" in before else "\n"
    was, now = (around.format(one).replace("\n", eol, 1) for one in (before, after))
    assert wrap("json", was) == now
    assert wrap("json", now) == now


TOML_ROWS = [
    ('[s.a]\ncommand = "x"', f'[s.a]\ncommand = "{S}"\nargs = ["a"]'),
    ("[s.a]\n  command='''x''' # c\n", f'[s.a]\n  command="{S}"\n  args = ["a"] # c\n'),
    (
        '[s.a]\ncommand="x"\nargs=["#", """]"""] # c\n\n\n[s.a.env]\nA="1"\n# B\nC="2"\n\n[t]',
        f'[s.a]\ncommand="{S}"\nargs=["a"] # c\n\n[t]',
    ),
    (
        '[s.a.env]\nA="1"\n\n[s.a]\ncommand="x"\nk=1979-05-27',
        f'\n[s.a]\ncommand="{S}"\nargs = ["a"]\nk=1979-05-27',
    ),
    ('[s]\na.command="x"\na.env.A="1"\n', f'[s]\na.command="{S}"\na.args = ["a"]\n'),
    ('s.a.command="x"\ns.a.env.A="1"\n', f's.a.command="{S}"\ns.a.args = ["a"]\n'),
    ('s.a.env.A="1"\ns.a.command="x"\n', f's.a.command="{S}"\ns.a.args = ["a"]\n'),
    (
        's = {a = {command = "x", env = {A = "}"}, k = {x = 1}}}',
        f's = {{a = {{command = "{S}", args = ["a"], k = {{x = 1}}}}}}',
    ),
    ('s = {a.command = "x", a.cwd = "y"}', f's = {{a.command = "{S}", a.args = ["a"]}}'),
    ('[s]\na = {url = "u", env.A = "b"}', f'[s]\na = {{command = "{S}", args = ["a"]}}'),
    (
        '[s."a"]\nurl = "u"\n[[t]]\n[[t]]\n',
        f'[s."a"]\ncommand = "{S}"\nargs = ["a"]\n[[t]]\n[[t]]\n',
    ),
    (
        "[s.a]\r\ncommand = 'x'\r\ncwd = 'y'\r\n[s.a.env]\r\nA = 'b'\r\n",
        f'[s.a]\r\ncommand = "{S}"\r\nargs = ["a"]\r\n',
    ),
    ('\ns.a.env.A="1"\ns.a.command="x"\n', f'\ns.a.command="{S}"\ns.a.args = ["a"]\n'),
    (
        '[s.a]\ncommand="x"\noauth.b.c="1"\n[s.a.oauth.d]\ne="2"\n',
        f'[s.a]\ncommand="{S}"\nargs = ["a"]\n',
    ),
    ('[s.a]\ncommand = "x"\n[s.a.env]\n', f'[s.a]\ncommand = "{S}"\nargs = ["a"]\n'),
    (
        '[s.a]\ncommand = "x"\n[s.a.env]\nA="1"\n[s.a.tools.x]\nk = """\n[s.b]"""\n',
        f'[s.a]\ncommand = "{S}"\nargs = ["a"]\n[s.a.tools.x]\nk = """\n[s.b]"""\n',
    ),
    (  # TOML 1.1: an inline table of several lines, with comments
        's = {a = {\n command = "x", # c, d\n cwd = "y" # e, f\n , k = 1,\n}}',
        f's = {{a = {{\n command = "{S}",\n args = ["a"], # c, d\n  k = 1,\n}}}}',
    ),
]


@pytest.mark.parametrize(("before", "after"), TOML_ROWS)
def test_toml(before: str, after: str) -> None:
    assert wrap("toml", before) == after
    assert wrap("toml", after) == after


YAML_ROWS = [
    ("s:\n  a:\n    command: x\n", f's:\n  a:\n    command: "{S}"\n    args: ["a"]\n'),
    ("s: {a: {command: x}}", f's: {{a: {{command: "{S}", args: ["a"]}}}}'),
    (
        "s:\n a: {url: u, headers: {A: b}, # c, d\n  k: 1}\n",
        f's:\n a: {{command: "{S}", args: ["a"], # c, d\n  k: 1}}\n',
    ),
    ("s:\n- name: a\n  command: x", f's:\n- name: a\n  command: "{S}"\n  args: ["a"]'),
    ("s:\n- command: x\n  name: a\n", f's:\n- command: "{S}"\n  args: ["a"]\n  name: a\n'),
    (
        "s:\n- env: {A: b}\n  name: a\n  command: x\n  args: [1x]\n",
        f's:\n- name: a\n  command: "{S}"\n  args: ["a"]\n',
    ),
    (
        "s:\n  a:\n    command: >-\n      x\n\n    # c\n    args:\n    - |\n      w\n\nt: 1",
        f's:\n  a:\n    command: "{S}"\n\n    # c\n    args:\n    - "a"\n\nt: 1',
    ),
    ("s:\n  a:\n    command: x\n    args:\n", f's:\n  a:\n    command: "{S}"\n    args: ["a"]\n'),
    (
        "t: &t {u: 1}\ns:\n  a:\n    command: x\n    env:\n      A: b # c\n    k: *t\n",
        f't: &t {{u: 1}}\ns:\n  a:\n    command: "{S}"\n    args: ["a"]\n     # c\n    k: *t\n',
    ),
    (
        "s:\r\n  a:\r\n    command: x\r\n    cwd: y\r\n",
        f's:\r\n  a:\r\n    command: "{S}"\r\n    args: ["a"]\r\n',
    ),
    ("---\ns: {}\n...\n", "---\ns: {}\n...\n"),
    ("s: {'ä😀': {command: x}}", None),
]


@pytest.mark.parametrize(("before", "after"), YAML_ROWS)
def test_yaml(before: str, after: str | None) -> None:
    after = after or f's: {{\'ä😀\': {{command: "{S}", args: ["ä😀"]}}}}'
    assert wrap("yaml", before) == after
    assert wrap("yaml", after) == after


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "yaml",
            "s:\n  a: &a\n    command: x\n    env: &e {A: b}\nt: *e\n",
        ),  # the alias would have no anchor
        ("yaml", "s:\n  a: &a {command: x, env: {A: b}}\nt: *a\n"),  # and `t` would be mcpwrap's
        ("yaml", "s:\n  a: &a {command: x, env: {A: b}}\nt: &t [*a]\nu: *t\n"),
        ("yaml", "s:\n  a:\n    ? env\n    : {A: b}\n    ? command\n    : x\n"),
    ],
)
def test_what_would_change_more_is_refused(language: Language, text: str) -> None:
    with pytest.raises(FileError, match="without changing other text; nothing was changed"):
        wrap(language, text)


@pytest.mark.parametrize("command", ["0E0", "1e5", "0o7", ".5"])
def test_a_number_of_yaml_1_2_is_no_program(command: str) -> None:
    """It is text in YAML 1.1, and a number in section 10.3.2 of YAML 1.2.2: agents read either."""
    file = open_file(
        "f", "yaml", f"s: {{a: {{command: {command}}}, b: {{command: '{command}'}}}}".encode()
    )
    bare, quoted = servers(file, [("s",)], WORDS)
    with pytest.raises(ValueError, match="`command` is a number, not text"):
        wrapping(WORDS, bare, Stub("a"))
    assert S.encode() in rewritten(file, [wrapping(WORDS, quoted, Stub("b"))])


def test_what_was_not_understood_is_not_wrapped() -> None:
    file = open_file("f", "json", b'{"s": {"a": {"k": 1}, "b": 5}}')
    for one, why in zip(
        servers(file, [("s",)], WORDS), ("there is no", "the entry is"), strict=True
    ):
        with pytest.raises(ValueError, match=why):
            wrapping(WORDS, one, Stub("a"))


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (JSON, {"ä": [1, True, None, 1.5]}, '{"ä": [1, true, null, 1.5]}'),
        (TOML_INLINE, {"a": {"ö": "x", "b-c": []}}, '{ a = { "ö" = "x", b-c = [] } }'),
        (TOML_INLINE, {}, "{}"),
        (TOML_INLINE, "\x7f\u2028", '"\\u007f\\u2028"'),
        (YAML_FLOW, {"on": "no", "e": "\x85"}, '{"on": "no", "e": "\\u0085"}'),
        (JSON, "\ud800", '"\\ud800"'),
    ],
)
def test_a_value_is_written(form: SyntaxStyle, value: object, text: str) -> None:
    assert as_text(form, value) == text


@pytest.mark.parametrize("value", [None, Opaque("a date"), [Opaque("an alias")], date(1979, 5, 27)])
def test_what_a_language_cannot_write_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"nothing|a date|an alias"):
        as_text(TOML_INLINE, value)


def back(language: Language, before: str, now: str) -> str:
    """Return the present file after the rollback of `a`."""
    then, file = open_file("f", language, before.encode()), open_file("f", language, now.encode())
    pairs = [
        (one, other)
        for one in servers(file, [("s",)], WORDS)
        for other in servers(then, [("s",)], WORDS)
        if one.entry.name == other.entry.name
    ]
    return put_back(file, then, pairs, WORDS).decode()


BACK_ROWS: list[tuple[Language, str, str, str]] = [
    # A key was added to the entry: it stays, and the others are restored as values.
    (
        "json",
        '{"s": {"a": {"type": "http", "url": "u", "headers": {"A": "b"}}}}',
        f'{{"s": {{"a": {{"type": "stdio", "command": "{S}", "args": ["a"], "new": 1}}}}}}',
        '{"s": {"a": {"type": "http", "url": "u", "headers": {"A": "b"}, "new": 1}}}',
    ),
    # And the entry was indented differently.
    (
        "yaml",
        "s:\n  a:\n    command: x\n    env:\n      A: b\n",
        f's:\n    a:\n        command: "{S}"\n        args: ["a"]\n',
        's:\n    a:\n        command: "x"\n        env: {"A": "b"}\n',
    ),
    (
        "toml",
        '[s.a]\ncommand = "x"\n[s.a.env]\nA = "b"\n',
        f'[t]\n[s.a]\nk = 1\ncommand = "{S}"\nargs = ["a"]\n',
        '[t]\n[s.a]\nk = 1\ncommand = "x"\nenv = { A = "b" }\n',
    ),
    # The table of an entry is in two places.
    (
        "toml",
        '[s.a]\ncommand = "x"\n[t]\n[s.a.env]\nA = "b"\n',
        f'# new\n[s.a]\ncommand = "{S}"\nargs = ["a"]\n[t]\n',
        '# new\n[s.a]\ncommand = "x"\nenv = { A = "b" }\n[t]\n',
    ),
    # The other entry is as it was wrapped, and gets its exact text back.
    (
        "json",
        '{"s": {"a": {"command":"x"}, "b": {"command":"y","args" : []}}}',
        f'''{{"s": {{"a": {{"command":"{S}", "args": ["q"], "k": 1}},
        "b": {{"command":"{S}","args" : ["b"]}}}}}}''',
        """{"s": {"a": {"command":"x", "k": 1},
        "b": {"command":"y","args" : []}}}""",
    ),
    (
        "json",
        '{"s": {"a": {"command": "x", "env": {}}}}',
        f'{{"s": {{"a": {{"command": "{S}", "env": {{}}, "args": ["a", "b"]}}}}}}',
        '{"s": {"a": {"command": "x", "env": {}}}}',
    ),
]


@pytest.mark.parametrize(("language", "before", "now", "after"), BACK_ROWS)
def test_an_entry_is_put_back(language: Language, before: str, now: str, after: str) -> None:
    assert back(language, before, now) == after


def test_a_value_that_cannot_be_written_is_in_the_backup() -> None:
    before = '[s.a]\ncommand = "x"\nenv_vars = 1979-05-27\n'
    now = f'[s.a]\nk = 1\ncommand = "{S}"\nargs = ["a"]\n'
    with pytest.raises(FileError, match="'a' had a date, which mcpwrap cannot write; nothing was"):
        back("toml", before, now)

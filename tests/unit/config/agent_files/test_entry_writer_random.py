"""Random documents: only the wrapped entry changes, and it is put back."""

import json
from collections.abc import Callable

import tomli
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.agent_files.entry_schema import STUB, EntrySchema, Stub
from mcpwrap.config.agent_files.entry_writer import put_back, rewritten, wrapping
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile, open_file, servers
from mcpwrap.config.agent_files.syntax.document import JSON, TOML_INLINE, TOML_TABLE, Language
from mcpwrap.config.agent_files.syntax.text_edits import as_text, written

WORDS = EntrySchema()
ENTRY = {"command": STUB, "args": ["a"]}
ABOUT = WORDS.about_starting()

text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6)
keys = st.sampled_from(["k", "s", "env", "on", "a.b", '"', "ä", "#", "// c", ", }"])
scalars = st.one_of(st.booleans(), st.integers(-9, 99), text, st.floats(0, 1, width=16))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
others = st.dictionaries(keys.filter(lambda key: key not in {"s", *ABOUT}), values, max_size=3)
env = st.dictionaries(st.sampled_from(["A", "B C", "ä"]), text, max_size=2)
entry = st.builds(
    lambda kept, started, first: {**started, **kept} if first else {**kept, **started},
    others,
    st.fixed_dictionaries(
        {"command": text.filter(bool)}, optional={"args": st.lists(text, max_size=2), "env": env}
    ),
    st.booleans(),
)


def check(language: Language, content: str, read: Callable[[str], object]) -> None:
    before = open_file("f", language, content.encode())
    [one] = [each for each in _listed(before) if each.entry.name == "a"]
    after = rewritten(before, [wrapping(WORDS, one, Stub("a"))])
    was, now = read(content), read(after.decode())
    assert isinstance(was, dict)
    kept = {key: value for key, value in was["s"]["a"].items() if key not in ABOUT}
    assert now == {**was, "s": {**was["s"], "a": {**kept, **ENTRY}}}
    file = open_file("f", language, after)
    [found] = [each for each in _listed(file) if each.entry.name == "a"]
    assert rewritten(file, [wrapping(WORDS, found, Stub("a"))]) == after
    assert put_back(file, before, [(found, one)], WORDS).decode() == content
    changed = open_file("f", language, _with_another(language, after.decode()).encode())
    pairs = [(each, one) for each in _listed(changed) if each.entry.name == "a"]
    back = read(put_back(changed, before, pairs, WORDS).decode())
    assert isinstance(back, dict)
    assert {key: value for key, value in back.items() if key != "new"} == was


def _listed(file: ParsedFile) -> list[ListedServer]:
    return servers(file, [("s",)], WORDS)


def _with_another(language: Language, content: str) -> str:
    if content.startswith("{") or language == "json":
        at = content.index("{") + 1
        return f'{content[:at]}"new": 1, {content[at:]}'
    return f"new{' =' if language == 'toml' else ':'} 1\n{content}"


spaces = st.sampled_from(["", " ", "\n  ", " // c, }\n", "/* { */", "\r\n\t"])


@st.composite
def json_texts(draw: st.DrawFn, value: object) -> str:
    """Return one of the spellings of a value."""

    def space() -> str:
        return draw(spaces)

    if isinstance(value, dict) and value:
        parts = [
            f"{space()}{as_text(JSON, key)}{space()}:{space()}{draw(json_texts(inner))}{space()}"
            for key, inner in value.items()
        ]
    elif isinstance(value, list) and value:
        parts = [f"{space()}{draw(json_texts(inner))}{space()}" for inner in value]
    else:
        return as_text(JSON, value)
    trailing = draw(st.sampled_from(["", ","]))
    opener, closer = "{}" if isinstance(value, dict) else "[]"
    return f"{opener}{','.join(parts)}{trailing}{space()}{closer}"


document = st.builds(
    lambda before, inner, name, servers_, after: {
        **before,
        "s": {**servers_, "a": inner} if name else {"a": inner, **servers_},
        **{key: value for key, value in after.items() if key not in before},
    },
    others,
    entry,
    st.booleans(),
    st.dictionaries(st.sampled_from(["b", "c d"]), entry, max_size=2),
    others,
)


def _read_json(text: str) -> object:
    """Parse a text with known content by an independent parser, with its rules."""
    from tests.unit.config.agent_files.files import read_otherwise

    return read_otherwise("json", text.encode())


@given(st.data())
def test_json(data: st.DataObject) -> None:
    check("json", data.draw(json_texts(data.draw(document))), _read_json)


@given(document, st.sampled_from([None, 1, 2, "\t"]))
def test_plain_json(value: object, indent: int | str | None) -> None:
    check("json", json.dumps(value, indent=indent), _read_json)


class AgentsYaml(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no types
    """YAML dumper that quotes number-like text: `0E0` is a number in 1.2, and bare text in 1.1."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if data[:1] in set("+-.0123456789") else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


AgentsYaml.add_representer(str, AgentsYaml.represent_str)


@given(document, st.sampled_from([True, False, None]), st.sampled_from(["\n", "\r\n"]))
def test_yaml(value: object, style: bool | None, eol: str) -> None:  # noqa: FBT001 - PyYAML's
    content = yaml.dump(
        value,
        Dumper=AgentsYaml,
        default_flow_style=style,
        allow_unicode=True,
        line_break=eol,
        sort_keys=False,
    )
    check("yaml", content, yaml.safe_load)


@st.composite
def toml_lines(draw: st.DrawFn) -> list[str]:
    lines: list[str] = []
    _write_table(draw, lines, (), draw(document))
    return lines


@given(toml_lines(), st.sampled_from(["\n", "\r\n"]))
def test_toml(lines: list[str], eol: str) -> None:
    check("toml", eol.join([*lines, ""]), tomli.loads)


def _write_table(
    draw: st.DrawFn, lines: list[str], path: tuple[str, ...], table: dict[str, object]
) -> None:
    """Write a table, with its content as tables, inline tables or dotted keys."""
    if path:
        lines += ["# c = [", f" [{'.'.join(path)}] # ]"][draw(st.integers(0, 1)) :]
    inner = {}
    for key, value in table.items():
        if isinstance(value, dict) and (key in {"s", "a"} or draw(st.booleans())):
            inner[key] = value
        else:
            lines.append(written(TOML_TABLE, key, value) + draw(st.sampled_from(["", " # c"])))
    for key, value in inner.items():
        quoted = written(TOML_INLINE, key, "").removesuffix(' = ""')
        _write_table(draw, lines, (*path, quoted), value)

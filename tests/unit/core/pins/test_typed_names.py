"""Names of definitions as a person types them."""

import shlex

import pytest

from mcpwrap.core.pins.definitions import Kind
from mcpwrap.core.pins.typed_names import displayed_name, parse_typed, typed_name

DIGEST = "0123456789abcdef" * 4
BY_DIGEST = "sha256:0123456789abcdef"


@pytest.mark.parametrize(
    ("kind", "name", "typed"),
    [
        ("tool", "create_issue", "create_issue"),
        ("prompt", "review", "prompt:review"),
        ("template", "file:///{path}", "'template:file:///{path}'"),
        ("server", "", "instructions"),
        ("tool", "instructions", "tool:instructions"),  # not the server's
        ("tool", "prompt:review", "tool:prompt:review"),
        ("tool", "sha256:ab", "tool:sha256:ab"),
        ("tool", "a:b", "a:b"),
        ("tool", "--yes", "tool:--yes"),  # not an option
        ("tool", "x; rm -rf ~", "'x; rm -rf ~'"),  # a server chooses its names
        ("tool", "$(id)", "'$(id)'"),
        ("tool", "a'b", "'a'\"'\"'b'"),
        ("tool", "", BY_DIGEST),
        ("tool", "a\nb", BY_DIGEST),
        ("tool", "\x1b[2J", BY_DIGEST),
        ("tool", "\u0441\u043e\u0440\u0443", BY_DIGEST),  # Cyrillic letters like those of `copy`
        ("tool", "x" * 101, BY_DIGEST),
        ("tool", "x" * 100, "x" * 100),
    ],
)
def test_what_is_printed_is_read_as_the_same_definition(kind: Kind, name: str, typed: str) -> None:
    assert typed_name(kind, name, DIGEST) == typed
    [argument] = shlex.split(typed)
    assert parse_typed(argument).names(kind, name, DIGEST)
    assert not parse_typed(argument).names(kind, f"{name}x", "f" * 64)


@pytest.mark.parametrize(
    ("kind", "name", "displayed"),
    [
        ("tool", "add", 'tool "add"'),
        ("server", "", "instructions"),
        ("prompt", "a\nb", 'prompt "a\\nb"'),
        ("tool", "\u0441", 'tool "\u0441 (\\u0441)"'),
    ],
)
def test_a_name_in_a_text(kind: Kind, name: str, displayed: str) -> None:
    assert displayed_name(kind, name) == displayed

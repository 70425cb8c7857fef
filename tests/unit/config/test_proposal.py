"""Content of a proposal: only servers, of bounded size, and in canonical form."""

import pytest

from mcpwrap.config.model import ConfigError
from mcpwrap.config.parse import parse
from mcpwrap.config.proposal import (
    MAX_SHOWN_CHARS,
    expect_declared,
    servers_of,
    settable,
    texts_of,
)
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.errors import McpwrapError, UsageError
from tests.unit.config.places import source

ONE = "[mcp_servers.a]\ncommand = '/x'\n"
TEXT = texts_of(ONE.encode())["a"]
LONG = 32 * 1024


def test_each_server_is_a_text_of_its_own() -> None:
    raw = f"{ONE}env.X = '${{KEY}}' # said\n[mcp_servers.b]\nurl = 'https://b.example/é'\n"
    with pytest.raises(ConfigError, match="not an https URL"):
        texts_of(raw.encode())
    raw = raw.replace("é", "e")
    servers = parse([source(raw)]).servers
    texts = texts_of(raw.encode())
    assert texts == {name: toml_of(server) for name, server in servers.items()}
    assert servers_of(texts) == servers


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        ("", "it has no server"),
        ("[mcp_servers]", "it has no server"),
        (f"[egress]\n{ONE}", r"\[egress\]: cannot be proposed"),
        (f"[egress]\nparent = '10.0.0.1:3128'\n{ONE}", r"\[egress\]: cannot be proposed"),
        (f"[approvals]\n{ONE}", r"\[approvals\]: cannot be proposed"),
        (f"[approvals]\nsame_uid = true\n{ONE}", r"\[approvals\]: cannot be proposed"),
        (f"'other\\n\u202e' = 1\n{ONE}", r"'other\\\\n\\u202e': no such setting"),
        (f"{ONE}[mcp_servers.'\u0430']\ncommand = '/x'", r"'\u0430': is not a valid server name"),
        (f"{ONE}password = 'x'", "password: no such setting"),
        (b"\xef\xbb\xbf" + ONE.encode(), "not TOML"),
        (b"\xff", "not UTF-8"),
        (ONE + "#" * 1024 * 1024, "over 1 MiB"),
        (
            "".join(
                f"[mcp_servers.a{n}]\ncommand = '/x'\nargs = ['{'x' * LONG}']\n" for n in range(2)
            ),
            f"characters for a person to read; the limit is {MAX_SHOWN_CHARS}",
        ),
    ],
)
def test_what_else_there_is_is_refused(raw: str | bytes, wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong) as error:
        texts_of(raw if isinstance(raw, bytes) else raw.encode())
    assert "nothing was changed" in str(error.value)


OTHER = toml_of(parse([source(ONE.replace("a]", "b]"))]).servers["b"])


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({}, "no server, or too many"),
        ({"a": TEXT + "#" * MAX_SHOWN_CHARS}, "no server, or too many"),
        ({"a\n": TEXT}, "characters that are not valid"),
        ({"../a": TEXT}, "characters that are not valid"),
        ({"\u0430": TEXT}, "characters that are not valid"),  # looks like an a
        ({"": TEXT}, "characters that are not valid"),
        ({"a": TEXT.replace("/x", "/\u202e")}, "characters that are not valid"),
        ({"a": TEXT + "# \x1b[2J"}, "characters that are not valid"),
        ({"a": TEXT + "\r"}, "characters that are not valid"),
        ({"a": OTHER}, "a text that is not one server"),
        ({"a": TEXT + OTHER}, "a text that is not one server"),
        ({"a": TEXT + "[approvals]\nsame_uid = true\n"}, "a text that is not one server"),
        ({"a": TEXT + "[egress]\nparent = '10.0.0.1:3128'\n"}, "a text that is not one server"),
        ({"a": f"# agents = []\n{TEXT}"}, "a text that is not one server"),
        ({"a": TEXT.replace(" = ", "=")}, "a text that is not one server"),
        ({"a": TEXT.replace("/x", "\\u002fx")}, "a text that is not one server"),
        ({"a": TEXT.removesuffix("\n")}, "a text that is not one server"),
        ({"a": "", "b": OTHER}, "a text that is not one server"),
    ],
)
def test_malformed_output_of_the_reader_is_refused(texts: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=f"{why}.*nothing was changed"):
        servers_of(texts)


def test_what_cannot_be_read_from_it_is_refused() -> None:
    with pytest.raises(McpwrapError, match="not TOML"):
        servers_of({"a": "a"})


SECRETS = parse([source(
    "[mcp_servers.a]\ncommand = '/x'\nenv.X = '${B} ${A}'\n"
    "[mcp_servers.b]\nurl = 'https://b.example/'\nmcpwrap.oauth = true\nheaders.X = '${A}'\n"
)]).servers  # fmt: skip


def test_declared_secrets_are_accepted() -> None:
    assert settable(SECRETS["a"]) == ["A", "B"]
    assert settable(SECRETS["b"]) == ["A"]  # mcpwrap makes the key of its logins
    expect_declared(SECRETS, {"a": {"A": "", "B": ""}, "b": {"A": ""}})
    expect_declared(SECRETS, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": {"C": "hidden"}}, "does not refer to a secret 'C' of 'a'"),
        ({"c": {"A": "hidden"}}, "does not refer to a secret 'A' of 'c'"),
        ({"b": {"B": "hidden"}}, "does not refer to a secret 'B' of 'b'"),
        (
            {"b": {next(iter(SECRETS["b"].secrets() - {"A"})): "hidden"}},
            "does not refer to a secret",
        ),
        ({"a": {"\x1b[2J\u202e" + "x" * 99: "hidden"}}, r"'\\x1b\[2J\\u202ex{60,66} of 'a'"),
    ],
)
def test_other_secrets_are_refused(given: dict[str, dict[str, str]], said: str) -> None:
    with pytest.raises(UsageError, match=f"{said}.*nothing was changed") as error:
        expect_declared(SECRETS, given)
    assert "hidden" not in str(error.value)

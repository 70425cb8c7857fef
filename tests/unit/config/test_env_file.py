"""Parsing of mcp-secrets.env, row by row; no error message contains a part of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.env_file import parse_env_file
from mcpwrap.config.model import ConfigError, Problem

FILE = "mcp-secrets.env"

UNDERSTOOD = [
    ("KEY=value", "value"),
    ("KEY=value\n", "value"),
    ("KEY=value  \t", "value"),
    ("KEY=value\r", "value"),
    ("  KEY=value", "value"),
    ("KEY= value", "value"),
    ("export KEY=value", "value"),
    ("export \t KEY=value", "value"),
    ("\n# comment\n   # KEY=other\n\nKEY=value\n", "value"),
    ("KEY=two words", "two words"),
    ("KEY=pass #word", "pass #word"),  # not a comment: a password may have this
    ("KEY=#value", "#value"),
    ("KEY=a=b==", "a=b=="),
    ("KEY=$HOME ${HOME} `id` $(id)", "$HOME ${HOME} `id` $(id)"),
    (r"KEY=a\nb\\", r"a\nb\\"),
    ("KEY=it's", "it's"),
    ('KEY=a"b"', 'a"b"'),
    ("KEY=a\x85b\u2028c\x0cd", "a\x85b\u2028c\x0cd"),  # lines end at a newline and nowhere else
    ("KEY='value'", "value"),
    ("KEY=' value '  ", " value "),
    ("KEY='a # b'", "a # b"),
    (r"KEY='a\n\\$b'", r"a\n\\$b"),
    ("KEY='\"'", '"'),
    ('KEY="value"', "value"),
    ('KEY=" value "\r', " value "),
    (r'KEY="a\nb\tc\"d\\e\$f"', 'a\nb\tc"d\\e$f'),
    (r'KEY="a\\nb"', r"a\nb"),
    (r'KEY="\\"', "\\"),
    ("KEY=\"$HOME 'x' # y\"", "$HOME 'x' # y"),
    ("KEY=grüße 日本語 😀", "grüße 日本語 😀"),
]
NOT_A_KEY = ["", "k", "key", "1KEY", "KEY ", "KE Y", "KEY-A", "É", "KEY.A", "K" * 65, "'KEY'"]
NOT_A_KEY += ["EXPORT KEY", "exportKEY", "export", "export export KEY", "\ufeffKEY", "KEY\0"]
WRONG = [
    ("KEY", "", "no `=`"),
    ("export KEY", "", "no `=`"),
    ("export", "", "no `=`"),
    ("KEY: value", "", "no `=`"),
    *((f"{key}=value", "", "no valid secret name") for key in NOT_A_KEY),
    ("KEY=", "", "nothing after the `=`"),
    ("KEY=  ", "", "nothing after the `=`"),
    ("KEY=''", "KEY", "nothing between the quotes"),
    ('KEY=""', "KEY", "nothing between the quotes"),
    ("KEY=va\0lue", "KEY", "a NUL"),
    ("KEY='va\0lue'", "KEY", "a NUL"),
    ("KEY='value", "KEY", "is not closed on its line"),
    ("KEY='", "KEY", "is not closed on its line"),
    ('KEY="value', "KEY", "is not closed on its line"),
    (r'KEY="value\"', "KEY", "is not closed on its line"),
    ("KEY=\"value'", "KEY", "is not closed on its line"),
    ("KEY='value' # comment", "KEY", "after the closing quote"),
    ("KEY='it'\\''s'", "KEY", "after the closing quote"),  # a shell would join the two
    ('KEY="a"b', "KEY", "after the closing quote"),
    (r'KEY="a\qb"', "KEY", "backslash"),
    (r'KEY="\x41"', "KEY", "backslash"),
    (r'KEY="\u0041"', "KEY", "backslash"),
    ('KEY="\\\'"', "KEY", "backslash"),
]


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_env_file(text, FILE)
    return caught.value.problems


@pytest.mark.parametrize(("text", "value"), UNDERSTOOD)
def test_a_line_gives_a_value(text: str, value: str) -> None:
    assert parse_env_file(text, FILE) == {"KEY": value}


@pytest.mark.parametrize("text", ["", "\n", "# KEY=value", " \t\r\n#"])
def test_a_file_may_hold_nothing(text: str) -> None:
    assert parse_env_file(text, FILE) == {}


def test_keys_are_in_the_order_of_the_file() -> None:
    assert list(parse_env_file("B=1\nA=2\nexport _C=3\n", FILE).items()) == [
        ("B", "1"),
        ("A", "2"),
        ("_C", "3"),
    ]


@pytest.mark.parametrize(("line", "key", "problem"), WRONG)
def test_a_wrong_line_is_refused(line: str, key: str, problem: str) -> None:
    (found,) = problems(f"# comment\nGOOD=value\n{line}\nALSO_GOOD=value\n")
    assert (found.file, found.table, found.key) == (FILE, "line 3", key)
    assert problem in found.problem
    assert found.fix


def test_a_key_stands_once() -> None:
    (second, third) = problems("KEY=a\nOTHER=b\nKEY=c\nKEY=a\n")
    assert (second.table, second.key, second.problem) == ("line 3", "KEY", "is also set on line 1")
    assert (third.table, third.key, third.problem) == ("line 4", "KEY", "is also set on line 1")


def test_a_key_with_a_wrong_value_counts() -> None:
    found = problems("KEY='a\nKEY=b\n")
    assert [problem.table for problem in found] == ["line 1", "line 2"]


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_env_file("one\nKEY='\nGOOD=1\nkey=2\n", FILE)
    assert [problem.table for problem in caught.value.problems] == ["line 1", "line 2", "line 4"]
    assert "mcp-secrets.env, line 2, KEY: " in str(caught.value)
    assert str(caught.value).endswith("3 problems; nothing was changed")


@pytest.mark.parametrize(
    "text",
    [
        "zqxjv",
        "zqxjv=",
        "zqxjv=zqxjv",
        "ZQXJV=",  # the end of a value in base32, on a line of its own
        "KEY=-----BEGIN\nzqxjv+ZQXJV/zqxjv\nZQXJV==zqxjv\nzqxjv=\n",
        "KEY='zqxjv",
        "KEY='zqxjv'zqxjv",
        'KEY="zqxjv',
        'KEY="\\zqxjv"',
        "KEY=zqxjv\0zqxjv",
        "KEY=zqxjv\nKEY=zqxjv",
        "KEY zqxjv=zqxjv",
    ],
)
def test_no_message_has_a_part_of_a_value(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_env_file(text, FILE)
    assert "zqxjv" not in str(caught.value).lower()
    assert "zqxjv" not in repr(caught.value.problems).lower()


@given(st.text(min_size=1).filter(lambda value: "\0" not in value))
def test_every_value_can_be_written_in_double_quotes(value: str) -> None:
    written = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert parse_env_file(f'KEY="{written}"', FILE) == {"KEY": value}


@given(st.text("\n\r\t '\"\\=#$AZ_az09\0é"))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        value_by_key = parse_env_file(text, FILE)
    except ConfigError:
        return
    assert all(value_by_key.values())

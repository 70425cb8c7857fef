"""Parser of shell command lines: commands, substitutions, syntax that is skipped, bounds."""

import pytest

from mcpwrap.core.policy.shell.parser import parse_line
from mcpwrap.core.policy.shell.syntax import (
    MAX_CHARS,
    MAX_DEPTH,
    MAX_WORDS,
    Command,
    Part,
    Unknown,
    Variable,
)


def _shown(part: Part) -> str:
    match part:
        case Variable(name=name):
            return f"<{name}>"
        case Unknown(text=text):
            return f"<?{text}>"
        case _:
            return part


def commands(text: str) -> list[list[str]]:
    """Return the words of each command, with expansions in angle brackets."""
    return [
        ["".join(map(_shown, word.parts)) for word in item.words]
        for item in parse_line(text).items
        if isinstance(item, Command) and item.words
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("  \t\n # nothing", []),
        ("a b", [["a", "b"]]),
        ("a;b&c&&d||e|f|&g\nh", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]),
        ("a b # c; d\ne", [["a", "b"], ["e"]]),
        ("a b#c", [["a", "b#c"]]),  # no comment inside a word
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a 'b'\"c\"d", [["a", "bcd"]]),
        ("a ''", [["a", ""]]),
        ("a '\\n' \"\\n\\\"\\$x\\\\\"", [["a", "\\n", '\\n"$x\\']]),
        ("a $'b\\nc\\x41\\101\\u0042\\'d'", [["a", "b\ncAAB'd"]]),
        ('a $"b"', [["a", "b"]]),
        ("a\\\nb \\\n c", [["ab", "c"]]),
        ("a\\\\\nb", [["a\\"], ["b"]]),  # the backslash is escaped, so the line ends
        ('a "b\\\nc"', [["a", "bc"]]),
        ("a 'b\\\nc'", [["a", "b\\\nc"]]),
        ("a\\", [["a\\"]]),
        ("a b\r\nc", [["a", "b"], ["c"]]),
        ("a $x ${y} \"$z\" ${w[@]} ${v:?no}", [["a", "<x>", "<y>", "<z>", "<w>", "<v>"]]),
        ("a ${x:-b} ${#x} ${x%.*} $1 $? $", [["a", "<?>", "<?>", "<?>", "<?>", "<?>", "$"]]),
        ("a ${x:-${y:-'}'}} b", [["a", "<?>", "b"]]),
        ("a ~ ~/b ~c \"~\" b~ x=~", [["a", "<HOME>", "<HOME>/b", "<?>", "~", "b~", "x=<HOME>"]]),
        ("a $(b c) d", [["b", "c"], ["a", "<?b c>", "d"]]),
        ('a "$(b "c)")"', [["b", "c)"], ["a", '<?b "c)">']]),
        ("a `b \\`c\\``", [["c"], ["b", "<?c>"], ["a", "<?b `c`>"]]),
        ('a "x`b`"', [["b"], ["a", "x<?b>"]]),
        ("a ${x:-$(b)}", [["b"], ["a", "<?>"]]),
        ("a $((1 + 2)) $(( (1) ))", [["a", "<?>", "<?>"]]),
        ("a $(($(b)))", [["b"], ["a", "<?>"]]),
        ("a $((b); c)", [["b"], ["c"], ["a", "<?(b); c>"]]),
        ("a <(b) >(c)", [["b"], ["c"], ["a", "<?>", "<?>"]]),
        ("(a; b) && { c; }", [["a"], ["b"], ["c"]]),
        ("((a + 1)); b", [["b"]]),
        ("x=1 y=$z a b=c", [["a", "b=c"]]),
        ("x=(a\n # ' b\n b) c; x[1]=d; y+=e", [["c"]]),
        ("declare -A x=([a]=b) y", [["declare", "-A", "x=", "y"]]),
        ("x=\n", []),
        ("a > b 2>&1 >>c < d <> e &> f >| g", [["a"]]),
        ("> x a b", [["a", "b"]]),
        ("a 2b {c}>d", [["a", "2b"]]),
        ("a <<< 'b c'; d", [["a"], ["d"]]),
        ("a <<E && b\nc $(d)\nE\ne", [["a"], ["b"], ["d"], ["e"]]),
        ("a <<'E'\nc $(d)\nE\ne", [["a"], ["e"]]),
        ("a <<-E <<F\n\tb\n\tE\nc `d`\nF\ne", [["a"], ["d"], ["e"]]),
        ("a <<E\nb", [["a"]]),  # a shell warns, and goes on
        ("a <<E", [["a"]]),
        ("a $(cat <<E\nb)\nE\n) c", [["cat"], ["a", "<?cat <<E\nb)\nE\n>", "c"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done; until c\ndo d\ndone", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in a b; do c; done", [["c"]]),
        ("for x in\tb\ndo c; done", [["c"]]),
        ("for x; do c; done; for ((i=0;i<3;i++)); do d; done", [["c"], ["d"]]),
        ("case a in b|c) d;; (e) f;& *) ;; esac; g", [["d"], ["f"], ["g"]]),
        ("case a in b) c; esac; d", [["c"], ["d"]]),
        ("case a\nin\n\n b )\n c\n ;;\nesac", [["c"]]),
        ("a() { b; }; function c { d; }; function e() (f)", [["b"], ["d"], ["f"]]),
        ("[[ -d a && b < c || ( d =~ ^(e|f)$ ) ]] && g", [["g"]]),
        ("! a | b", [["a"], ["b"]]),
        ("'if' a; \\if b", [["if", "a"], ["if", "b"]]),  # quoted words are not reserved
        ("echo if then", [["echo", "if", "then"]]),
    ],
)  # fmt: skip
def test_commands_are_found(text: str, found: list[list[str]]) -> None:
    assert commands(text) == found
    assert parse_line(text).is_whole


@pytest.mark.parametrize(
    "text",
    [
        "a 'b", 'a "b', "a $'b", "a $(b", "a `b", "a ${b", "a )", "( a", "a (b)", "a b ()", "a <",
        "((a)", "case a b", "case a in b", "[[ a", "a <<", "a <<$b", "x=(a", "for ((a", "a( b )",
        "a; 'b",
    ],
)  # fmt: skip
def test_commands_before_an_error_are_found(text: str) -> None:
    line = parse_line(f"first\n{text}")
    assert not line.is_whole
    assert commands(f"first\n{text}")[0] == ["first"]


def test_a_command_is_shown_as_it_is_written() -> None:
    items = parse_line("a;  b  'c'  > d ; (e\\\nf)").items
    sources = [item.source for item in items if isinstance(item, Command)]
    assert sources == ["a", "b  'c'  > d", "e\\\nf"]


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        ("a" * MAX_CHARS, "a" * (MAX_CHARS + 1)),
        ("a " * MAX_WORDS, "a " * (MAX_WORDS + 1)),
        ("a $x" + "$x" * (MAX_WORDS - 3), "a $x" + "$x" * MAX_WORDS),
        ("( " * MAX_DEPTH + "a" + ")" * MAX_DEPTH, "( " * 17 + "a" + ")" * 17),
        ("a $(" * MAX_DEPTH + ")" * MAX_DEPTH, "a $(" * 17 + ")" * 17),
        ("a ${b:-" + "${b:-" * 15 + "}" * MAX_DEPTH, "a " + "${b:-" * 17 + "}" * 17),
        ("a", "a\0"),
        ("a", "a\1"),
    ],
)
def test_longer_texts_are_not_parsed(text: str, longer: str) -> None:
    assert parse_line(text).is_whole
    assert not parse_line(longer).is_whole


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_backticks_have_a_depth(depth: int) -> None:
    text = "a"
    for _ in range(4):  # each level doubles the backslashes
        text = "a `" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"
    assert parse_line("( " * (depth - 4) + text + ")" * (depth - 4)).is_whole == (
        depth == MAX_DEPTH
    )

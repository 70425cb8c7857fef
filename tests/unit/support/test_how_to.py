"""Reader of docs/how-to: steps of a page, and outputs that are and are not what it shows."""

import pytest

from tests.system.support import how_to
from tests.system.support.how_to import Command, Copies, File, LeftOut

PAGE = """# Title

Write `/etc/mcpwrap/a.toml`:

<!-- file: /etc/mcpwrap/a.toml -->
```toml
[a]
```

<!-- not played: it downloads -->
```sh
sudo apt install a
```

```text
done
```

<!-- as: bob -->
<!-- types: y -->
<!-- types: z -->
<!-- status: 5 -->
```sh
mcpwrap a
mcpwrap b
```

It prints this:

```text
… is a
```

<!-- carries: a.gz key -->
```sh
scp a.gz key new:
```

<!-- on: new -->
<!-- until -->
```sh
mcpwrap c
```

```text
…
```
"""


def test_a_page_is_read_in_order() -> None:
    file, left_out, typed, copies, repeated = how_to.read(PAGE)
    assert file == File(
        line=6, path="/etc/mcpwrap/a.toml", text="[a]\n", account="root", machine=""
    )
    assert left_out == LeftOut(line=11, reason="it downloads")
    assert typed == Command(
        line=23,
        script="mcpwrap a\nmcpwrap b\n",
        account="bob",
        machine="",
        typed=("y", "z"),
        status=5,
        marks=frozenset(),
        output="… is a\n",
    )
    assert copies == Copies(line=35, names=("a.gz", "key"))
    assert isinstance(repeated, Command)
    assert (repeated.account, repeated.machine, repeated.marks) == (
        "alice",
        "new",
        frozenset({"until"}),
    )


def block(language: str, *comments: str) -> str:
    return "\n".join([*comments, f"```{language}", "a", "```", ""])


@pytest.mark.parametrize(
    ("page", "line", "problem"),
    [
        (block("toml"), 1, "a block of toml is neither typed nor written"),
        (block("toml", "<!-- not played: an example -->"), 0, ""),
        (block("text"), 1, "a block of text is neither typed nor written"),
        (block("sh") + block("text"), 0, ""),
        (block("sh") + block("text") * 2, 7, "a block of text is neither typed nor written"),
        (block("toml", "<!-- file: /a -->"), 2, "the text above does not name `/a`"),
        ("`/a`:\n" + block("toml", "<!-- file: /a -->"), 0, ""),
        (block("sh", "<!-- untill -->"), 1, "not a comment that the reader knows"),
        (block("sh", "<!-- until: x -->"), 1, "not a comment that the reader knows"),
        (block("sh", "<!-- as -->"), 1, "not a comment that the reader knows"),
        (block("sh", "<!-- until -->"), 2, "waits for an output that the page does not show"),
        (block("sh", "<!-- until -->") + block("text"), 0, ""),
        ("<!-- as: bob -->\n\n" + block("sh"), 2, "the comment before this line"),
        ("```sh\na\n", 1, "the block has no end"),
    ],
)
def test_a_block_without_a_part_is_an_error(page: str, line: int, problem: str) -> None:
    if not problem:
        assert how_to.read(page)
        return
    with pytest.raises(how_to.PageError) as caught:
        how_to.read(page)
    assert (caught.value.line, caught.value.problem[: len(problem)]) == (line, problem)


@pytest.mark.parametrize(
    ("expected", "output", "is_shown"),
    [
        ("done", "done\r\n", True),
        ("done", "\x1b[1mdone\x1b[0m\r\n", True),  # colours of a terminal
        ("done", "not done\r\n", False),
        ("done", "done\r\nand more\r\n", False),
        ("done", "", False),
        ("NAME  UID\ntime  1", "NAME    UID  \ntime    1    \n", True),  # wider columns
        ("NAME  UID\ntime  1", "NAME    UID  \ntime    2    \n", False),
        ("version …", "version 12\n", True),
        ("version …", "version 12\nand more\n", False),  # any text of one line
        ("a … c", "a b b c\n", True),
        ("a … c", "a b b d\n", False),
        ("…\ndone", "1/2\n2/2\ndone\n", True),
        ("…\ndone", "done\n", True),  # or no line
        ("…\ndone", "1/2\nfailed\n", False),
        ("a.c", "abc\n", False),
        ("  a", "a\n", True),
    ],
)  # fmt: skip
def test_an_output_is_compared_whole(expected: str, output: str, *, is_shown: bool) -> None:
    assert how_to.is_shown(f"{expected}\n", output) is is_shown

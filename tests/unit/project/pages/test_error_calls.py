"""Names and messages of errors, as they are found in source text."""

import pytest

from tests.project.pages.error_calls import Message, Use, uses

OTHER = {"mcpwrap/core/names.py": "MAX_CHARS = 24\nNO = 'not a name'"}
HEAD = """
from mcpwrap.core import names
from mcpwrap.core.names import MAX_CHARS, NO
MAX_BYTES = 4 * 2**10
TEXTS = {1: "is gone"}
PAIRS = {1: ("is gone", "copy it")}
"""
TWO_WAYS = """\
if is_ok:
    problem, fix = "is gone", "copy it"
else:
    problem, fix = "is here", "leave it"
raise OddError(problem, where=key, fix=fix, code="E-A-B")
"""


def found(body: str) -> list[Use]:
    """Return the uses in a function."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = f"def check(reader, value, key, fix, error, is_ok):\n{lines}"
    return uses({**OTHER, "mcpwrap/config/it.py": HEAD + function})


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ('raise BadValueError("no host", "write one", code="E-A-B")', [("no host", "write one")]),
        ('raise McpwrapError("no host", where=key, fix="write one", code="E-A-B")',
         [("no host", "write one")]),
        ('raise McpwrapError(problem="no host", where=key, fix=fix, code="E-A-B")',
         [("no host", "")]),
        ('raise BadValueError(f"{value!r} is long", f"at most {MAX_CHARS}", code="E-A-B")',
         [("«VALUE» is long", "at most 24")]),
        ('raise UsageError(f"over {MAX_BYTES}", fix=f"{names.MAX_CHARS} is it", code="E-A-B")',
         [("over 4096", "24 is it")]),
        ('raise UsageError(names.NO, where=key, fix=NO, code="E-A-B")',
         [("not a name", "not a name")]),
        ('raise OddError(f"gone: {error.msg}, {len(value)}, {key[0]}, {str(fix)}", code="E-A-B")',
         [("gone: «REASON», «NUMBER», «KEY», «FIX»", "")]),
        ('raise OddError(f"of {\', \'.join(f\'{n}\' for n in names.ALL)}", code="E-A-B")',
         [("of «ALL»", "")]),
        # The key of a note may be text too, in a shorter call or a longer one.
        ('reader.note("env", "not a table", "write a table", code="E-A-B")',
         [("not a table", "write a table")]),
        ('reader.note_at(key, f"no {key}", fix, code="E-A-B")', [("no «KEY»", "")]),
        ('all.append(Problem("a b", "c d", "", "not a table", "write one", code="E-A-B"))',
         [("not a table", "write one")]),
        ('Flaw(reader.mark, "not a list", "write a list", code="E-A-B")',
         [("not a list", "write a list")]),
        # A helper of a module has the problem anywhere.
        ('raise _refused("secret_files", "no such key", "add it", code="E-A-B")',
         [("no such key", "add it")]),
        ('problem = "it is gone"\nraise _refused(problem, fix, code="E-A-B")',
         [("it is gone", "")]),
        ('raise OddError(f"{len(value)} {key}", "write less", code="E-A-B")',
         [("«NUMBER» «KEY»", "write less")]),
        # A table of the module.
        ('raise OddError(TEXTS.get(error.errno, "is odd"), code="E-A-B")',
         [("is gone", ""), ("is odd", "")]),
        ('raise OddError(TEXTS[key], code="E-A-B")', [("is gone", "")]),
        ('why, fix = PAIRS.get(key, ("is odd", "see it"))\nraise OddError(why, fix, code="E-A-B")',
         [("is gone", "copy it"), ("is odd", "see it")]),
        (TWO_WAYS,
         [("is gone", "copy it"), ("is here", "leave it")]),
        ('raise OddError("is " + ("gone" if is_ok else "here") + ".", code="E-A-B")',
         [("is gone.", ""), ("is here.", "")]),
        ('why = "gone"\nwhy = f"{why}, and back"\nraise OddError(why, code="E-A-B")',
         [("gone", ""), ("«REASON», and back", "")]),
        # Text that is not in the source is not a message; the name counts all the same.
        ('raise OddError(error.problem, code="E-A-B")', []),
        ('log_line("it is gone [E-A-B]")', [("it is gone", "")]),
        ('log_line(f"{key} is gone [E-A-B]\\n")', [("«KEY» is gone", "")]),
        ('log_line("it is gone [E-A-B]. To have it back:\\n  copy it")',
         [("it is gone", "To have it back: copy it")]),
        ('log_line(key + f" is {value} [E-A-B]")', [("«KEY» is «VALUE»", "")]),
        ('log_line(b"it is gone [E-A-B]")', [("it is gone", "")]),
        ('table = {1: "it is gone [E-A-B]"}', [("it is gone", "")]),
        ('file_error(error, code_of("E-A-B"))', []),
    ],
)  # fmt: skip
def test_a_message_is_found(body: str, messages: list[tuple[str, str]]) -> None:
    (use,) = found(body)
    assert (use.name, use.file) == ("E-A-B", "mcpwrap/config/it.py")
    assert list(use.messages) == [Message(*message) for message in messages]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('raise OddError("gone", code="E-A-B" if is_ok else "E-C-D")', ["E-A-B", "E-C-D"]),
        ('raise OddError("gone", code="bad")', ["bad"]),  # refused by the check of names
        ('raise OddError("gone", code="E-lower")', ["E-lower"]),
        ('log_line("gone [E-A]")', ["E-A"]),
        ('RefusedReply(code="busy", why="one at a time")', []),
        ("error_response(1, code=INVALID_REQUEST)", []),
        ('raise OddError("gone", code=key)', []),
        ('"""Print `it is gone [E-A-B]`."""', []),
        ("log_line('an E-mail, RFC-E-1, [E] and [e-a-b]')", []),
    ],
)
def test_a_name_is_found(body: str, names: list[str]) -> None:
    assert [use.name for use in found(body)] == names

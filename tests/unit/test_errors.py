"""Errors: the problem, its place, and the fix."""

import errno

import pytest

from mcpwrap import errors


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(errors.McpwrapError, errors.EXIT_FAILED), (errors.UsageError, errors.EXIT_USAGE)],
)
def test_an_error_reads_as_place_problem_fix(
    kind: type[errors.McpwrapError], exit_code: int
) -> None:
    error = kind("is on fire", where="/etc/x", fix="put it out", code="E-FILE-ACCESS")
    assert str(error) == "/etc/x: is on fire [E-FILE-ACCESS]\n  fix: put it out"
    assert error.exit_code == exit_code


def test_the_name_follows_the_problem() -> None:
    error = errors.McpwrapError("is on fire", where="/etc/x", fix="put it out", code="E-FIRE-HERE")
    assert error.lines() == ["/etc/x: is on fire [E-FIRE-HERE]", "  fix: put it out"]
    assert error.named_problem == "is on fire [E-FIRE-HERE]"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("is on fire", ("is on fire", "E-FIRE-HERE")),
        ("is on fire [E-ROOF-LOST]", ("is on fire", "E-ROOF-LOST")),
        ("one line\nanother [E-ROOF-2]", ("one line\nanother", "E-ROOF-2")),
        ("[E-ROOF-LOST] is on fire", ("[E-ROOF-LOST] is on fire", "E-FIRE-HERE")),  # not its end
        ("is on fire [E-]", ("is on fire [E-]", "E-FIRE-HERE")),  # not a name
    ],
)
def test_a_reason_has_one_name(reason: str, expected: tuple[str, str]) -> None:
    assert errors.split_name(reason, code="E-FIRE-HERE") == expected
    assert errors.with_name(reason, code="E-FIRE-HERE") == "{} [{}]".format(*expected)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space", "/a"),
            "/a: No space; so [E-FILE-NO-ROOM]\n  fix: make room",
        ),
        (OSError(errno.EDQUOT, "Quota", "/a"), "/a: Quota; so [E-FILE-NO-ROOM]\n  fix: make room"),
        (
            OSError(errno.EROFS, "Read-only", "/a"),
            "/a: Read-only; so [E-FILE-ACCESS]\n  fix: fix the cause named above",
        ),
        (  # no file, no errno
            OSError("odd"),
            "mcpwrap: odd; so [E-FILE-ACCESS]\n  fix: fix the cause named above",
        ),
    ],
)
def test_an_error_of_a_file_reads_so_too(error: OSError, said: str) -> None:
    assert str(errors.file_error(error, "so")).startswith(said)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OSError, "odd; nothing was changed"),
        (errors.PartialWriteError, "odd; interrupted here: run the"),
    ],
)
def test_nothing_was_changed_unless_something_was(kind: type[OSError], said: str) -> None:
    with pytest.raises(errors.McpwrapError, match=said), errors.nothing_changed():
        raise kind(errno.EIO, "odd", "/a")

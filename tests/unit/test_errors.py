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
    error = kind("is on fire", where="/etc/x", fix="put it out")
    assert str(error) == "/etc/x: is on fire\n  fix: put it out"
    assert error.exit_code == exit_code


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a"), "/a: No space left; so\n  fix: make room"),
        (OSError(errno.EDQUOT, "Quota exceeded", "/a"), "/a: Quota exceeded; so\n  fix: make room"),
        (OSError(errno.EROFS, "Read-only", "/a"), "/a: Read-only; so\n  fix: mend that"),
        (OSError("odd"), "mcpwrap: odd; so\n  fix: mend that"),  # it names neither file nor cause
    ],
)
def test_an_error_of_a_file_does_too(error: OSError, said: str) -> None:
    assert str(errors.file_error(error, "so")).startswith(said)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OSError, "odd; nothing was changed"),
        (errors.PartialWriteError, "odd; broken off here: the"),
    ],
)
def test_nothing_was_changed_unless_something_was(kind: type[OSError], said: str) -> None:
    with pytest.raises(errors.McpwrapError, match=said), errors.nothing_changed():
        raise kind(errno.EIO, "odd", "/a")

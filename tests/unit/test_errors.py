"""An error says what is wrong, where, and what to do next."""

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

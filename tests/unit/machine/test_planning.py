"""Notes of `plan` and `apply` about the policy of the machine."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.machine import planning

GOOD = b"version: 1\n"
BAD = b"version: 1\nrules: [{name: a, tool: '*', action: blok}]\n"


@pytest.mark.parametrize(("text", "count"), [(GOOD, 0), (BAD, 1)])
def test_a_policy_with_errors_is_noted(
    monkeypatch: pytest.MonkeyPatch, text: bytes, count: int
) -> None:
    files = [SourceFile("/etc/mcpwrap/policy.yaml", text)]
    monkeypatch.setattr(planning, "policy_files", lambda: files)
    notes = planning.policy_errors()
    assert len(notes) == count
    assert all(note.startswith("the policy has errors (1), which") for note in notes)
    if not count:
        assert parse_policy(files).rules == ()

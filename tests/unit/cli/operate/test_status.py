"""`mcpwrap status`: a policy that the caller may not read, and the fix for a closed socket."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.cli.operate import status
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.errors import UsageError
from mcpwrap.machine import observer, planning, policy_files
from tests.unit.plain_account import without_root


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a policy, and a folder for more policies."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "policy.d").mkdir()
        (folder / "policy.yaml").write_text("version: 1")
        monkeypatch.setattr(policy_files, "FILE", f"{made}/policy.yaml")
        monkeypatch.setattr(policy_files, "FOLDER", f"{made}/policy.d")
        monkeypatch.setattr(observer, "expect_roots_own", lambda: None)
        monkeypatch.setattr(planning, "vanished", list)
        yield folder


def expect(flaw: str) -> None:
    assert "".join(status._flaws()[:1]).partition(": ")[2].startswith(flaw)
    assert flaw or status._flaws() == []


@pytest.mark.parametrize("name", ["policy.yaml", "policy.d"])
def test_what_others_may_not_read_is_no_flaw(folder: Path, name: str) -> None:
    path = folder / name
    path.chmod(path.stat().st_mode & ~0o077)

    def read() -> None:
        with pytest.raises(
            UsageError, match="Permission denied"
        ) as error:  # this is what `plan` prints
            policy_files.policy_files()
        assert error.value.where == str(path)

    without_root(read)
    without_root(lambda: expect(""))
    path.chmod(path.stat().st_mode | 0o022)  # the twin
    expect("accounts other than root can ")


@pytest.mark.parametrize(
    ("stopped", "fix"),
    [
        (Panic(), "`sudo mcpwrap restart git`, or for all `sudo mcpwrap apply`"),
        (Panic(names=("time",)), "`sudo mcpwrap restart git`, or for all `sudo mcpwrap apply`"),
        (Panic(names=("git",)), "`sudo mcpwrap resume git`"),
        (Panic(everything=True), "`sudo mcpwrap resume`"),
    ],
)
def test_a_socket_that_panic_has_closed_is_opened_by_resume(
    monkeypatch: pytest.MonkeyPatch, stopped: Panic, fix: str
) -> None:
    monkeypatch.setattr(observer, "panic", lambda: stopped)
    found = status._state("git", {"ActiveState": "inactive"}, {"ActiveState": "inactive"})
    assert found == ("stopped", f"its socket does not listen: {fix}")
    # The twin: a socket that `apply` has opened meanwhile.
    found = status._state("git", {"ActiveState": "active"}, {"ActiveState": "inactive"})
    assert found == ("ready", "starts on first use")

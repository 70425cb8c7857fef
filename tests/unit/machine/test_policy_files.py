"""Missing policy files, as far as the calling account may look."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.core.wire.server_files import AccessList, AccessRule, encode
from mcpwrap.machine import observer
from mcpwrap.machine.policy_files import gone
from mcpwrap.plan import paths
from tests.unit.plain_account import without_root


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that other accounts can search, with one policy file in it."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        (Path(made) / "kept.yaml").touch()
        yield Path(made)


def test_a_file_that_the_account_may_not_see_is_not_gone(folder: Path) -> None:
    kept, lost = str(folder / "kept.yaml"), str(folder / "lost.yaml")

    def expect_gone(*names: str) -> None:
        assert gone([kept, lost, f"{kept}/x"]) == names

    without_root(lambda: expect_gone(lost, f"{kept}/x"))  # the twin
    folder.chmod(0o700)
    without_root(expect_gone)


@pytest.mark.parametrize("damage", [b"", b"\xff", b"{"])
def test_with_a_damaged_access_list_no_policy_is_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    lost = str(folder / "lost.yaml")
    access_list = AccessList(
        by_server={"git": AccessRule(uids=(), gids=(), inherits=(), policy=(lost,))}
    )
    monkeypatch.setattr(paths, "ACCESS_LIST", str(folder / "gate.json"))
    Path(paths.ACCESS_LIST).write_text(encode(access_list))
    assert observer.vanished_policies() == {"git": (lost,)}
    Path(paths.ACCESS_LIST).write_bytes(damage)
    assert observer.vanished_policies() == {}

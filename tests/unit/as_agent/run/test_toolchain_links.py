"""Path resolution that follows no symbolic link that a server could have made."""

from pathlib import Path

import pytest

from mcpwrap.as_agent.run.toolchain import resolve_contained, resolve_trusted, symlinks_on


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Create `app`, which the server may write, and folders beside it, which it may not."""
    for folder in ("app/inner", "keys/inner", "agents"):
        (tmp_path / folder).mkdir(parents=True)
    for link, target in (
        ("app/keys", "../keys"),
        ("app/file", "../keys/config"),
        ("agents/app", "../app"),
        ("agents/tool", "../app/file"),
        ("agents/keys", str(tmp_path / "keys")),
        ("agents/chain", "keys/inner"),
        ("agents/loop", "loop"),
    ):
        (tmp_path / link).symlink_to(target)
    (tmp_path / "keys/config").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("keys/config", "keys/config"),
        ("agents/keys/config", "keys/config"),  # the agent's own link
        ("agents/chain/../config", "keys/config"),  # `..` of the link's target
        ("app", "app"),
        ("app/../keys", "keys"),
        ("agents/app/../keys", "keys"),
        ("nothing/there", "nothing/there"),
        ("app/file", None),
        ("app/keys/config", None),
        ("app/inner", None),  # not a link yet
        ("app/keys/../config", None),
        ("agents/tool", None),  # the agent's link leads to the server's link
        ("agents/app/file", None),
        ("agents/loop", None),
    ],
)
def test_no_link_is_followed_that_a_server_may_have_made(
    top: Path, path: str, to: str | None
) -> None:
    assert resolve_trusted(top / path, {top / "app"}) == (None if to is None else top / to)
    if to is None and "loop" not in path:
        assert resolve_trusted(top / path, set()) == (top / path).resolve()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("keys/config", {}),
        ("nothing/there", {}),
        ("agents/keys/config", {"agents/keys": "{top}/keys"}),
        ("agents/chain", {"agents/chain": "keys/inner", "agents/keys": "{top}/keys"}),
        ("agents/app/file", {"agents/app": "../app"}),  # the server can make the rest
        ("app/keys/config", {}),
        ("agents/loop", {"agents/loop": "loop"}),
    ],
)
def test_the_links_on_a_path_are_those_that_a_server_cannot_have_made(
    top: Path, path: str, found: dict[str, str]
) -> None:
    there = {top / link: Path(target.format(top=top)) for link, target in found.items()}
    assert symlinks_on(top / path, {top / "app"}) == there


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("agents/keys/config", "keys/config"),  # the agent's own link
        ("app/inner", "app/inner"),
        ("app/inner/../loop", "app/loop"),
        ("app/within", "app/inner"),  # its target is writable in any case
        ("app/keys", None),
        ("agents/tool", None),
        ("app/up/keys", None),
    ],
)
def test_a_named_path_is_not_one_that_a_server_redirected(
    top: Path, path: str, to: str | None
) -> None:
    (top / "app/within").symlink_to("inner")
    (top / "app/up").symlink_to("..")
    assert resolve_contained(top / path, {top / "app"}) == (top / to if to else None)

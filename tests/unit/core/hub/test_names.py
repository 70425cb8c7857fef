import pytest

from mcpwrap.core.hub import names
from mcpwrap.core.names import MAX_NAME_CHARS

LONGEST_HUB = "h" * MAX_NAME_CHARS


@pytest.mark.parametrize(
    ("namespace", "name", "exposed"),
    [
        ("git", "commit", "git__commit"),
        ("", "commit", "commit"),
        ("git", "__commit", "git____commit"),  # the first separator is the end of the namespace
        ("git", "files.read", None),  # a model's API refuses the point, and with it all tools
        ("git", "", None),
        ("git", "commit\n", None),
        ("git", "größe", None),
        ("git", "x" * 47, "git__" + "x" * 47),  # 52 characters: `mcp__tools__` makes it 64
        ("git", "x" * 48, "git__" + "x" * 38 + "_6b6d5ca8"),
    ],
)
def test_a_name_has_its_namespace_and_a_bound(
    namespace: str, name: str, exposed: str | None
) -> None:
    assert names.exposed_name("tools", namespace, name) == exposed


def test_two_long_names_stay_two() -> None:
    """Agents that cut names themselves make one of `create…` and `delete…`."""
    first, second = (
        names.exposed_name("tools", "n", f"{'x' * 60}{verb}") for verb in ("create", "delete")
    )
    assert first != second


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("git", True), ("Git-2_b", True), ("", False), ("a__b", False), ("a_", False),
        ("_a", False), ("a.b", False), ("a/b", False),
    ],
)  # fmt: skip
def test_a_namespace_ends_at_the_first_separator(text: str, is_one: bool) -> None:  # noqa: FBT001
    assert names.is_namespace(text) is is_one


def test_a_shortened_name_has_its_whole_namespace() -> None:
    namespace = "n" * names.max_namespace_chars(LONGEST_HUB)
    exposed = names.exposed_name(LONGEST_HUB, namespace, "t" * 128)
    assert exposed is not None
    assert len(exposed) == names.max_chars(LONGEST_HUB)
    assert exposed.startswith(f"{namespace}__t_")
    assert names.may_be_shortened(LONGEST_HUB, exposed)


@pytest.mark.parametrize("name", ["git__x", "g__" + "x" * 49, "g__" + "x" * 41 + "_0123abcd"])
def test_a_whole_name_is_not_taken_for_a_shortened_one(name: str) -> None:
    assert not names.may_be_shortened("tools", name)

"""Mounts of a new root, in order."""

import pytest

from mcpwrap.linux.isolation.namespaces import outermost


@pytest.mark.parametrize(
    ("to_read", "to_write", "mounted"),
    [
        ([], [], []),
        (["/usr", "/etc"], ["/tmp/s"], [("/etc", False), ("/tmp/s", True), ("/usr", False)]),
        (["/h/a", "/h/a/b"], [], [("/h/a", False)]),
        (["/h/a"], ["/h/a/b/c"], [("/h/a", False), ("/h/a/b/c", True)]),
        (["/h/a/b"], ["/h/a"], [("/h/a", True)]),  # as in Landlock, rules add up
        (["/h/a"], ["/h/a"], [("/h/a", True)]),
        ([], ["/h/a", "/h/a/b"], [("/h/a", True)]),
        (["/h/a/b"], ["/h", "/h/a/b/c"], [("/h", True)]),
        (["/"], ["/h"], [("/", False), ("/h", True)]),
        (["/usr"], ["/"], [("/", True)]),
        (["/h/a", "/h/a-b", "/h/a/b"], [], [("/h/a", False), ("/h/a-b", False)]),  # by parts
        (["/h/a/b", "/h/a!"], ["/h/a"], [("/h/a", True), ("/h/a!", False)]),  # "!" is before "/"
    ],
)
def test_outer_paths_are_mounted_first_and_inner_ones_where_they_differ(
    to_read: list[str], to_write: list[str], mounted: list[tuple[str, bool]]
) -> None:
    assert outermost(to_read, to_write) == mounted

"""Paths of projects as a wrapper may report them, and their report to a command."""

import msgspec
import pytest

from mcpwrap.core.project import MAX_PATH_CHARS, SeenProject, decode_seen, encode_seen, is_project

LISTED = ("/home/a/src", "/srv/x")


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/home/a/src/p", True),
        ("/home/a/src", True),
        ("/srv/x/p/q", True),
        ("/home/a/srcs", False),
        ("/home/a", False),
        ("home/a/src/p", False),
        ("/home/a/src/../other", False),
        ("/home/a/src/p/../q", False),  # a glob of the policy would match the wrong one
        ("/home/a/src/p/", False),
        ("/home/a/src/" + "x" * MAX_PATH_CHARS, False),
    ],
)
def test_a_project_is_a_short_path_in_a_listed_folder(path: str, *, is_one: bool) -> None:
    assert is_project(path, LISTED) == is_one


def test_a_report_comes_back_as_it_went() -> None:
    seen = [SeenProject("0a", 1000, "/home/a/ü"), SeenProject("0b", 0, "/")]
    assert decode_seen(encode_seen(seen)) == seen
    with pytest.raises(msgspec.MsgspecError):
        decode_seen(encode_seen(seen)[:-1])

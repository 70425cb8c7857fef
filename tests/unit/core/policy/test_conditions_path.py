"""Path containment: a path is in a folder, is not, or is ambiguous."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.policy.conditions import judge_path
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate


@pytest.mark.parametrize(
    ("path", "truth"),
    [
        ("/home/a", HOLDS),
        ("/home/a/", HOLDS),
        ("/home/a/x/y.txt", HOLDS),
        ("//home///a/./x/", HOLDS),
        ("/./home/a/.", HOLDS),
        ("/home/a/.git/config", HOLDS),
        ("/home/a/..x", HOLDS),
        ("/home/a/x y", HOLDS),
        ("/home/ab", FAILS),
        ("/home", FAILS),
        ("/", FAILS),
        ("/home/A/x", FAILS),
        ("/home/./ab/x", FAILS),
        ("", UNJUDGEABLE),
        ("x", UNJUDGEABLE),
        ("./home/a", UNJUDGEABLE),
        ("~/x", UNJUDGEABLE),
        ("file:///home/a/x", UNJUDGEABLE),
        (" /home/a/x", UNJUDGEABLE),
        ('"/home/a/x"', UNJUDGEABLE),
        ("/home/a/../b", UNJUDGEABLE),
        ("/home/a/x/../y", UNJUDGEABLE),  # x may be a link
        ("/home/a/..", UNJUDGEABLE),
        ("/home/a/..'", UNJUDGEABLE),  # server-filesystem strips quotes
        ('/home/a/.."', UNJUDGEABLE),
        ("/home/a/.. ", UNJUDGEABLE),
        ("/home/a/..\u00a0", UNJUDGEABLE),
        ("/home/a/..\ufeff", UNJUDGEABLE),  # which trim() of JavaScript strips
        ("/home/a/x\0", UNJUDGEABLE),
        ("/home/a/x\n", UNJUDGEABLE),
        ("/home/a\\..\\b", UNJUDGEABLE),
        ("/home/a/\u202e", UNJUDGEABLE),
        ("/home/a/..\ufe00/b", UNJUDGEABLE),
        ("/home/a/{x,..}/b", UNJUDGEABLE),  # braces, to a shell
        ("/home/a/..;/b", UNJUDGEABLE),
        ("/home/a/%2E%2e/b", UNJUDGEABLE),
        ("/home/a/..%2fb", UNJUDGEABLE),
        ("/home/a/\uff0e\uff0e/b", UNJUDGEABLE),  # NFKC
        ("/home/a/\u2025/b", UNJUDGEABLE),
        ("/home/a/" + "x" * 4096, UNJUDGEABLE),
        ("/home/a/x..y/a...b/x....y/%20/100%", HOLDS),
        ("/home/a/caf\u00e9/cafe\u0301/\u2026 more", HOLDS),
    ],
)
def test_a_path_and_the_folder(path: str, truth: Tristate) -> None:
    assert judge_path(path, "/home/a") is truth


def test_everything_that_can_be_judged_is_in_the_root() -> None:
    assert judge_path("/", "/") is HOLDS
    assert judge_path("//x", "/") is HOLDS
    assert judge_path("x", "/") is UNJUDGEABLE


@given(st.lists(st.sampled_from(["/", "a", "home", "..", ".", "//", "\\", "x"])).map("".join))
def test_what_is_judged_is_what_normpath_says(path: str) -> None:
    truth = judge_path(path, "/home/a")
    if truth is not UNJUDGEABLE:
        normal = "/" + posixpath.normpath(path).lstrip("/")  # POSIX leaves two slashes alone
        assert (truth is HOLDS) == f"{normal}/".startswith("/home/a/")

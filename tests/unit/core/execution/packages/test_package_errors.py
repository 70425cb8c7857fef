"""Messages of uv 0.13.9, as it printed them, and the errors that they mean."""

import pytest

from mcpwrap.core.execution.packages import package_errors
from mcpwrap.core.execution.packages.package_errors import PackageError

NO_SOLUTION = "error: No solution found when resolving dependencies\n  cause: Because "
UNSATISFIABLE = (
    "\n         And because you require x, we can conclude that your requirements are"
    " unsatisfiable."
)
FETCH = (
    "error: Request failed after 3 retries in 5.4s\n"
    "  cause: Failed to fetch: https://u:secret@h/simple/x/\n"
)


@pytest.mark.parametrize(
    ("stderr", "code", "problem"),
    [
        (
            NO_SOLUTION
            + "nosuch was not found in the package registry and you require nosuch, we can conclude"
            " that your requirements are unsatisfiable.",
            "E-PACKAGE-UNKNOWN",
            "nosuch is not in the package index",
        ),
        (
            NO_SOLUTION
            + "no-such-thing was not found in the package registry and all versions of missdep"
            " depend on no-such-thing>1, we can conclude that missdep cannot be used."
            + UNSATISFIABLE,
            "E-PACKAGE-UNKNOWN",
            "no-such-thing is not in the package index",
        ),
        (
            NO_SOLUTION + "only good<=2.0 is available and you require good>3, we can conclude that"
            " your requirements are unsatisfiable.",
            "E-PACKAGE-VERSION",
            "the index has no such version of good",
        ),
        (
            NO_SOLUTION + "there is no version of good==1.5 and you require good==1.5, we can"
            " conclude that your requirements are unsatisfiable.",
            "E-PACKAGE-VERSION",
            "the index has no such version of good",
        ),
        (
            NO_SOLUTION + "all versions of chain depend on good<2 and you require chain, we can"
            " conclude that you require good<2.\n         And because you require good>=2, we can"
            " conclude that your requirements are unsatisfiable.",
            "E-PACKAGE-CONFLICT",
            "contradict",
        ),
        (
            NO_SOLUTION + "srconly==1.0 has no usable wheels and only srconly==1.0 is available, we"
            " can conclude that all versions of srconly cannot be used.\n"
            + UNSATISFIABLE
            + "\n\nhint: Wheels are required for `srconly` because building from source is disabled"
            " for all packages (i.e., with `--no-build`)",
            "E-PACKAGE-SOURCE-ONLY",
            "srconly has no wheel",
        ),
        (  # older releases fold the lines and draw boxes
            (
                "  \u00d7 No solution found when resolving dependencies:\n"
                "  \u2570\u2500\u25b6 Because a-b==1.0 has no\n"
                "      usable wheels and you require a-b==1.0, we can conclude"
            ),
            "E-PACKAGE-SOURCE-ONLY",
            "a-b has no wheel",
        ),
        (
            NO_SOLUTION + "wrongtag==1.0 has no wheels with a matching Python implementation tag"
            " (e.g., `cp311`) and only wrongtag==1.0 is available" + UNSATISFIABLE,
            "E-PACKAGE-PLATFORM",
            "wrongtag has no wheel for this",
        ),
        (
            NO_SOLUTION + 'yank==1.0 was yanked (reason: broken "badly") and only yank==1.0 is'
            " available, we can conclude that all versions of yank cannot be used." + UNSATISFIABLE,
            "E-PACKAGE-YANKED",
            "yank: its author",
        ),
        (
            NO_SOLUTION + "the current Python version (3.11.2) does not satisfy Python>=3.99 and"
            " future==1.0 depends on Python>=3.99, we can conclude that future==1.0 cannot be used."
            + UNSATISFIABLE,
            "E-PACKAGE-PYTHON",
            "future does not support",
        ),
        (
            "error: Failed to download `bad[x]==1.0`\n  cause: Hash mismatch for `bad[x]==1.0`\n",
            "E-PACKAGE-HASH",
            "bad: the file",
        ),
        (
            FETCH + "  cause: client error (Connect)\n  cause: tunnel error: unsuccessful",
            "E-PACKAGE-NETWORK",
            "index cannot be reached",
        ),
        (
            FETCH + "  cause: dns error\n  cause: error resolving DNS",
            "E-PACKAGE-NETWORK",
            "index cannot be reached",
        ),
        (
            FETCH + "  cause: HTTP status server error (500 broken) for url (http://h/simple/x/)",
            "E-PACKAGE-NETWORK",
            "index cannot be reached",
        ),
        (  # a proxy refuses plain HTTP with a status; the package is not unknown
            NO_SOLUTION + "good was not found in the package registry" + UNSATISFIABLE + "\n\nhint:"
            " An index (http://h/simple/) returned a 403 Forbidden error. Check that the index URL",
            "E-PACKAGE-NETWORK",
            "index cannot be reached",
        ),
        (
            NO_SOLUTION + "good was not found in the cache" + UNSATISFIABLE + "\n\nhint: Packages"
            " were unavailable because the network was disabled.",
            "E-PACKAGE-NETWORK",
            "index cannot be reached",
        ),
        (
            (
                "error: Failed to install: good-2.0-py3-none-any.whl (good==2.0)\n"
                "  cause: failed to copy file from /a to /b: No space left on device (os error 28)"
            ),
            "E-PACKAGE-NO-ROOM",
            "no room on the disk",
        ),
        (
            NO_SOLUTION
            + "urldep==1.0 has invalid metadata and only urldep==1.0 is available"
            + UNSATISFIABLE,
            "E-PACKAGE-METADATA",
            "urldep has metadata",
        ),
        (
            (
                "error: Failed to resolve dependencies for package `gitdep==1.0`\n  cause: Package"
                " `evil` was included as a URL dependency. URL dependencies must be expressed"
            ),
            "E-PACKAGE-METADATA",
            "requires evil from a URL",
        ),
        (
            "error: No interpreter found at path `/usr/bin/nopython`",
            "E-PACKAGE-INTERPRETER",
            "cannot use the interpreter",
        ),
        (
            (
                "error: Failed to fetch: http://h/x.whl\n"
                "  cause: HTTP status client error (404 File not found) for url (http://h/x.whl)"
            ),
            "E-PACKAGE-UV",
            "uv cannot install",
        ),
        ("", "E-PACKAGE-UV", "uv cannot install"),
    ],
)
def test_a_failure_of_uv_has_a_name(stderr: str, code: str, problem: str) -> None:
    error = package_errors.of_uv(stderr, "install")
    assert error.code == code
    assert problem in error.problem
    assert error.fix
    assert error.lacks_index == (code == "E-PACKAGE-NETWORK")


def test_an_explanation_is_bounded_and_has_no_credentials() -> None:
    stderr = f"{FETCH}  cause: dns error \x1b[31m{'x' * 5000}"
    error = package_errors.of_uv(stderr, "resolve")
    assert error.more[1] == "cause: Failed to fetch: https://h/simple/x/"
    assert "secret" not in str(error)
    assert "\x1b" not in str(error)
    assert len(str(error)) < 1600


def test_a_yanked_version_is_refused_although_uv_takes_it() -> None:
    warned = 'Resolved 1 package in 4ms\nwarning: `yank==1.0` is yanked (reason: "broken")\n'
    with pytest.raises(PackageError) as caught:
        package_errors.expect_not_yanked(warned)
    assert caught.value.code == "E-PACKAGE-YANKED"
    assert caught.value.problem.startswith("yank: ")
    package_errors.expect_not_yanked("Resolved 1 package in 4ms\n")

"""Metadata of a script: PEP 723, whose regular expression is the reference."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.execution.packages import script_metadata
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.execution.packages.script_metadata import ScriptMetadata

# As it stands in PEP 723.
REFERENCE = re.compile(
    r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$", re.ASCII
)
BLOCK = """\
import sys
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "numpy",
#
#   "pandas<3",  # a comment
# ]
#
# [tool.uv.sources]
# numpy = { path = "/tmp/evil" }
# ///
print(1)
"""


def test_a_block_names_packages_and_a_python_version() -> None:
    assert script_metadata.read(BLOCK) == ScriptMetadata(
        dependencies=("numpy", "pandas<3"), requires_python=">=3.11"
    )
    assert script_metadata.read(BLOCK.replace("\n", "\r\n")).dependencies == ("numpy", "pandas<3")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "print(1)",
        "# /// script\n# dependencies = []\n",  # it does not end
        "# /// script\n# ///\n",  # no content
        "# /// script \n# dependencies = ['x']\n# ///\n",  # a space behind the kind
        " # /// script\n# dependencies = ['x']\n# ///\n",
        "# /// script\n# dependencies = ['x']\nx = 1\n# ///\n",  # not one comment
        "# /// script\n#dependencies = ['x']\n# ///\n",  # no space behind the #
        "# /// other\n# dependencies = 1\n# ///\n",
        "# /// other\n# /// script\n# x = 1\n# ///\n# ///\n",  # inside of another block
        "# /// script\n# [tool.x]\n# a = 1\n# ///",
    ],
)
def test_a_script_without_a_block_requires_nothing(code: str) -> None:
    assert script_metadata.read(code) == ScriptMetadata()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (BLOCK + BLOCK, "more than one"),
        ("# /// script\n# dependencies = [\n# ///\n", "not valid TOML"),
        ("# /// script\n# dependencies = 'x'\n# ///\n", "dependencies"),
        ("# /// script\n# dependencies = [1]\n# ///\n", "dependencies"),
        ("# /// script\n# requires-python = 3.11\n# ///\n", "requires-python"),
        ("# /// script\n# a = 1\n# ///\n# b = 2\n# ///\n", "not valid TOML"),  # to the last end
        ("# /// script\n# \x1b[2J\n# ///\n", "not valid TOML"),
        pytest.param(f"# /// script\n# a = {'[' * 5000}\n# ///\n", "not valid TOML", id="nested"),
        pytest.param(f"# /// script\n# a = {'1' * 5000}\n# ///\n", "not valid TOML", id="digits"),
    ],
)
def test_a_block_that_is_not_valid_is_refused(code: str, problem: str) -> None:
    with pytest.raises(PackageError, match=problem) as caught:
        script_metadata.read(code)
    assert caught.value.code == "E-PACKAGE-SCRIPT"
    assert caught.value.problem.isprintable()


LINES = st.sampled_from(
    [
        "# /// script",
        "# /// a-1",
        "# ///",
        "#",
        "# x = 1",
        "#x",
        "",
        "x",
        "# /// ",
        "# ///x",
        "# \t",
    ]
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_blocks_are_those_of_the_reference(code: str) -> None:
    expected = [
        (
            found["type"],
            "".join(
                line[2:] if line.startswith("# ") else line[1:]
                for line in found["content"].splitlines(keepends=True)
            ),
        )
        for found in REFERENCE.finditer(code)
    ]
    assert list(script_metadata._blocks(code)) == expected

"""Requirements: names with versions, and nothing that names another place."""

import pytest

from mcpwrap.core.execution.packages import requirements
from mcpwrap.core.execution.packages.package_errors import PackageError


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("numpy", "numpy"),
        ("Ruamel.Yaml", "ruamel-yaml"),
        ("a__b--c", "a-b-c"),
        ("pandas >= 2, <3", "pandas<3,>=2"),
        ("pandas (>=2)", "pandas>=2"),
        ("requests[Socks, use_chardet]~=2.1", "requests[socks,use-chardet]~=2.1"),
        ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
        ("x==1!2.*", "x==1!2.*"),
        ("x;python_version>'3'", 'x ; python_version > "3"'),
        ('x ; os_name == "posix" and extra == "y"', 'x ; os_name == "posix" and extra == "y"'),
        ("  x  ", "x"),
    ],
)
def test_a_requirement_has_one_canonical_text(given: str, canonical: str) -> None:
    assert str(requirements.parse(given)) == canonical
    assert str(requirements.parse(canonical)) == canonical


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        # What uv and pip take for a place.
        "x @ file:///etc/passwd",
        "x @ git+https://example.org/x.git",
        "x@https://example.org/x.whl",
        "https://example.org/x.whl",
        "./x",
        "../x",
        "/etc/hostname",
        "x.whl/",
        "C:\\x",
        "~",
        ".",
        # Options and lines of a requirements file.
        "-r /etc/hostname",
        "-r x",
        "-e .",
        "--index-url=https://example.org",
        "--no-index",
        "x --hash=sha256:00",
        "x\n--index-url=y",
        "x\r-r y",
        "x \\\ny",
        "x # comment",
        "${HOME}",
        "x==${VERSION}",
        "x==%VERSION%",
        # Characters that are drawn as others, or as nothing.
        "\uff4eumpy",
        "nu\u200bmpy",
        "\u0440\u0430ndas",  # Cyrillic p and a
        "x\x00",
        "x\ty",
        "x\x1b[2J",
        # Not PEP 440 and PEP 508.
        "x==",
        "x=1",
        "x>=1.0.foo",
        "x y",
        "x[",
        "x[]]",
        "x,y",
        "x;",
        "x ; rm",
        "x ; os_name == \"a' or 'b\"",  # both kinds of quotes
        "x ; unknown == '1'",
        "x===1.0-odd",
        "_x",
        "x" * 257,
    ],
)
def test_everything_else_is_refused(given: str) -> None:
    with pytest.raises(PackageError) as caught:
        requirements.parse(given)
    assert caught.value.code == "E-PACKAGE-REQUIREMENT"
    assert caught.value.problem.isprintable()
    assert len(caught.value.problem) < 500


def test_requirements_of_several_sources_are_united() -> None:
    merged = requirements.merge(["Numpy", "b>1"], (), ["numpy", "b<3"])
    assert requirements.requirements_file(merged) == "b<3\nb>1\nnumpy\n"


def test_the_number_of_requirements_is_bounded() -> None:
    assert len(requirements.merge([f"x{n}" for n in range(60)], ["y"] * 4)) == 61
    with pytest.raises(PackageError, match="65 packages") as caught:
        requirements.merge(["x"] * 60, ["y"] * 5)
    assert caught.value.code == "E-PACKAGE-TOO-MANY"


@pytest.mark.parametrize(
    ("required", "is_met"),
    [
        ("", True),
        (">=3.11", True),
        ("==3.12.*", False),
        (">=3.12,<4", False),
        ("<3.12", True),
        ("three", False),
        ("\n", True),
    ],
)
def test_the_interpreter_meets_requires_python(required: str, is_met: bool) -> None:  # noqa: FBT001
    if is_met:
        requirements.expect_python(required, "3.11.2")
        return
    with pytest.raises(PackageError) as caught:
        requirements.expect_python(required, "3.11.2")
    assert caught.value.code == "E-PACKAGE-PYTHON"


@pytest.mark.parametrize(
    ("required", "why"),
    [
        ("numpy", ""),
        ("NumPy~=2.0", ""),
        ("ruamel.yaml", ""),
        ("torch==2.1", ""),  # any local version of it
        ("six>=1.16", ""),  # a pre-release is what is there
        ("odd", ""),
        ("pandas", "pandas is not installed"),
        ("numpy<2", "numpy 2.1 is installed, not numpy<2"),
        ("odd>=0", "odd 1-of-us is installed, not odd>=0"),
        ("numpy[dev]", "numpy is installed, perhaps without [dev]"),
        ("pandas ; python_version < '3.11'", ""),
        ("pandas ; python_version == '3.11'", "pandas is not installed"),
        ("pandas ; python_full_version == '3.11.2'", "pandas is not installed"),
        ("pandas ; extra == 'dev'", ""),  # nothing asks for it
        ("numpy ; python_version ~= 'x'", "the marker of numpy cannot be evaluated"),
        ("numpy ; 'x' in extras", "the marker of numpy cannot be evaluated"),
    ],
)
def test_requirements_are_compared_with_what_is_installed(required: str, why: str) -> None:
    installed = {
        "NumPy": "2.1", "ruamel.yaml": "0.17", "torch": "2.1+cpu", "six": "1.17rc1",
        "odd": "1-of-us",
    }  # fmt: skip
    given = requirements.merge(["numpy", required])
    if not why:
        requirements.expect_installed(given, installed, "3.11.2")
        return
    with pytest.raises(PackageError) as caught:
        requirements.expect_installed(given, installed, "3.11.2")
    assert caught.value.problem == f"{why}, and runs of this server cannot add packages"
    assert caught.value.code == "E-PACKAGE-NOT-INSTALLED"


def test_a_distribution_is_known_by_one_name() -> None:
    first, second = {"numpy": "2.1"}, {"NumPy": "1.0", "Ruamel.YAML": "0.18", "ruamel-yaml": "0.17"}
    assert requirements.unite_versions(first, second) == {"numpy": "2.1", "Ruamel.YAML": "0.18"}


def test_nothing_can_be_required_of_what_is_not_known() -> None:
    requirements.expect_installed((), None, "")
    with pytest.raises(PackageError) as caught:
        requirements.expect_installed(requirements.merge(["numpy"]), None, "")
    assert "whether numpy is installed is not known here" in caught.value.problem
    assert caught.value.code == "E-PACKAGE-NOT-INSTALLED"
    assert "description" not in caught.value.fix  # of the tool, which lists nothing then


def test_a_pre_release_of_the_interpreter_counts() -> None:
    requirements.expect_python(">=3.14", "3.14.1rc1")

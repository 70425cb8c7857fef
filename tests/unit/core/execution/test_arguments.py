"""Arguments of a call: accepted, and refused with a text that helps."""

import pytest

from mcpwrap.core.execution import arguments
from mcpwrap.core.execution.arguments import ArgumentError, RunArguments
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution.worker_file import RunLimits

LIMITS = RunLimits(seconds=60, code_bytes=20)
ID = "0123456789abcdef" * 2
URI = f"run://{ID}/a%20b.csv"


def parsed(**given: Json) -> RunArguments:
    return arguments.parse({"code": "1", **given}, LIMITS)


def test_code_alone_has_the_default_timeout() -> None:
    assert parsed() == RunArguments(code="1", timeout_s=60)


@pytest.mark.parametrize(
    ("timeout", "expected", "lowered_from"),
    [(None, 60, None), (1, 1, None), (60, 60, None), (30.0, 30, None), (61, 60, 61),
     (10**9, 60, 10**9)],
)  # fmt: skip
def test_a_timeout_above_the_limit_is_lowered(
    timeout: Json, expected: int, lowered_from: int | None
) -> None:
    found = parsed(timeout=timeout)
    assert (found.timeout_s, found.lowered_from_s) == (expected, lowered_from)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("a,b\n", b"a,b\n"),
        ("", b""),
        ("é", "é".encode()),
        ({"base64": "AP8="}, b"\x00\xff"),
        ({"base64": "AP\n8="}, b"\x00\xff"),  # as programs wrap it
        (URI, RunUri(ID, "a b.csv")),
        ({"uri": URI}, RunUri(ID, "a b.csv")),
        (f"{URI}\nand more", f"{URI}\nand more".encode()),  # a text that begins with a URI
    ],
)
def test_a_file_is_text_base64_or_a_uri(value: Json, content: bytes | RunUri) -> None:
    assert parsed(files={"f": value}).files == {"f": content}


def test_null_is_absent() -> None:
    assert parsed(timeout=None, packages=None, files=None) == RunArguments(code="1", timeout_s=60)


def test_packages_are_kept_as_they_are() -> None:
    assert parsed(packages=["pandas>=2", "x"]).packages == ("pandas>=2", "x")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kode": "1"}, "'kode' is not an argument; they are code, timeout, packages, files"),
        ({"x" * 100: "1"}, "x…' is not an argument"),
        ({"code": None}, "`code` must be a string"),
        ({"code": 1}, "`code` must be a string"),
        ({"code": " \n"}, "`code` must be a string"),
        ({"code": "x" * 21}, "`code` has 21 bytes, and 20 is the limit (runs.code)"),
        ({"code": "é" * 11}, "`code` has 22 bytes"),
        ({"timeout": True}, "`timeout` must be a whole number of seconds"),
        ({"timeout": "60"}, "`timeout` must be a whole number"),
        ({"timeout": 0}, "at least 1"),
        ({"timeout": -1}, "at least 1"),
        ({"timeout": 1.5}, "`timeout` must be a whole number"),
        ({"packages": "pandas"}, "`packages` must be a list of strings"),
        ({"packages": [1]}, "`packages` must be a list of strings"),
        ({"packages": ["a", None]}, "`packages` must be a list of strings"),
        ({"files": []}, "`files` must be an object"),
        ({"files": {str(n): "" for n in range(33)}}, "`files` has 33 files, and 32 is the limit"),
        ({"files": {"a/b": ""}}, "'a/b' in `files` cannot be a name in /in"),
        ({"files": {".bashrc": ""}}, "does not begin with a dot"),
        ({"files": {"": ""}}, "cannot be a name"),
        ({"files": {"a": None}}, "'a' in `files` must be text"),
        ({"files": {"a": 1}}, "must be text"),
        ({"files": {"a": {}}}, "must be text"),
        ({"files": {"a": {"base64": "AA==", "uri": URI}}}, "must be text"),
        ({"files": {"a": {"text": "x"}}}, "must be text"),
        ({"files": {"a": {"base64": 1}}}, "must be text"),
        ({"files": {"a": {"base64": "A"}}}, "not valid base64"),
        ({"files": {"a": {"base64": "AA-_"}}}, "not valid base64"),
        ({"files": {"a": {"base64": "é"}}}, "not valid base64"),
        ({"files": {"a": "run://x/y"}}, "'run://x/y' in `files` is not the URI"),
        ({"files": {"a": {"uri": "file:///etc/passwd"}}}, "is not the URI"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused(given: dict[str, Json], text: str) -> None:
    with pytest.raises(ArgumentError) as found:
        parsed(**given)
    assert text in str(found.value)


def test_all_files_together_have_a_limit() -> None:
    arguments.check_size({"a": b"x" * 8 * 1024**2})
    with pytest.raises(ArgumentError, match="8388609 bytes, and 8388608 is the limit"):
        arguments.check_size({"a": b"x" * 8 * 1024**2, "b": b"x"})

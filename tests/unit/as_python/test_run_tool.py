"""Tool `run_python`: packages, files in and out, limits of both ends."""

import base64
import struct
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.execution.tool import RunEnvironment
from tests.shared import pace
from tests.unit.as_python import worker
from tests.unit.as_python.worker import RunningCall
from tests.unit.as_python.world import LIMITS, Installed, Installer, call, modern, world

NAME = "a" * 64
CAN_INSTALL = RunEnvironment(
    limits=LIMITS, python_version="3.11.2", packages=("numpy",), can_install=True
)
CANNOT_INSTALL = RunEnvironment(
    limits=LIMITS,
    python_version="3.11.2",
    packages=("numpy>=1",),
    version_by_preinstalled={"NumPy": "0.9", "PyYAML": "6.0.1"},
)
ELSEWHERE = RunEnvironment(limits=LIMITS, python_version="", version_by_preinstalled=None)
SCRIPT = '# /// script\n# dependencies = ["{}"]\n# ///\nprint(1)'
NEW_SCRIPT = '# /// script\n# requires-python = "{}"\n# ///\nprint(1)'
NO_INPUT = "EOFError: EOF when reading a line\n"
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 10, 10)


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def sent(**fields: bytes) -> worker.Reply:
    """Return a run that left these files."""
    files = [
        {"name": name, "size": len(content), "data": base64.b64encode(content).decode()}
        for name, content in fields.items()
    ]
    return worker.result(files=files)


def test_a_call_reaches_the_worker(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result())
        result = here.agent.call("print(1)", timeout=5, files={"a.txt": "x"})
        assert result["isError"] is False
        assert result["structuredContent"]["stdout"] == "1\n"
        assert here.worker.requests == [
            {"code": "print(1)", "timeout": 5, "files": {"a.txt": "eA=="}, "packages": ""}
        ]


def test_a_failing_program_is_an_ordinary_result(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(exit_code=1, stdout="", stderr=NO_INPUT))
        result = here.agent.call()
        assert result["isError"] is False
        assert result["structuredContent"]["exit_code"] == 1
        assert result["structuredContent"]["hint"].startswith("standard input is empty")


def test_a_limit_has_its_own_advice(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(
            worker.result(exit_code=137, stderr=NO_INPUT, error="memory: …", killed=True)
        )
        result = here.agent.call()
        assert (result["isError"], result["structuredContent"]["killed"]) == (False, True)
        assert "hint" not in result["structuredContent"]


def test_a_lowered_timeout_and_an_empty_result_are_said(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(stdout=""))
        hint = here.agent.call(timeout=600)["structuredContent"]["hint"]
        assert hint == (
            "the timeout of 600 s was lowered to 60 s (runs.seconds); "
            "no output; print() or end with an expression"
        )
        assert here.worker.requests[0]["timeout"] == 60


@pytest.mark.parametrize("error", [None, "timeout: …"])
def test_files_that_do_not_come_back_are_counted(tmp_path: Path, error: str | None) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(stdout="", left_out=3, error=error))
        assert here.agent.call()["structuredContent"]["hint"] == (
            "left out of /out: 3, as only 32 regular files come back, and no folders, links or "
            "names with a leading dot: write one archive"
        )
        here.worker.will(worker.result(left_out=0))
        assert "hint" not in here.agent.call()["structuredContent"]


def test_a_later_call_learns_that_it_starts_empty(tmp_path: Path) -> None:
    failure = worker.result(exit_code=1, stderr="NameError: name 'df' is not defined\n")
    with world(tmp_path) as here:
        here.worker.will(failure, failure)
        assert "hint" not in here.agent.call()["structuredContent"]
        hint = here.agent.call()["structuredContent"]["hint"]
        assert hint.startswith("every call starts empty")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"code": ""}, "`code` must be a string"),
        ({"code": "x" * 1001}, "1001 bytes, and 1000 is the limit"),
        ({"code": "1", "verbose": True}, "'verbose' is not an argument"),
        ({"code": "1", "files": {"a": "run://" + "0" * 32 + "/a"}}, "names no file"),
        ({"code": "1", "packages": ["pandas"]}, "pandas is not installed, and runs of this server"),
        ({"code": "1", "packages": ["x"] * 65}, "65 packages are required; the limit is 64"),
        ({"code": "1", "packages": ["x" * 257]}, "is longer than 256 characters"),
        ({"code": SCRIPT.format("pandas")}, "pandas is not installed"),
        ({"code": SCRIPT.format("x @ file:///etc")}, "no requirement needs"),
        ({"code": NEW_SCRIPT.format(">=3.14")}, "Python >=3.14, and runs have Python 3.11.2"),
    ],
)
def test_a_refused_call_reaches_no_worker(tmp_path: Path, given: dict[str, Any], text: str) -> None:
    with world(tmp_path) as here:
        result = here.agent.call(**given)
        assert result["isError"] is True
        assert text in text_of(result)
        assert "the code was not executed" in text_of(result)
        assert here.worker.requests == []


def test_packages_of_configuration_script_and_argument_are_prepared(tmp_path: Path) -> None:
    installer = Installer(Installed(NAME, {"numpy": "2.1"}))
    run = RunningCall()
    with world(tmp_path, environment=CAN_INSTALL, installer=installer) as here:
        here.worker.will(run.until_told)
        here.agent.send(call(1, SCRIPT.format("pandas"), packages=["six>1"]))
        assert run.has_begun.wait(pace.WAIT_S)
        assert installer.wanted == [("numpy", "pandas", "six>1")]
        assert installer.packages.is_held
        assert here.worker.requests[0]["packages"] == NAME
        run.may_end.set()
        assert here.agent.reply()["id"] == 1
        assert not installer.packages.is_held


@pytest.mark.parametrize(
    ("requirement", "refusal"),
    [
        ("NumPy", ""),
        ("numpy>=1", ""),
        ("numpy==1.0", ""),  # of the configuration, which hides that of the interpreter
        ("pyyaml>=6", ""),
        ("numpy>=2", "numpy 1.0 is installed, not numpy>=2, and runs of this server cannot add"),
        ("pyyaml<6", "pyyaml 6.0.1 is installed, not pyyaml<6"),
        ("pandas", "pandas is not installed"),
    ],
)
def test_what_is_installed_may_be_required_where_nothing_can_be_added(
    tmp_path: Path, requirement: str, refusal: str
) -> None:
    installer = Installer(Installed(NAME, {"numpy": "1.0"}))
    with world(tmp_path, environment=CANNOT_INSTALL, installer=installer) as here:
        here.worker.will(worker.result(), worker.result())
        for given in ({"code": SCRIPT.format(requirement)}, {"packages": [requirement]}):
            result = here.agent.call(**given)
            assert result["isError"] is bool(refusal)
            assert refusal in text_of(result)
            assert not installer.packages.is_held
        assert installer.wanted == [("numpy>=1",)] * 2
        assert len(here.worker.requests) == (0 if refusal else 2)


def test_what_another_machine_has_cannot_be_required(tmp_path: Path) -> None:
    with world(tmp_path, environment=ELSEWHERE) as here:
        text = text_of(here.agent.call(packages=["numpy"]))
        assert text.startswith("whether numpy is installed is not known here, and runs of this")
        assert here.worker.requests == []


def test_a_script_may_require_the_python_that_runs_have(tmp_path: Path) -> None:
    with world(tmp_path, environment=CAN_INSTALL) as here:
        here.worker.will(worker.result())
        assert here.agent.call(NEW_SCRIPT.format(">=3.11"))["isError"] is False


def test_a_hint_names_what_is_installed(tmp_path: Path) -> None:
    installer = Installer(Installed(NAME, {"numpy": "2.1"}))
    failure = worker.result(exit_code=1, stderr="ModuleNotFoundError: No module named 'cv2'\n")
    with world(tmp_path, environment=CANNOT_INSTALL, installer=installer) as here:
        here.worker.will(failure)
        assert here.agent.call()["structuredContent"]["hint"].endswith("; there are numpy, PyYAML")


def test_a_hint_does_not_guess_what_another_machine_has(tmp_path: Path) -> None:
    failure = worker.result(exit_code=1, stderr="ModuleNotFoundError: No module named 'cv2'\n")
    with world(tmp_path, environment=ELSEWHERE) as here:
        here.worker.will(failure)
        hint = here.agent.call()["structuredContent"]["hint"]
        assert hint.endswith("importlib.metadata lists what is installed")


def test_packages_that_cannot_be_installed_are_a_tool_error(tmp_path: Path) -> None:
    error = PackageError(
        "no such package", fix="check the name", more=("from uv",), code="E-PACKAGE-UNKNOWN"
    )
    with world(tmp_path, installer=Installer(error=error)) as here:
        result = here.agent.call()
        assert result["isError"] is True
        assert text_of(result) == (
            "no such package [E-PACKAGE-UNKNOWN]\n  from uv\ncheck the name; "
            "the code was not executed"
        )


def test_a_file_of_one_run_is_passed_to_the_next(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(sent(table=b"a,b\n"), worker.result())
        [file] = here.agent.call()["structuredContent"]["files"]
        assert file["uri"].startswith("run://")
        assert here.agent.call(files={"in.csv": file["uri"]})["isError"] is False
        content = base64.b64decode(here.worker.requests[1]["files"]["in.csv"])
        assert content == b"a,b\n"


def test_files_are_resources_of_the_session(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(sent(**{"a.csv": b"a,b\n", "b.bin": b"\xff", "plot": PNG}))
        here.agent.call()
        listed = here.agent.reply_to(modern(1, "resources/list"))["result"]
        assert listed["ttlMs"] == 0
        [a, b, plot] = listed["resources"]
        assert (a["name"], a["mimeType"], a["size"]) == ("a.csv", "text/csv", 4)
        assert plot["mimeType"] == "image/png"
        for resource, content in [(a, {"text": "a,b\n"}), (b, {"blob": "/w=="})]:
            read = here.agent.reply_to(modern(2, "resources/read", uri=resource["uri"]))["result"]
            assert read["contents"] == [
                {"uri": resource["uri"], "mimeType": resource["mimeType"], **content}
            ]
            assert read["ttlMs"] > 0


def test_another_session_reads_by_uri_and_lists_nothing(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(sent(a=b"x"))
        [file] = here.agent.call()["structuredContent"]["files"]
    with world(tmp_path) as other:
        assert other.agent.reply_to(modern(1, "resources/list"))["result"]["resources"] == []
        assert "result" in other.agent.reply_to(modern(2, "resources/read", uri=file["uri"]))


def test_a_full_disk_costs_the_files_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("in the way")
    with world(tmp_path) as here:
        here.worker.will(sent(a=b"x"))
        result = here.agent.call()
        assert result["structuredContent"]["files"] == [
            {"name": "a", "uri": None, "size": 1, "mimeType": "application/octet-stream"}
        ]
    assert "files of /out cannot be kept" in capfd.readouterr().err


@pytest.mark.parametrize(
    "file",
    [
        {"name": "../a", "size": 1, "data": "eA=="},
        {"name": ".a", "size": 1, "data": "eA=="},
        {"name": "", "size": 1, "data": "eA=="},
    ],
)
def test_a_name_that_the_worker_must_not_send_is_dropped(
    tmp_path: Path, file: dict[str, Any]
) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(files=[file]))
        assert here.agent.call()["structuredContent"]["files"] == []
        assert not here.folder.exists()


@pytest.mark.parametrize("data", ["A", "é", None])
def test_a_file_without_valid_content_is_listed_alone(tmp_path: Path, data: str | None) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(files=[{"name": "a", "size": 7, "data": data}]))
        [file] = here.agent.call()["structuredContent"]["files"]
        assert (file["uri"], file["size"]) == (None, 7)


def test_output_that_the_worker_did_not_cut_is_cut_here(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.result(stdout="x" * 2000, value="y" * 100_000))
        found = here.agent.call()["structuredContent"]
        assert "[1600 bytes left out]" in found["stdout"]
        assert len(found["value"]) < 17_000
        assert found["truncated"] is True


def test_a_worker_that_is_gone_is_a_tool_error(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.worker.will(worker.raw(b""))
        result = here.agent.call()
        assert result["isError"] is True
        assert "may have been executed" in text_of(result)

"""Files that packaging/stage.py makes: programs for one Python version, and names of the build."""

import argparse
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from packaging.specifiers import SpecifierSet

from tests.system.bed import package, roots

TOP = Path(__file__).resolve().parents[3]
STAGE = runpy.run_path(str(TOP / "packaging/stage.py"), run_name="stage")
THIS = sys.version_info[:2]
OTHER = (3, 14) if THIS != (3, 14) else (3, 13)
JOB = "usr/libexec/mcpwrap/mcpwrap-job"


def run(program: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *args], capture_output=True, text=True)


def test_a_program_runs_on_the_python_that_it_was_built_for(tmp_path: Path) -> None:
    STAGE["put_launchers"](tmp_path, THIS, sys.executable)
    done = run(tmp_path / "usr/bin/mcpwrap", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mcpwrap")


def test_on_another_python_one_line_says_what_to_do(tmp_path: Path) -> None:
    STAGE["put_launchers"](tmp_path, OTHER, sys.executable)
    for name in ("usr/bin/mcpwrap", JOB):
        done = run(tmp_path / name, "--version")
        assert (done.returncode, done.stdout) == (78, "")
        assert done.stderr == (
            f"mcpwrap: this package is built for Python 3.{OTHER[1]}, and {sys.executable} is "
            f"3.{THIS[1]}: install the package of mcpwrap for this release of the distribution. "
            "Python 3.11 to 3.14 are supported.\n"
        )


def test_the_check_is_a_program_of_an_old_python_too(tmp_path: Path) -> None:
    """Older interpreters must be able to parse what refuses them."""
    STAGE["put_launchers"](tmp_path, THIS, "/usr/bin/python3")
    text = (tmp_path / JOB).read_text()
    assert text.splitlines()[0] == "#!/usr/bin/python3 -IS"
    compile(text, JOB, "exec", dont_inherit=True)
    assert not re.search(r"\bf\"|:=|match ", text)


@pytest.mark.parametrize("version", ["3.10", "3.15", "3", "3.13.5", "python3.13"])
def test_an_unsupported_python_is_refused_with_the_list(version: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"runs on 3\.11, 3\.12, 3\.13, 3\.14"):
        STAGE["version_of"](version)


def test_pip_and_the_packages_support_the_same_versions() -> None:
    project = tomli.loads((TOP / "pyproject.toml").read_text())["project"]
    required = SpecifierSet(project["requires-python"])
    supported = [".".join(map(str, version)) for version in STAGE["SUPPORTED"]]
    assert [v for v in ("3.9", "3.10", *supported) if v in required] == supported
    classifiers = project["classifiers"]
    named = [text.rpartition(" ")[2] for text in classifiers if " :: 3." in text]
    assert named == supported


def test_a_target_that_is_not_known_is_named() -> None:
    assert {each.name for each in package.targets("deb13", "el10")} == {"deb13", "el10"}
    with pytest.raises(RuntimeError, match="no target deb99; there are deb12, "):
        package.targets("deb13", "deb99")


def test_package_and_commit_are_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPWRAP_PACKAGE", "deb 1.2+deb13")
    monkeypatch.delenv("MCPWRAP_COMMIT", raising=False)
    STAGE["put_build"](tmp_path)
    text = (tmp_path / "usr/lib/mcpwrap/mcpwrap/build.json").read_text()
    assert json.JSONDecoder().decode(text) == {"package": "deb 1.2+deb13", "commit": "unknown"}


def test_a_published_package_names_the_present_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built again if its sources were committed since, and no machine loses the former."""
    builds: list[str] = []

    def build(_target: package.Target, _put: object, commit: str, **_options: object) -> Path:
        builds.append(commit)
        new = tmp_path / f"new-{len(builds)}"
        new.mkdir()
        (new / "mcpwrap.deb").write_text(commit)
        return new

    monkeypatch.setattr(roots, "CACHE", tmp_path)
    monkeypatch.setattr(package, "_build", build)
    target = package.Target("deb13", "amd64")
    monkeypatch.setattr(package, "commit_of_tree", lambda: "1234abcd-modified")
    assert package.build_for(target, is_published=True).read_text() == "1234abcd-modified"
    monkeypatch.setattr(package, "commit_of_tree", lambda: "5678abcd")
    assert package.build_for(target).read_text() == "1234abcd-modified"
    assert package.build_for(target, is_published=True).read_text() == "5678abcd"
    assert package.build_for(target, is_published=True).read_text() == "5678abcd"
    assert package.build_for(target).read_text() == "1234abcd-modified"
    assert builds == ["1234abcd-modified", "5678abcd"]


def test_a_package_in_use_is_not_removed_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day after its last use it is, by the next build of the same series."""
    old = {name: tmp_path / f"package-deb13-amd64-1-{name}" for name in ("used", "left")}
    for folder in old.values():
        folder.mkdir()
        (folder / "mcpwrap.deb").touch()
        (folder / "commit").write_text("1234abcd")
        os.utime(folder, (0, 0))

    def build(*_given: object, **_options: object) -> Path:
        (tmp_path / "new").mkdir()
        (tmp_path / "new/mcpwrap.deb").touch()
        return tmp_path / "new"

    monkeypatch.setattr(roots, "CACHE", tmp_path)
    monkeypatch.setattr(package, "_build", build)
    monkeypatch.setattr(package, "commit_of_tree", lambda: "5678abcd")
    target = package.Target("deb13", "amd64")
    monkeypatch.setattr(package, "_tree_hash", lambda: "used")
    assert package.build_for(target).parent == old["used"]
    monkeypatch.setattr(package, "_tree_hash", lambda: "new")
    package.build_for(target)
    assert {name: folder.is_dir() for name, folder in old.items()} == {"used": True, "left": False}

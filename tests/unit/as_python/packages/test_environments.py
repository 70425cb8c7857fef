"""Packages of a run, with a stand-in for uv that plays its outcomes."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_python.packages.environments import PackageEnvironments
from mcpwrap.core.execution.packages.package_errors import PackageError
from tests.unit.as_python.packages.stand_in_uv import StandInUv

BOUND_BYTES = 1024**2
NO_NETWORK = "error: Request failed after 1 retry\n  cause: tcp connect error\n"


@pytest.fixture
def uv(tmp_path: Path) -> StandInUv:
    return StandInUv(tmp_path / "uv", "numpy", "pandas", "six")


def environments(
    uv: StandInUv, interpreter: str = sys.executable, **environ: str
) -> PackageEnvironments:
    cache = uv.folder.parent / "cache"
    cache.mkdir(exist_ok=True)
    return PackageEnvironments(
        cache, interpreter, BOUND_BYTES, environ, uv_paths=["/no/such", str(uv.path)]
    )


def ignore(line: str) -> None:
    assert line


def test_a_run_gets_its_packages_and_a_second_one_needs_no_uv(uv: StandInUv) -> None:
    with environments(uv).prepare(["NumPy", "six"], ignore) as prepared:
        assert prepared.distributions == {"numpy": "1.0", "six": "1.0"}
        found = uv.folder.parent / "cache" / "environments" / prepared.name
        assert (found / "numpy" / "__init__.py").stat().st_mode & 0o7777 == 0o644
        assert list((found / "numpy" / "__pycache__").glob("*.pyc"))
    calls = len(uv.calls())
    with environments(uv).prepare(["six", "numpy", "six"], ignore) as again:
        assert again.name == prepared.name
    assert len(uv.calls()) == calls == 2
    assert not (uv.folder / "ran").exists()  # its .pth files


def test_no_requirements_need_no_uv(uv: StandInUv) -> None:
    uv.path.unlink()
    bare = environments(uv)
    assert not bare.has_uv
    with bare.prepare([], ignore) as prepared:
        assert (prepared.name, prepared.distributions) == ("", {})
    with pytest.raises(PackageError, match="uv is not on this machine") as caught:
        bare.prepare(["numpy"], ignore)
    assert caught.value.code == "E-PACKAGE-NO-UV"


def test_uv_gets_the_environment_that_it_needs(uv: StandInUv) -> None:
    given = {
        "HTTPS_PROXY": "http://127.77.0.1:3128",
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
        "UV_DEFAULT_INDEX": "https://index/simple",
        "TMPDIR": str(uv.folder),
    }
    environments(uv, **given, WORKER_RPC_TOKEN="x", UV_INDEX_STRATEGY="x").prepare(
        ["numpy"], ignore
    ).close()
    for call in map(msgspec.json.decode, uv.calls()):
        environ = call["environ"]
        environ.pop("LC_CTYPE", None)  # of Python, which the stand-in runs in
        folder = environ["HOME"]
        assert environ == {
            **given,
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "UV_CACHE_DIR": str(uv.folder.parent / "cache" / "uv"),
            "UV_HTTP_RETRIES": "1",
            "HOME": folder,
            "TMPDIR": folder,
        }
        assert Path(folder).parent == uv.folder
        assert not Path(folder).exists()
        assert {
            "--no-config", "--only-binary=:all:", "--no-python-downloads",
            f"--python={sys.executable}",
        } <= set(call["argv"])  # fmt: skip


def test_a_text_that_uv_would_take_for_more_does_not_reach_it(uv: StandInUv) -> None:
    with pytest.raises(PackageError) as caught:
        environments(uv).prepare(["numpy", "-r /etc/hostname"], ignore)
    assert caught.value.code == "E-PACKAGE-REQUIREMENT"
    assert uv.calls() == []


def test_a_uv_that_was_killed_is_not_taken_for_one_that_refuses(uv: StandInUv) -> None:
    (uv.folder / "dies").touch()
    with pytest.raises(PackageError, match="uv was ended by signal 9") as caught:
        environments(uv).prepare(["numpy"], ignore)
    assert caught.value.code == "E-PACKAGE-KILLED"


def test_a_failure_has_its_name_and_is_not_stored(uv: StandInUv) -> None:
    ours = environments(uv)
    with pytest.raises(PackageError, match="nosuch is not in the package index"):
        ours.prepare(["nosuch"], ignore)
    uv.publish("nosuch", "1.0")
    assert ours.prepare(["nosuch"], ignore).distributions == {"nosuch": "1.0"}


def age(uv: StandInUv, hours: int) -> None:
    for path in (uv.folder.parent / "cache" / "resolutions").glob("*.json"):
        stored = msgspec.json.decode(path.read_bytes())
        stored["at_s"] -= hours * 3600
        path.write_text(json.dumps(stored))


@pytest.mark.parametrize(
    ("hours", "version"),
    [
        (0, "1.0"),
        (23, "1.0"),
        (25, "2.0"),
        (-1, "2.0"),  # a clock that was set back
    ],
)
def test_versions_are_looked_up_anew_after_a_day(uv: StandInUv, hours: int, version: str) -> None:
    ours = environments(uv)
    ours.prepare(["numpy"], ignore).close()
    uv.publish("numpy", "2.0")
    age(uv, hours)
    with ours.prepare(["numpy"], ignore) as prepared:
        assert prepared.distributions == {"numpy": version}


def test_another_index_has_other_versions(uv: StandInUv) -> None:
    environments(uv, UV_DEFAULT_INDEX="https://a").prepare(["numpy"], ignore).close()
    uv.publish("numpy", "2.0")
    with environments(uv, UV_DEFAULT_INDEX="https://b").prepare(["numpy"], ignore) as prepared:
        assert prepared.distributions == {"numpy": "2.0"}


def test_without_a_network_the_last_versions_are_used_and_said(uv: StandInUv) -> None:
    ours = environments(uv)
    ours.prepare(["numpy"], ignore).close()
    age(uv, 30)
    (uv.folder / "says").write_text(NO_NETWORK)
    lines: list[str] = []
    with ours.prepare(["numpy"], lines.append) as prepared:
        assert prepared.distributions == {"numpy": "1.0"}
    assert lines[-1] == "the package index cannot be reached: the versions of 30 h ago are used"
    with pytest.raises(PackageError) as caught:
        ours.prepare(["six"], ignore)
    assert caught.value.code == "E-PACKAGE-NETWORK"


def test_after_a_wrong_hash_the_versions_are_looked_up_anew(uv: StandInUv) -> None:
    ours = environments(uv)
    ours.prepare(["numpy"], ignore).close()
    for path in (uv.folder.parent / "cache" / "environments").iterdir():
        path.rename(uv.folder / path.name)
    (uv.folder / "says").write_text("error: Hash mismatch for `numpy==1.0`\n")
    with pytest.raises(PackageError) as caught:
        ours.prepare(["numpy"], ignore)
    assert caught.value.code == "E-PACKAGE-HASH"
    (uv.folder / "says").unlink()
    uv.publish("numpy", "2.0")
    with ours.prepare(["numpy"], ignore) as prepared:
        assert prepared.distributions == {"numpy": "2.0"}


@pytest.mark.parametrize("damage", ["", "{", '{"at_s": 1, "lock": "-r x"}', '{"at_s": "x"}'])
def test_a_damaged_resolution_is_not_used(uv: StandInUv, damage: str) -> None:
    ours = environments(uv)
    ours.prepare(["numpy"], ignore).close()
    for path in (uv.folder.parent / "cache" / "resolutions").glob("*.json"):
        path.write_text(damage)
    with ours.prepare(["numpy"], ignore) as prepared:
        assert prepared.distributions == {"numpy": "1.0"}


class CancelledError(Exception):
    pass


def test_a_cancelled_call_leaves_nothing(uv: StandInUv) -> None:
    (uv.folder / "stays").touch()

    def cancel(line: str) -> None:
        assert line.startswith("resolving 1 packages, ")
        raise CancelledError

    with pytest.raises(CancelledError):
        environments(uv, TMPDIR=str(uv.folder)).prepare(["numpy"], cancel)
    assert not list(uv.folder.glob("packages-*"))
    assert not [
        path.name
        for path in (uv.folder.parent / "cache" / "locks").iterdir()
        if path.name.startswith("resolution-")
    ]
    (uv.folder / "stays").unlink()
    environments(uv).prepare(["numpy"], ignore).close()


def test_uvs_own_cache_is_bounded(uv: StandInUv) -> None:
    cache = uv.folder.parent / "cache" / "uv"
    cache.mkdir(parents=True)
    (cache / "old").write_bytes(b"x" * BOUND_BYTES)
    environments(uv).prepare(["numpy"], ignore).close()
    assert not cache.exists()
    environments(uv).prepare(["six"], ignore).close()
    assert (cache / "wheel").exists()
    assert not cache.with_name("uv.removed").exists()


def test_uvs_own_cache_is_closed_to_runs(uv: StandInUv) -> None:
    # A run could read what other sessions downloaded, and hold the lock that uv has in it.
    cache = uv.folder.parent / "cache" / "uv"
    cache.mkdir(mode=0o755, parents=True)  # as an earlier version left it
    (cache / "old").write_bytes(b"x" * BOUND_BYTES)
    ours = environments(uv)
    assert cache.stat().st_mode & 0o7777 == 0o700
    ours.prepare(["numpy"], ignore).close()  # removes it, as it is over its bound
    ours.prepare(["six"], ignore).close()
    assert (cache / "wheel").exists()
    assert cache.stat().st_mode & 0o7777 == 0o700


def test_another_session_may_remove_uvs_own_cache_meanwhile(
    uv: StandInUv, monkeypatch: pytest.MonkeyPatch
) -> None:
    chmod = Path.chmod

    def removed_before(path: Path, mode: int) -> None:
        if path.name == "uv" and path.is_dir():
            path.rename(path.with_name("uv.removed"))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", removed_before)
    ours = environments(uv)
    monkeypatch.undo()
    with ours.prepare(["numpy"], ignore) as prepared:
        assert prepared.distributions == {"numpy": "1.0"}
    assert (uv.folder.parent / "cache" / "uv").stat().st_mode & 0o7777 == 0o700


def test_a_cache_that_cannot_be_written_is_an_error(uv: StandInUv) -> None:
    ours = environments(uv)
    (uv.folder.parent / "cache" / "builds").rmdir()
    with pytest.raises(PackageError) as caught:
        ours.prepare(["numpy"], ignore)
    assert caught.value.code == "E-PACKAGE-CACHE"


def test_an_interpreter_that_is_gone_is_named(uv: StandInUv, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.symlink_to(sys.executable)
    ours = environments(uv, str(python))
    ours.prepare(["numpy"], ignore).close()
    python.unlink()
    with pytest.raises(PackageError, match=f"{python} cannot be started: No such file") as caught:
        ours.prepare(["six"], ignore)
    assert caught.value.code == "E-PACKAGE-INTERPRETER"


def test_the_interpreter_is_known(uv: StandInUv) -> None:
    assert environments(uv).interpreter.version == ".".join(map(str, sys.version_info[:3]))

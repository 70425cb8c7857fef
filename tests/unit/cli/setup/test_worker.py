"""`mcpwrap worker enable`: what is refused before root's program is executed."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.main import cli
from mcpwrap.cli.setup import worker as command
from mcpwrap.core.wire.execution.worker_file import Worker
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import worker


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate with its key in one file."""
    path = tmp_path_factory.mktemp("pem") / "worker.pem"
    subprocess.run(
        [
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=worker",
            "-keyout", path, "-out", path.with_suffix(".crt"),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Have root as the caller; return the calls of root's program."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(command, "become_root_program", lambda *argv: calls.append(argv))
    monkeypatch.setattr(worker, "configuration", Worker)
    return calls


@pytest.fixture
def busy_port() -> Iterator[int]:
    """Listen at a port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def enable(listen: str, certificate: Path, *more: str) -> Result:
    argv = ["worker", "enable", "--listen", listen, "--certificate", str(certificate)]
    argv += ["--key", str(certificate), *more]
    return CliRunner().invoke(cli, argv, standalone_mode=False)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.parametrize("more", [[], ["--stdin"]])
def test_root_gets_place_and_files(
    called: list[tuple[str, ...]], pem: Path, more: list[str]
) -> None:
    place = f"127.0.0.1:{free_port()}"
    assert enable(place, pem, *more).exception is None
    assert called == [("worker", "enable", *more, place, str(pem), str(pem))]


def test_a_relative_path_is_one_of_this_folder(
    called: list[tuple[str, ...]], pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pem.parent)
    enable(f"127.0.0.1:{free_port()}", Path(pem.name))
    assert called[0][-2:] == (str(pem), str(pem))


@pytest.mark.parametrize(
    ("listen", "code", "text"),
    [
        ("nowhere:9443", "E-WORKER-LISTEN", "is not an address and port"),
        ("0.0.0.0:9443", "E-WORKER-LISTEN", "cannot be the address of a server"),
        ("127.0.0.1:0", "E-WORKER-LISTEN", "is not a port"),
        ("192.0.2.1:9443", "E-WORKER-LISTEN", "Cannot assign requested address"),
        ("[2001:db8::1]:9443", "E-WORKER-LISTEN", "cannot listen at [2001:db8::1]:9443"),
    ],
)
def test_addresses_that_are_refused(
    called: list[tuple[str, ...]], pem: Path, listen: str, code: str, text: str
) -> None:
    error = enable(listen, pem).exception
    assert isinstance(error, McpwrapError)
    assert (error.code, called) == (code, [])
    assert text in str(error)
    assert "nothing was changed" in str(error)


def test_an_address_in_use_is_refused_unless_it_is_the_workers(
    called: list[tuple[str, ...]], pem: Path, busy_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"127.0.0.1:{busy_port}"
    error = enable(place, pem).exception
    assert isinstance(error, McpwrapError)
    assert "Address already in use" in str(error)
    assert f"port {busy_port}" in error.fix
    monkeypatch.setattr(worker, "configuration", lambda: Worker(listen=place))
    assert enable(place, pem).exception is None
    assert len(called) == 1


def test_files_that_serve_no_tls_are_refused(called: list[tuple[str, ...]], tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "none", tmp_path / "empty.pem"):
        error = enable("127.0.0.1:9443", path).exception
        assert isinstance(error, McpwrapError)
        assert (error.code, called) == ("E-WORKER-TLS", [])


@pytest.mark.parametrize(
    ("argv", "root_argv"),
    [
        (["disable"], ("worker", "disable")),
        (["token"], ("worker", "token")),
        (["token", "--stdin"], ("worker", "token", "--stdin")),
    ],
)
def test_the_other_verbs(
    called: list[tuple[str, ...]], argv: list[str], root_argv: tuple[str, ...]
) -> None:
    CliRunner().invoke(cli, ["worker", *argv], standalone_mode=False)
    assert called == [root_argv]


def test_all_of_them_need_root(
    called: list[tuple[str, ...]], pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = enable("127.0.0.1:9443", pem).exception
    assert isinstance(error, McpwrapError)
    assert (error.code, called) == ("E-USAGE-NEEDS-ROOT", [])

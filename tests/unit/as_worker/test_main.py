"""Main program of the worker: its sockets, and TLS for other machines."""

import socket
import ssl
from pathlib import Path

import pytest
import trustme

from mcpwrap.as_worker.main import main, with_tls
from mcpwrap.as_worker.state import WorkerConnectionLimits, WorkerSettings
from mcpwrap.core.wire.execution.worker_file import LISTENER_POOL, RunLimits
from mcpwrap.linux.systemd.socket_activation import any_listening_sockets
from tests.shared import pace
from tests.unit.as_worker.world import POOL, Tls, running
from tests.unit.http_service import Headers

ONE = RunLimits(at_once=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> Tls:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return Tls(server, client)


def write_credentials(folder: Path, authority: trustme.CA) -> None:
    certificate = authority.issue_cert("127.0.0.1")
    (folder / "certificate").write_bytes(
        b"".join(one.bytes() for one in certificate.cert_chain_pems)
    )
    (folder / "key").write_bytes(certificate.private_key_pem.bytes())


def test_the_socket_on_loopback_alone_has_no_tls(tmp_path: Path, authority: trustme.CA) -> None:
    write_credentials(tmp_path, authority)
    with (
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        given = WorkerSettings(loopback=loopback.getsockname())
        [(_, none), (_, context)], settings = with_tls([loopback, other], given, str(tmp_path))
        assert (none, settings.listener_flaw) == (None, "")
        assert context is not None
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3


NOT_PEM = "what [worker] names is not a PEM certificate with its key"


@pytest.mark.parametrize(
    ("content_by_name", "flaw"),
    [
        ({}, ""),  # the twin
        # What systemd sets where the file does not exist.
        ({"certificate": "missing"}, "a file that [worker] names is missing: certificate"),
        ({"key": "missing"}, "a file that [worker] names is missing: key"),
        (
            {"certificate": "missing", "key": "missing"},
            "a file that [worker] names is missing: certificate and key",
        ),
        ({"certificate": ""}, NOT_PEM),
        ({"key": ""}, NOT_PEM),
        ({"key": "garbage"}, NOT_PEM),
        ({"key": "missing\n"}, NOT_PEM),  # a file of this content exists
    ],
)
def test_the_reason_names_the_missing_file(
    tmp_path: Path, authority: trustme.CA, content_by_name: dict[str, str], flaw: str
) -> None:
    write_credentials(tmp_path, authority)
    for name, content in content_by_name.items():
        (tmp_path / name).write_text(content)
    with socket.create_server(("127.0.0.1", 0)) as other:
        _, settings = with_tls([other], WorkerSettings(), str(tmp_path))
    assert settings.listener_flaw == (f"{flaw} [E-WORKER-TLS]" if flaw else "")


@pytest.mark.parametrize("content", [None, "", "missing"])
def test_without_a_certificate_other_machines_alone_are_refused(
    tmp_path: Path, tls: Tls, content: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        for name in ("certificate", "key"):
            (tmp_path / name).write_text(content)
    with (
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        own = WorkerSettings(loopback=loopback.getsockname())
        [(_, none), (_, server)], settings = with_tls([loopback, other], own, str(tmp_path))
        assert none is None
    assert server is not None
    flaw = settings.listener_flaw
    assert flaw.endswith(" [E-WORKER-TLS]")
    assert capfd.readouterr().err == f"mcpwrap-worker: other machines are refused: {flaw}\n"
    with (
        running(tmp_path, limits=ONE, tls=Tls(server, tls.client)) as world,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        world.health()
    (tmp_path / "loopback").mkdir()
    with running(tmp_path / "loopback", limits=ONE, listener_flaw=flaw) as world:
        assert world.execute("1").json()["stdout"] == "1"
        assert world.notifier.statuses[0].endswith(f"; other machines are refused: {flaw}")


def test_other_machines_have_one_pool(tmp_path: Path, tls: Tls) -> None:
    with running(tmp_path, limits=ONE, pool=LISTENER_POOL, tls=tls) as world:
        assert world.execute("1", headers={"Host": "any.example"}).json()["stdout"] == "1"
        assert world.execute(headers={"Authorization": None}).status == 401
        assert world.execute(headers={"Origin": "https://evil.example"}).status == 403
        assert world.ask("GET", "/healthz", {"Authorization": None, "Host": "x"}).status == 200
        world.folder.configure(worker=ONE, notes=ONE)
        world.folder.set_token(POOL, "of a local server")
        for path in ("/execute", "/metrics"):
            method, body = ("POST", b'{"code": "1"}') if path == "/execute" else ("GET", None)
            headers: Headers = {"Authorization": "Bearer of-a-local-server"}
            assert world.ask(method, path, headers, body).status == 401


def test_plain_http_to_other_machines_socket_is_not_answered(tmp_path: Path, tls: Tls) -> None:
    with running(tmp_path, limits=ONE, tls=tls) as world:
        with socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            received = plain.recv(65536)
            assert not received.startswith(b"HTTP")
        assert world.health()["status"] == "ok"


def test_a_silent_client_does_not_delay_the_others(tmp_path: Path, tls: Tls) -> None:
    limits = WorkerConnectionLimits(connections=2)
    with (
        running(tmp_path, limits=ONE, tls=tls, connections=limits) as world,
        socket.create_connection(("127.0.0.1", world.port)),
    ):
        assert world.health()["status"] == "ok"


def test_of_silent_handshakes_the_oldest_is_aborted_for_another(tmp_path: Path, tls: Tls) -> None:
    limits = WorkerConnectionLimits(connections=2)
    with running(tmp_path, limits=ONE, tls=tls, connections=limits) as world:
        address = ("127.0.0.1", world.port)
        with (
            socket.create_connection(address, timeout=pace.WAIT_S) as oldest,
            socket.create_connection(address, timeout=pace.WAIT_S) as slow,
        ):
            assert world.health()["status"] == "ok"
            assert oldest.recv(1) == b""
            with tls.client.wrap_socket(slow, server_hostname="127.0.0.1") as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_silent_handshake_is_closed(tmp_path: Path, tls: Tls) -> None:
    limits = WorkerConnectionLimits(head_s=0.05)
    with (
        running(tmp_path, tls=tls, connections=limits) as world,
        socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as silent,
    ):
        assert silent.recv(1) == b""


@pytest.mark.parametrize(
    "environ", [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_FDS": "x"}]
)
def test_a_process_that_pid_1_did_not_start_has_no_sockets(environ: dict[str, str]) -> None:
    with pytest.raises(RuntimeError, match="E-SYSTEM-SOCKET-UNIT"):
        any_listening_sockets(environ)


def test_the_program_needs_its_socket_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpwrap.linux.isolation.prctl.forbid_dumps", lambda: None)
    monkeypatch.delenv("LISTEN_PID", raising=False)
    with pytest.raises(RuntimeError, match="E-SYSTEM-SOCKET-UNIT"):
        main()

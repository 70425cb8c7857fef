"""Request of a run: its fields, and its transport."""

import base64
import json
import os
import socket
from collections.abc import Iterator

import pytest

from mcpwrap.as_job import job_request
from mcpwrap.as_job.job_request import HangUpError, RequestError
from mcpwrap.core.wire.execution import job_frames
from tests.unit.as_job.given_request import FIELDS

Pair = tuple[socket.socket, socket.socket]


def text(**changed: object) -> bytes:
    return json.dumps(FIELDS | changed).encode()


def test_a_request_is_parsed() -> None:
    files = {"a.csv": base64.b64encode(b"1,2").decode()}
    request = job_request.parse(text(code="'ü'", files=files, packages="0" * 64))
    assert (request.run_id, request.code) == ("ab12", "'ü'".encode())
    assert (request.files, request.packages) == ({"a.csv": b"1,2"}, "0" * 64)
    assert (request.timeout_s, request.output_bytes, request.cpus) == (60, 1000, 1)


@pytest.mark.parametrize(
    ("untrusted_text", "why"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not an object"),
        (text(more=1), "its fields are"),
        (b'{"run": "ab"}', "its fields are run"),
        (text(code=1), "code is not of the type str"),
        (text(seconds=True), "seconds is not of the type int"),  # which Python takes for 1
        (text(seconds=1.5), "seconds is not of the type int"),
        (text(seconds=0), "seconds is not positive"),
        (text(output=-1), "output is not positive"),
        (text(cpus=0), "cpus is not positive"),
        (text(run="../x"), "run is not hexadecimal"),
        (text(packages=".."), "packages is not hexadecimal"),
        (text(packages="0" * 64 + "\n"), "packages is not hexadecimal"),
        (text(code="\ud800"), "code is not Unicode"),
        (text(files={"../x": ""}), "a name"),
        (text(files={".bashrc": ""}), "a name"),
        (text(files={"a": 1}), "a name or a content"),
        (text(files={"a": "&"}), "not base64"),
        (text(files={"a": "YQ==\n"}), "not base64"),
        (text(files={str(number): "" for number in range(33)}), "more than 32 entries"),
        (
            text(files={"a": base64.b64encode(bytes(job_frames.MAX_IN_BYTES + 1)).decode()}),
            "more than 8388608 bytes",
        ),
    ],
)
def test_an_invalid_request_is_refused(untrusted_text: bytes, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        job_request.parse(untrusted_text)


@pytest.fixture(name="pair")
def _pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def framed(content: bytes) -> bytes:
    return job_frames.LENGTH.pack(len(content)) + content


def test_a_request_arrives_with_its_pipe(pair: Pair) -> None:
    worker, connection = pair
    read_fd, write_fd = os.pipe()
    socket.send_fds(worker, [framed(b"{}")], [write_fd])
    received, fd = job_request.receive(connection)
    assert received == b"{}"
    assert not os.get_inheritable(fd)
    os.close(write_fd)
    os.close(fd)
    assert os.read(read_fd, 1) == b""  # it was that pipe
    os.close(read_fd)
    assert not job_request.has_hung_up(connection)


def test_the_length_may_arrive_in_pieces(pair: Pair) -> None:
    worker, connection = pair
    content = framed(b"{}")
    socket.send_fds(worker, [content[:3]], [worker.fileno()])
    worker.sendall(content[3:])
    received, fd = job_request.receive(connection)
    os.close(fd)
    assert received == b"{}"


@pytest.mark.parametrize("count", [0, 2])
def test_a_request_has_one_descriptor(pair: Pair, count: int) -> None:
    worker, connection = pair
    socket.send_fds(worker, [framed(b"{}")], [worker.fileno()] * count)
    with pytest.raises(RequestError, match=f"{count} descriptors"):
        job_request.receive(connection)


def test_a_long_request_is_refused_unread(pair: Pair) -> None:
    worker, connection = pair
    length = job_frames.LENGTH.pack(job_frames.MAX_REQUEST_BYTES + 1)
    socket.send_fds(worker, [length], [worker.fileno()])
    with pytest.raises(RequestError, match="bytes"):
        job_request.receive(connection)


@pytest.mark.parametrize("sent", [b"", framed(b"{}")[:5], framed(b"{}")[:-1]])
def test_a_worker_hangs_up_before_its_request_is_complete(pair: Pair, sent: bytes) -> None:
    worker, connection = pair
    if sent:
        socket.send_fds(worker, [sent], [worker.fileno()])
    worker.shutdown(socket.SHUT_WR)
    with pytest.raises(HangUpError):
        job_request.receive(connection)


def test_a_silent_worker_is_left(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_request, "_FIRST_BYTE_S", 0.0)
    with pytest.raises(HangUpError):
        job_request.receive(pair[1])


@pytest.mark.parametrize("more", [b"", b"x"])
def test_a_hang_up_or_more_is_noticed(pair: Pair, more: bytes) -> None:
    worker, connection = pair
    if more:
        worker.sendall(more)
    else:
        worker.close()
    assert job_request.has_hung_up(connection)

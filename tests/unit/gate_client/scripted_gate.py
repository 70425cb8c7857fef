"""Gate that answers one query, for the client of the gate."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpwrap.gate_client import queries


@contextmanager
def gate_that(
    answer: Callable[[socket.socket], object], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Have this function answer the next query of the client, at a socket in the folder."""
    path = str(folder / "gate.sock")
    monkeypatch.setattr(queries, "_GATE", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()

        def accept() -> None:
            with listening.accept()[0] as asker:
                answer(asker)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            thread.join()

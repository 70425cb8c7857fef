"""Approval documents: immutable once written, and closed when no longer needed."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.as_gate.approvals import documents as module
from mcpwrap.as_gate.approvals.documents import Documents
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES

TOOL = (1000, "sqlite", "tools/call", "drop")


@pytest.fixture
def documents() -> Iterator[Documents]:
    before = set(Path("/proc/self/fd").iterdir())
    made = Documents()
    yield made
    made.keep_only([])
    for session in list(made._page_by_session):
        made.drop_page(session)
    for fd in made._approved.values():
        os.close(fd)
    assert set(Path("/proc/self/fd").iterdir()) == before


def written(documents: Documents, id_: str, text: bytes = b"text") -> int:
    os.write(documents.page(1), text)
    fd, digest, size = documents.take_page(1)
    assert (digest, size) == (document.digest(text), len(text))
    documents.keep(id_, fd)
    return fd


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_taken_page_is_sealed(documents: Documents) -> None:
    page = documents.page(1)
    mine = os.dup(page)  # as in a session's process
    os.write(mine, b"text")
    fd, _, _ = documents.take_page(1)
    documents.keep("a", fd)
    for change in (lambda: os.pwrite(mine, b"x", 0), lambda: os.ftruncate(mine, 0)):
        with pytest.raises(PermissionError):
            change()
    assert os.pread(documents.find("a"), 9, 0) == b"text"
    os.close(mine)


def test_a_page_that_is_still_mapped_is_refused(documents: Documents) -> None:
    page = documents.page(1)
    os.write(page, b"text")
    with mmap.mmap(page, 4), pytest.raises(OSError, match="busy"):
        documents.take_page(1)
    assert not is_open(page)


def test_a_session_has_one_page_at_a_time(documents: Documents) -> None:
    first, other = documents.page(1), documents.page(2)
    second = documents.page(1)
    assert not is_open(first) or first == second
    documents.drop_page(1)
    documents.drop_page(1)
    assert (is_open(second), is_open(other)) == (False, True)
    for _ in range(2):
        with pytest.raises(ChannelError, match="no document"):
            documents.take_page(1)


def test_a_document_that_is_too_long_is_refused(documents: Documents) -> None:
    page = documents.page(1)
    os.ftruncate(page, MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(ChannelError, match="1048577 bytes"):
        documents.take_page(1)
    assert not is_open(page)


def test_the_last_approved_document_is_stored(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documents.last_approved(TOOL) is None
    first = written(documents, "a")
    documents.approved("a", TOOL)
    assert documents.last_approved(TOOL) == first
    second = written(documents, "b")
    documents.approved("b", TOOL)
    assert documents.last_approved(TOOL) == second
    assert not is_open(first)
    documents.keep_only([])
    assert is_open(second)
    # Over the limit, the tool that was approved longest ago is dropped.
    monkeypatch.setattr(module, "MAX_APPROVED", 2)
    others = [(1000, "sqlite", "tools/call", name) for name in ("x", "y")]
    for tool in others:
        written(documents, "c")
        documents.approved("c", tool)
    assert documents.last_approved(TOOL) is None
    assert not is_open(second)
    assert all(documents.last_approved(tool) for tool in others)


def test_documents_of_other_questions_are_closed(documents: Documents) -> None:
    one, other = written(documents, "a"), written(documents, "b")
    documents.keep_only(["b", "c"])
    assert (is_open(one), is_open(other)) == (False, True)

"""Approval documents: immutable once written, and closed when no longer needed."""

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
    for session in list(made.pages._page_by_session):
        made.pages.drop(session)
    for fd in made._approved.values():
        os.close(fd)
    assert set(Path("/proc/self/fd").iterdir()) == before


def written(documents: Documents, id_: str, text: bytes = b"text") -> int:
    os.write(documents.pages.new(1), text)
    fd, digest, size = documents.take(1)
    assert (digest, size) == (document.digest(text), len(text))
    documents.keep(id_, fd)
    return fd


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_document_that_is_too_long_is_refused(documents: Documents) -> None:
    page = documents.pages.new(1)
    os.ftruncate(page, MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(ChannelError, match="1048577 bytes"):
        documents.take(1)
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

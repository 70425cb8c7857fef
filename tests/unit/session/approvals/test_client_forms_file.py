"""Files of clients that were asked by elicitation."""

import fcntl
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.session.approvals.client_forms_file import ClientFormsFile, read

BATCH = ClientIdentity("batch", "1")
DRAWS = ClientIdentity("draws", "1")


def test_what_two_runs_of_a_user_learn_is_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "forms"
    first, second = ClientFormsFile(path), ClientFormsFile(path)
    first.take(BATCH, FormAnswer.BY_ITSELF)
    second.take(BATCH, FormAnswer.DENIED)
    first.take(DRAWS, FormAnswer.APPROVED)  # it does not know what the second has learned
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path] == list(tmp_path.iterdir())
    batch, draws = read(path)
    assert (batch.client, draws.client) == (BATCH, DRAWS)
    assert batch.drawn_at
    assert batch.by_itself_at
    assert ClientFormsFile(path).may_draw(BATCH)


def test_where_nothing_can_be_written_it_is_known_until_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "missing" / "forms"
    forms = ClientFormsFile(path)
    forms.take(BATCH, FormAnswer.BY_ITSELF)
    assert not forms.may_draw(BATCH)
    assert forms.known.may_draw(DRAWS, time.time())  # the twin
    assert f"{path}: cannot be written: No such file or directory" in capsys.readouterr().err
    assert read(path) == []


def learn(path: Path, name: str) -> None:
    """Learn about ten clients, as one run does."""
    forms = ClientFormsFile(path)
    for number in range(10):
        forms.take(ClientIdentity(f"{name}-{number}", "1"), FormAnswer.APPROVED)


def test_runs_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "forms"
    folder_fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder_fd, fcntl.LOCK_EX)  # so that they begin at once
    fork = multiprocessing.get_context("fork")
    runs = [fork.Process(target=learn, args=(path, str(number))) for number in range(4)]
    for run in runs:
        run.start()
    fcntl.flock(folder_fd, fcntl.LOCK_UN)
    os.close(folder_fd)
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0] * 4
    assert len(read(path)) == 40

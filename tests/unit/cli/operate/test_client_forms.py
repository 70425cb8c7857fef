"""Lines of `doctor` on clients that were asked by a form."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap.cli.operate import client_forms, doctor
from mcpwrap.core.approval import rule_file
from mcpwrap.core.approval.client_forms import FormRecord, encode
from mcpwrap.core.doctor import Check, good
from mcpwrap.errors import UsageError

NOBODYS_UID = 4_000_000_000
RECORDS = [
    FormRecord(name="claude-code", version="2.1.330", drawn_at=1_800_000_000.0),
    FormRecord(name="batch", version="", by_itself_at=1_800_000_000.0),
]
LINES = [
    ("claude-code 2.1.330", "draws forms (seen 2027-01-15)"),
    ("batch", "declares forms, and answers them by itself: asked elsewhere (seen 2027-01-15)"),
]


def lines(whose: str = "") -> list[Check]:
    return [good(f"approval forms: {whose}{client}", found) for client, found in LINES]


def test_the_gates_clients_have_their_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_file, "FOLDER", str(tmp_path))
    assert list(client_forms.of_gate()) == []
    (tmp_path / "client-forms-0").write_bytes(encode(RECORDS))
    assert list(client_forms.of_gate()) == lines("root: ")
    (tmp_path / "client-forms-0").write_bytes(b"damaged")
    (tmp_path / f"client-forms-{NOBODYS_UID}").write_bytes(encode(RECORDS))
    assert list(client_forms.of_gate()) == lines(f"uid {NOBODYS_UID}: ")


@pytest.mark.timeout(10)
def test_files_that_root_does_not_follow_or_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_file, "FOLDER", str(tmp_path))
    (tmp_path / "elsewhere").write_bytes(encode(RECORDS))
    (tmp_path / "client-forms-0").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "client-forms-1")
    assert list(client_forms.of_gate()) == []


def test_those_of_a_user(tmp_path: Path) -> None:
    folder = tmp_path / ".local/state/mcpwrap"
    folder.mkdir(parents=True)
    (folder / "client-forms.json").write_bytes(encode(RECORDS))
    assert list(client_forms.of_user({"HOME": str(tmp_path)})) == lines()
    other = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "other")}
    assert list(client_forms.of_user(other)) == [
        good("approval forms", "no client has been asked by one")
    ]


def test_a_user_names_no_server() -> None:
    with pytest.raises(UsageError, match="tests no server") as raised:
        CliRunner().invoke(
            doctor.command, ["git", "--user"], obj={}, standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip
    assert raised.value.code == "E-USAGE-EXCLUSIVE-OPTIONS"
    assert CliRunner().invoke(doctor.command, ["--user"], obj={}, standalone_mode=False).output

"""Lines of `mcpwrap doctor` on clients that were asked for approval by a form."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from mcpwrap.core.approval.client_forms import FormRecord
from mcpwrap.core.doctor import Check, good
from mcpwrap.gate_client.user_approvals import CLIENT_FORMS, state_folder
from mcpwrap.linux import accounts
from mcpwrap.session.approvals import client_forms_file


def of_gate() -> Iterator[Check]:
    """Yield a line for each client of the gate's sessions, with its account."""
    for uid, path in client_forms_file.gate_paths():
        yield from _lines(path, f"{accounts.name_of(uid) or f'uid {uid}'}: ")


def of_user(environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield a line for each client of a user's `mcpwrap run` processes; one if there is none."""
    home = Path(environ.get("HOME") or "/")
    found = list(_lines(state_folder(environ, home) / CLIENT_FORMS))
    yield from found or [good("approval forms", "no client has been asked by one")]


def _lines(path: Path, whose: str = "") -> Iterator[Check]:
    for record in client_forms_file.read(path):
        what = f"approval forms: {whose}{record.name} {record.version}".rstrip()
        yield good(what, _found(record))


def _found(record: FormRecord) -> str:
    measured = datetime.fromtimestamp(max(record.drawn_at, record.by_itself_at), UTC)
    return f"{record.describe()} (seen {measured:%Y-%m-%d})"

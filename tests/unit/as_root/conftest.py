"""Secret store in a folder of the test."""

from pathlib import Path

import pytest

from mcpwrap.as_root.secrets import command, store
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.plan import paths


@pytest.fixture
def store_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep all secrets in a folder of the test, on a machine without systemd-creds."""
    for name in ("SECRETS", "SECRETS_LOCK", "SEALED", "STORE", "MINTED", "BUNDLES"):
        monkeypatch.setattr(paths, name, str(tmp_path / name))

    def no_tool(*argv: str, stdin: str = "") -> str:
        raise ToolError("not installed", where=argv[0], fix="", code="E-TOOL-FAILED")

    monkeypatch.setattr(store, "run", no_tool)
    monkeypatch.setattr(command, "_is_running", lambda _: False)
    return tmp_path

"""Checks of a server: each follows from its own probe alone."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpwrap.config.model import Server
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.doctor import Check, good
from mcpwrap.linux.systemd import systemctl
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import observer
from mcpwrap.machine.doctor import live_probes, server_checks, squid_health
from mcpwrap.machine.doctor.live_probes import (
    TrialNotRunError,
    TrialResult,
    TrialStatus,
    WrapperView,
)
from mcpwrap.plan import paths
from mcpwrap.plan.registry import Allocation, Registry

CONFIG = """
[mcp_servers.one]
command = "/usr/bin/true"
[mcp_servers.one.mcpwrap]
agents = ["alice"]
"""


def configured(settings: str = "") -> Server:
    """Return a server with these settings."""
    return parse([SourceFile("c", (CONFIG + settings).encode())]).servers["one"]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Create an agent's home and a folder of sealed secrets, and let sessions succeed."""
    monkeypatch.setattr(server_checks, "_HIDDEN_HOMES", (str(tmp_path),))
    home_by_name = {"alice": str(tmp_path / "alice")}
    monkeypatch.setattr(server_checks, "accounts", SimpleNamespace(
        uid_of={"alice": 1000}.get,
        home_of=home_by_name.__getitem__,
        members_of={"staff": ["deleted", "alice"], "old": ["deleted"]}.__getitem__,
    ))  # fmt: skip
    monkeypatch.setattr(paths, "SEALED", str(tmp_path / "sealed"))
    monkeypatch.setattr(
        live_probes, "session", lambda *_: TrialResult(TrialStatus.WORKED, "2 tools")
    )
    for path in ("alice/notes", "sealed"):
        (tmp_path / path).mkdir(parents=True)
    return tmp_path / "alice"


def tried(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, settings: str = "", squid: str = ""
) -> dict[str, str]:
    """Return the states of all checks of a server whose probes end with `ended`."""
    return states(checks(monkeypatch, ended, settings, squid))


def checks(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, settings: str, squid: str
) -> Iterator[Check]:
    """Yield all checks of a server whose probes end with `ended`, and whose Squid has `problem`."""

    @contextmanager
    def inside(_: str) -> Iterator[WrapperView]:
        yield WrapperView("mcpw-one", -1, -1)

    monkeypatch.setattr(live_probes, "open_wrapper_view", inside)
    monkeypatch.setattr(live_probes, "try_reach", lambda *_: TrialResult(ended, "said"))
    monkeypatch.setattr(systemctl, "run", lambda *_: "")
    allocation = Allocation(uid=20_000, squid="proxy-1")
    monkeypatch.setattr(observer, "registry", lambda: Registry(by_name={"one": allocation}))
    monkeypatch.setattr(
        squid_health, "problems", lambda units: dict.fromkeys(units, squid) if squid else {}
    )
    return server_checks.server_checks(configured(settings), 20_000)


def states(checks: Iterator[Check]) -> dict[str, str]:
    """Return the states of checks by their title, without the name of the server."""
    return {check.what.removeprefix("one: "): check.state for check in checks}


PAST = "reach an address past Squid"
LISTED, UNLISTED = "reach a.test:443", "reach a host that is not listed"


@pytest.mark.parametrize(
    ("ended", "past", "listed", "unlisted"),
    [
        (TrialStatus.WORKED, "failed", "good", "failed"),
        (TrialStatus.REFUSED, "good", "failed", "good"),
        (TrialStatus.OTHERWISE, "unknown", "failed", "unknown"),
        (TrialStatus.NO_ANSWER, "unknown", "failed", "unknown"),  # Squid did not evaluate its list
        (TrialStatus.NO_ROUTE, "unknown", "failed", "unknown"),  # no packet reached the rules
        (TrialStatus.UNKNOWN, "unknown", "unknown", "unknown"),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_verdict_follows_from_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, past: str, listed: str, unlisted: str
) -> None:
    found = tried(monkeypatch, ended, 'egress = ["a.test"]')
    assert found[PAST] == past
    assert (found[LISTED], found[UNLISTED]) == (listed, unlisted)


UNIT = "mcpwrap-squid-proxy@1.service"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ("", f"{UNIT} did not answer (said)"),  # it began to hang a moment ago
        ("does not answer", f"{UNIT} does not answer"),
        ("is inactive", f"{UNIT} is inactive"),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_squid_that_does_not_answer_is_named_and_no_rule(
    monkeypatch: pytest.MonkeyPatch, problem: str, text: str
) -> None:
    found = checks(monkeypatch, TrialStatus.NO_ANSWER, 'egress = ["a.test"]', problem)
    by_proxy = [check for check in found if check.what in {f"one: {LISTED}", f"one: {UNLISTED}"}]
    assert [(check.state, check.found) for check in by_proxy] == [
        ("failed", f"{text} [E-DOCTOR-SQUID]"),
        ("unknown", f"could not be checked: {text}"),
    ]
    for check in by_proxy:
        assert UNIT in check.fix
        assert "egress" not in check.fix


@pytest.mark.usefixtures("home")
def test_egress_that_is_not_applied_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = checks(monkeypatch, TrialStatus.NO_ANSWER, 'egress = ["a.test"]', "")
    monkeypatch.setattr(
        observer, "registry", lambda: Registry(by_name={"one": Allocation(uid=20_000)})
    )
    found = {check.what.removeprefix("one: "): check for check in applied}
    assert found["egress"].found == "is not applied [E-DOCTOR-NOT-APPLIED]"
    assert (found["egress"].state, found["egress"].fix) == ("failed", "`sudo mcpwrap apply`")
    assert found.keys().isdisjoint({LISTED, UNLISTED})
    # The twin: of an egress that is applied the hosts are tried.
    titles = tried(monkeypatch, TrialStatus.WORKED, 'egress = ["a.test"]').keys()
    assert titles >= {LISTED, UNLISTED}
    assert "egress" not in titles


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (TrialStatus.WORKED, "good"),
        (TrialStatus.IN_PLACE, "warning"),  # a server that only appends works
        (TrialStatus.REFUSED, "failed"),
        (TrialStatus.OTHERWISE, "failed"),  # a read-only file system
        (TrialStatus.UNKNOWN, "unknown"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_may_be_written_is_written(
    monkeypatch: pytest.MonkeyPatch, ended: TrialStatus, state: str
) -> None:
    found = tried(monkeypatch, ended, 'workspace = ["/srv/a:rw", "/srv/b:ro"]')
    assert found["write in /srv/a"] == state
    assert not any("/srv/b" in what for what in found)


@pytest.mark.usefixtures("home")
def test_in_a_namespace_without_network_no_route_is_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tried(monkeypatch, TrialStatus.NO_ROUTE)[PAST] == "good"


def test_of_a_wrapper_that_does_not_run_nothing_is_judged(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def inside(_: str) -> None:
        raise TrialNotRunError("it does not run", where="one", fix="see", code="E-FILE-ACCESS")

    monkeypatch.setattr(live_probes, "open_wrapper_view", inside)
    monkeypatch.setattr(
        live_probes, "session", lambda *_: TrialResult(TrialStatus.REFUSED, "the secret is not set")
    )
    found = states(server_checks.server_checks(configured(), 20_000))
    assert found.pop("a session of alice") == "failed"
    assert found.pop("program") == "good"  # checked without a wrapper
    assert found.keys() == {f"read {home}/notes", "read sealed secrets", PAST}
    assert set(found.values()) == {"unknown"}


def test_a_file_that_is_gone_by_then_was_not_refused(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    assert tried(monkeypatch, TrialStatus.REFUSED)[f"read {home}/notes"] == "good"

    def reach(*_: object) -> TrialResult:
        if (home / "notes").exists():
            (home / "notes").rmdir()
        return TrialResult(TrialStatus.REFUSED, "No such file or directory")

    with monkeypatch.context() as during:
        found = tried(during, TrialStatus.REFUSED)
        (home / "notes").mkdir(exist_ok=True)
        during.setattr(live_probes, "try_reach", reach)
        found = states(server_checks.server_checks(configured(), 20_000))
    assert found[f"read {home}/notes"] == "unknown"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/nowhere")])
def test_what_cannot_be_read_at_all_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, home: Path, make: Callable[[Path], None]
) -> None:
    odd = home / "a"  # before the folder that is there
    make(odd)
    assert f"read {home}/notes" in tried(monkeypatch, TrialStatus.REFUSED)


@pytest.mark.parametrize(("group", "has_agent"), [("staff", True), ("old", False)])
def test_a_member_that_was_deleted_is_no_agent(
    monkeypatch: pytest.MonkeyPatch, home: Path, group: str, *, has_agent: bool
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "CONFIG", CONFIG.replace("alice", f"@{group}"))
    found = tried(monkeypatch, TrialStatus.REFUSED)
    assert ("a session of alice" in found, f"read {home}/notes" in found) == (has_agent, has_agent)


def test_a_home_for_everybody_has_nothing_private(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(server_checks, "_HIDDEN_HOMES", ("/home/",))
    (home / "notes").chmod(0o755)
    assert f"read {home}/notes" not in tried(monkeypatch, TrialStatus.WORKED)
    (home / "notes").chmod(0o750)
    assert tried(monkeypatch, TrialStatus.WORKED)[f"read {home}/notes"] == "failed"


def test_a_tool_that_fails_leaves_the_other_checks() -> None:
    def checks() -> Iterator[Check]:
        yield good("a", "b")
        raise ToolError("timed out", where="systemctl", fix="see", code="E-TOOL-FAILED")

    assert states(server_checks.guarded("it", checks())) == {"a": "good", "it": "unknown"}

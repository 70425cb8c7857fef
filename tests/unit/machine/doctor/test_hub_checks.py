"""Checks of a hub: those of its session, and those that the account's program printed."""

import pytest

from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.core.doctor import Check
from mcpwrap.machine.doctor import hub_checks, live_probes
from mcpwrap.machine.doctor.live_probes import TrialResult, TrialStatus

HUB = parse_part([SourceFile("c", b"[mcp_servers.tools.members.git]")]).servers["tools"]
PRINTED = (
    '{"what":"tools: members","state":"good","found":"loaded 2 tools from 1/1 servers"}',
    "not JSON",
    '{"what":"tools: members","state":"odd","found":""}',
    '{"what":"tools: Codex","state":"warning","found":"too long","fix":"shorten it"}',
)


@pytest.mark.parametrize(
    ("tried", "states"),
    [
        (TrialResult(TrialStatus.WORKED, "2 tools", PRINTED), ["good", "good", "warning"]),
        (TrialResult(TrialStatus.REFUSED, "no answer", PRINTED), ["failed"]),
        (TrialResult(TrialStatus.UNKNOWN, "no account", PRINTED), ["unknown"]),
    ],
)
def test_what_was_printed_counts_after_a_session(
    monkeypatch: pytest.MonkeyPatch, tried: TrialResult, states: list[str]
) -> None:
    asked: list[tuple[str, ...]] = []

    def session(*argv: str) -> TrialResult:
        asked.append(argv)
        return tried

    monkeypatch.setattr(live_probes, "session", session)
    found = list(hub_checks.session(HUB, "alice"))
    assert asked == [("alice", "tools", "hub")]
    assert [check.state for check in found] == states
    assert found[0].what == "tools: a session of alice"
    if tried.ended is TrialStatus.WORKED:
        assert found[2] == Check(
            what="tools: Codex", state="warning", found="too long", fix="shorten it"
        )

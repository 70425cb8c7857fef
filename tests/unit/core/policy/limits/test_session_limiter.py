"""Counters in a session's own process: by the operator's limits, and by the default policy's."""

import pytest

from mcpwrap.core.policy.compiled import ServerContext, compile_policy
from mcpwrap.core.policy.decision import CallOutcome
from mcpwrap.core.policy.limits.session_limiter import SessionLimiter
from mcpwrap.core.policy.rules import LimitScope, LimitsEntry, Policy

ENDED = CallOutcome(failed=False)
FAILED = CallOutcome(failed=True)
SESSION: tuple[LimitScope, ...] = ("session",)
ALL: tuple[LimitScope, ...] = ("agent", "session")
OF_AGENT = LimitsEntry(tools=("a",), calls=1)
OF_SESSION = LimitsEntry(tools=("a",), calls=1, scope="session")
DEFAULT = LimitsEntry(calls=2, identical_calls=3, failures=1, scope="session")


class Session:
    """Limiter with a clock that the test moves, and a log."""

    def __init__(self, policy: Policy, scopes: tuple[LimitScope, ...] = SESSION) -> None:
        self.now_s = 100.0
        self.log: list[str] = []
        self.limiter = SessionLimiter(
            compile_policy(policy, "s"),
            scopes,
            lambda: self.now_s,
            lambda tool, why: self.log.append(f"{tool}: {why}"),
        )

    def passes(self, tools: str) -> str:
        """Return for each call whether it passes: its tool, or `-`."""
        return "".join(
            tool if self.limiter.ask(tool, tool.encode()) is None else "-" for tool in tools
        )


@pytest.mark.parametrize(
    ("policy", "scopes", "passes"),
    [
        (Policy(), SESSION, "aaa bbb"),
        (Policy(limits=(OF_AGENT,)), SESSION, "aaa bbb"),  # counted by the monitor
        (Policy(limits=(OF_AGENT,)), ALL, "a-- bbb"),
        (Policy(limits=(OF_SESSION,)), SESSION, "a-- bbb"),
        (Policy(default_limits=(DEFAULT,)), SESSION, "aa- bb-"),
        (Policy(limits=(OF_SESSION,), default_limits=(DEFAULT,)), SESSION, "a-- bb-"),
    ],
)
def test_both_policies_limit_calls(
    policy: Policy, scopes: tuple[LimitScope, ...], passes: str
) -> None:
    session = Session(policy, scopes)
    assert f"{session.passes('aaa')} {session.passes('bbb')}" == passes


def test_repeats_are_counted_where_an_entry_has_them() -> None:
    session = Session(Policy(limits=(OF_SESSION,), default_limits=(LimitsEntry(calls=9),)))
    assert not session.limiter.counts("a")
    session = Session(Policy(default_limits=(DEFAULT,)))
    assert session.limiter.counts("a")
    assert not session.limiter.needs_answer("a", b"a")
    session.passes("a")
    assert session.limiter.needs_answer("a", b"a")


def test_failures_open_it_and_are_logged() -> None:
    session = Session(Policy(default_limits=(DEFAULT,)))
    session.passes("a")
    session.limiter.report("a", ENDED)
    assert session.log == []
    session.limiter.report("a", FAILED)
    assert session.log == ["a: 1 failures in a row"]
    assert session.passes("ab") == "-b"
    session.now_s += 61
    assert session.passes("a") == "a"


def test_a_tool_without_limits_ends_a_loop_too() -> None:
    limits = LimitsEntry(tools=("a",), identical_calls=1, scope="session")
    session = Session(Policy(limits=(limits,)))
    assert session.passes("aa") == "a-"
    session.limiter.report("b", FAILED)
    assert session.passes("a") == "-"
    session.limiter.report("b", ENDED)
    assert session.passes("a") == "a"


def test_new_limits_reset_the_counters() -> None:
    session = Session(Policy(limits=(OF_SESSION,)))
    assert session.passes("aa") == "a-"
    session.limiter.renew(compile_policy(Policy(limits=(OF_SESSION,)), "s"))
    assert session.passes("aa") == "a-"


def test_few_tools_are_remembered() -> None:
    session = Session(Policy(default_limits=(LimitsEntry(calls=1),)))
    for number in range(2000):
        assert session.limiter.ask(f"tool{number % 1000}", b"") is None or number >= 1000
    assert len(session.limiter._counters_by_tool) <= 512


def test_a_hub_has_no_default_limits() -> None:
    policy = compile_policy(Policy(default_limits=(DEFAULT,)), "s", ServerContext(is_hub=True))
    assert policy.default_limits_for("a") is None


def test_a_refusal_tells_which_policys_limit_it_is() -> None:
    shipped = LimitsEntry(calls=1, scope="session", since="0.2.0")
    own = LimitsEntry(calls=1, scope="session")
    for policy, is_default in (
        (Policy(default_limits=(shipped,)), True),
        (Policy(limits=(own,)), False),
    ):
        session = Session(policy)
        assert session.limiter.ask("a", b"") is None
        held = session.limiter.ask("a", b"")
        assert held is not None
        assert held.of_default_policy is is_default

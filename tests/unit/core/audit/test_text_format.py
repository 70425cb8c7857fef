"""Output of audit records, one line each, and their filter."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.cli.common.output import ascii_json
from mcpwrap.core.audit.approval_rules_format import rule_line
from mcpwrap.core.audit.records import ApprovalAnswered, ApprovalRuleChanged, PinsChanged, Record
from mcpwrap.core.audit.text_format import (
    NOBODY,
    AuditLine,
    RecordFilter,
    answer,
    fields_of,
    line_of,
    moment,
    record_of,
    refusal,
)
from mcpwrap.core.egress.access_log import EgressEvent, from_kernel
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.audit_records import NASTY, NOW, record


def json_of(one: Record, agent: str, params: Json = None) -> str:
    return ascii_json(fields_of(one, agent, params))


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({}, "tools/call read_query"),
        ({"via": "3-\x1b1", "rule": "r"}, r"tools/call read_query  via 3-\x1b1  by r"),
        (
            {"id": 5, "rule": "no-x", "why": "Not x.", "us": 120},
            "tools/call read_query id=5  by no-x  (Not x.)  120 us",
        ),
        (
            {"approval": "a1b2", "by": "bob (web)"},
            "tools/call read_query  approval a1b2 by bob (web)",
        ),
        ({"project": "/home/alice/src/a"}, "tools/call read_query  in /home/alice/src/a"),
        (
            {"project": "/a  by no-x", "via": "12-6", "rule": "no-y"},
            r"tools/call read_query  via 12-6  in /a\x20\x20by\x20no-x  by no-y",
        ),
        ({"id": "a b", "target": "read query"}, r"tools/call read\x20query id=a\x20b"),
        ({"watched": ("one", "two")}, "tools/call read_query  watched by one  watched by two"),
        (
            {"sender": "server", "method": "sampling/createMessage", "target": ""},
            "from the server:  sampling/createMessage",
        ),
        ({"code": {}, "us": 9}, "tools/call read_query  no code  9 us"),
        (
            {"code": {"sha256": "0123456789abcdef" * 4, "size_bytes": 8}},
            "tools/call read_query  code 0123456789abcdef, 8 bytes",
        ),
        (
            {"code": {"sha256": "\x1b[2J", "timeout_s": 0, "files": 2, "packages": 1}},
            r"tools/call read_query  code \x1b[2J, 0 bytes, timeout 0 s, files 2, packages 1",
        ),
        ({"run": {"ending": "error"}}, "tools/call read_query  run: error"),
        (
            {"run": {"id": "01", "ending": "exit", "exit_code": 3, "duration_ms": 93}},
            "tools/call read_query  run 01: exit code 3, 93 ms",
        ),
        ({"run": {"ending": "exit"}}, "tools/call read_query  run: exit"),
        (
            {"run": {"ending": "output", "timeout_s": 60, "truncated": True}},
            "tools/call read_query  run: output, timeout 60 s, truncated",
        ),
        (
            {"sender": "server", "run": {"id": "a b\n", "ending": "x\x1b", "exit_code": 0}},
            r"from the server:  tools/call read_query  run a b\n: x\x1b, exit code 0",
        ),
        (
            {
                "run": {
                    "id": "00ff", "ending": "timeout", "exit_code": 137, "duration_ms": 60_021,
                    "killed": True,
                }
            },
            "tools/call read_query  run 00ff: timeout, exit code 137, 60021 ms, killed",
        ),
    ],
)  # fmt: skip
def test_a_line_has_the_decision(fields: dict[str, object], after: str) -> None:
    before = "2026-03-01T12:00:00.000+00:00  alice  sqlite  12-7"
    assert line_of(record(**fields), "alice") == AuditLine(before, "blocked", after)


TEXTS = ["project", "server", "session", "decision", "method", "target", "rule", "why", "id"]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("field", TEXTS)
def test_text_cannot_control_the_terminal(field: str, text: str) -> None:
    shown = line_of(record(**{field: text}, watched=[text]), text)
    for part in (shown.before, shown.decision, shown.after, json_of(record(), text)):
        assert part.isascii()
        assert part.isprintable()
    line = json_of(record(**{field: text}), text)
    assert line.isascii()
    assert line.isprintable()
    assert json.JSONDecoder().decode(line)[field] == text


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False))
def test_every_record_is_one_line(text: str, at: float) -> None:
    one = record(target=text, why=text, at=at)
    assert line_of(one, text).after.isprintable()
    assert line_of(one, text).before.isprintable()
    assert json_of(one, text).isprintable()


def test_json_has_all_fields_of_a_record() -> None:
    plain = msgspec.Raw('{"q": "\u2028",\r"x": 1}'.encode())
    fields = json.JSONDecoder().decode(json_of(msgspec.structs.replace(record(), plain=plain), "a"))
    assert fields.pop("plain") == {"q": "\u2028", "x": 1}
    assert fields.pop("agent") == "a"
    assert msgspec.convert(fields, Record) == record()
    run = {"id": "00ff", "ending": "exit", "exit_code": 0}
    assert fields_of(record(run=run), "a")["run"] == run
    code = {"sha256": "00", "size_bytes": 1}
    assert fields_of(record(code=code), "a")["code"] == code
    assert '"params":{"x":1}' in json_of(record(), "a", {"x": 1})


@pytest.mark.parametrize("plain", [b"{", b"[" * 9000, b"1e999", b'"\xff"'])
def test_unreadable_params_are_left_out(plain: bytes) -> None:
    forged = msgspec.structs.replace(record(), plain=msgspec.Raw(plain))
    assert json_of(forged, "a") == json_of(record(), "a")


@pytest.mark.parametrize(
    ("wanted", "fields", "is_one"),
    [
        (RecordFilter(), {}, True),
        (RecordFilter(server="sql*"), {}, True),
        (RecordFilter(server="sql"), {}, False),
        (RecordFilter(project="/a/*"), {"project": "/a/p/sub"}, True),
        (RecordFilter(project="/a/p"), {"project": "/a/p/sub"}, False),
        (RecordFilter(project="*"), {"project": "/a"}, True),
        (RecordFilter(project="*"), {}, False),  # the session saw no project
        (RecordFilter(tool="read_*"), {}, True),
        (RecordFilter(tool="read_*"), {"method": "tasks/result"}, True),  # its target is the tool
        (RecordFilter(tool="read_*"), {"method": "prompts/get"}, False),
        (RecordFilter(tool="*"), {"method": "prompts/get"}, False),
        (RecordFilter(decision="blocked"), {}, True),
        (RecordFilter(decision="block"), {}, False),
        (RecordFilter(uid=1000), {}, True),
        (RecordFilter(uid=0), {}, False),
        (RecordFilter(since=NOW, until=NOW), {}, True),
        (RecordFilter(since=NOW + 1), {}, False),
        (RecordFilter(until=NOW - 1), {}, False),
    ],
)
def test_the_filter_selects_records(
    wanted: RecordFilter, fields: dict[str, object], *, is_one: bool
) -> None:
    assert wanted.admits(record(**fields)) is is_one


def test_refused_egress_is_a_record_without_a_session() -> None:
    note = EgressEvent(at=NOW, server="git", destination="b.test:443", rule="host-not-allowed")
    shown = refusal(note)
    assert shown is not None
    assert (shown.uid, shown.decision, shown.method) == (NOBODY, "refused", "egress")
    assert line_of(shown, "-1") == AuditLine(
        "2026-03-01T12:00:00.000+00:00  -  git  -",
        "refused",
        "egress b.test:443  by host-not-allowed  (the host is not in `egress`)",
    )
    fields = json.JSONDecoder().decode(json_of(shown, "-1"))
    assert not {"agent", "uid"} & fields.keys()
    # The kernel's counts have no time, and allowed requests are not refusals.
    assert refusal(from_kernel("git", "10.0.0.5", "tcp", 5432, 3)) is None
    assert (
        refusal(EgressEvent(at=NOW, server="git", destination="b.test:443", rule="allowed")) is None
    )


ANSWERED = ApprovalAnswered(
    n=5, at=NOW, outcome="approved", approval="a1b2", uid=1001, pid=7, channel="web",
    proof="password", user="bob", server="sqlite", agent_uid=1000, target="drop", shown="00ff",
)  # fmt: skip


def test_an_approval_answer_is_a_record_without_a_session() -> None:
    assert line_of(answer(ANSWERED), "alice") == AuditLine(
        "2026-03-01T12:00:00.000+00:00  alice  sqlite  -",
        "approved",
        "approval drop  approval a1b2 by uid 1001 as bob (web, password)",
    )
    tried = ApprovalAnswered(
        n=6, at=NOW, outcome="refused", approval="x", uid=1000, pid=7, channel="command", why="gone"
    )
    shown = answer(tried)
    assert shown.uid == NOBODY  # no question was pending, so the agent is unknown
    assert line_of(shown, "?") == AuditLine(
        "2026-03-01T12:00:00.000+00:00  -  -  -",
        "refused",
        "approval  (gone)  approval x by uid 1000 (command)",
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            PinsChanged(
                n=5, at=NOW, outcome="accepted", server="git", before="a", after="b",
                names=("tool add", "prompt sum"), count=3, approval="a1b2", by="bob (command)",
            ),
            "accepted pins  (tool add, prompt sum and 1 more)  approval a1b2 by bob (command)",
        ),
        (
            PinsChanged(
                n=6, at=NOW, outcome="reset", server="git", before="", after="b", by="root",
            ),
            "reset pins  by root",
        ),
        (
            PinsChanged(
                n=7, at=NOW, outcome="first use", server="git", before="", after="a",
                names=("tool x",), count=1,
            ),
            "first use pins  (tool x)",
        ),
    ],
)  # fmt: skip
def test_a_change_of_pins_is_a_record_without_a_session(change: PinsChanged, line: str) -> None:
    shown = line_of(record_of(change), "?")
    assert shown.before == "2026-03-01T12:00:00.000+00:00  -  git  -"
    assert f"{shown.decision} {shown.after}" == line


RULE = ApprovalRuleChanged(
    n=5, at=NOW, outcome="saved", rule="7f3a", server="todo", agent_uid=1000, method="tools/call",
    target="delete_item", approval="a1b2", by="bob (command)", ticked=("id", "\x1b"), until=NOW,
    times=20, session="12-1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            RULE,
            (
                "saved approval-rule delete_item  (7f3a: until 2026-03-01T12:00+00:00, 20 times, "
                r"in session 12-1, id, \x1b may diff...)  approval 7f3a by bob (command)"
            ),
        ),
        (
            msgspec.structs.replace(
                RULE, outcome="used up", by="", ticked=(), until=0.0, times=0, session=""
            ),
            "used up approval-rule delete_item  (7f3a: equal calls)",
        ),
    ],
)
def test_a_change_of_an_approval_rule_is_a_record_without_a_session(
    change: ApprovalRuleChanged, line: str
) -> None:
    shown = line_of(record_of(change), "alice")
    assert shown.before == "2026-03-01T12:00:00.000+00:00  alice  todo  -"
    assert f"{shown.decision} {shown.after}" == line
    journal = rule_line(change)
    assert journal.startswith(f"approval rule 7f3a for delete_item of 'todo' {change.outcome}")
    assert journal.isprintable()


def test_an_answer_is_still_a_record() -> None:
    assert record_of(ANSWERED) == answer(ANSWERED)


@pytest.mark.parametrize("text", NASTY)
def test_an_answer_cannot_control_the_terminal(text: str) -> None:
    tried = msgspec.structs.replace(
        ANSWERED, approval=text, channel=text, user=text, why=text, target=text, server=text
    )
    shown = line_of(answer(tried), text)
    for part in (shown.before, shown.decision, shown.after):
        assert part.isascii()
        assert part.isprintable()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("0s", NOW),
        ("10m", NOW - 600),
        ("2h", NOW - 7200),
        ("3d", NOW - 3 * 86400),
        ("1w", NOW - 7 * 86400),
        ("2026-03-01T12:00", NOW),
        ("2026-03-01T13:00+01:00", NOW),
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01", NOW - 12 * 3600),
    ],
)
def test_times_are_spans_or_iso_8601(text: str, at: float) -> None:
    assert moment(text, NOW) == at


@pytest.mark.parametrize("text", ["", "10", "10M", "m", "-1h", "1.5h", "yesterday", "9999999s"])
def test_other_texts_are_not_times(text: str) -> None:
    with pytest.raises(ValueError, match="isoformat"):
        moment(text, NOW)

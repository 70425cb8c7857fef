"""Policy enforcement by the installed gate: an agent gets nothing that the operator forbids."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.shared import pace
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.gate import judged
from tests.system.gate.judged import await_news, begin, call, opened, put, reason_of
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = judged.booted

POLICY = """
version: 1
limits:
  - {server: sqlite, tool: "list_*", identical_calls: 3, cool_down: 1h}
  - {server: other, tool: run, identical_calls: 3, cool_down: 1h}
  - {server: probe, calls: 3/h}
rules:
  - name: no-unbounded-select
    server: "sqlite*"
    tool: read_query
    when: [{arg: query, sql: unbounded_select}]
    action: block
    message: Add a LIMIT.
  - name: no-delete-of-everything
    tool: write_query
    when: [{arg: query, sql: delete_without_where}]
    action: block
  - {name: no-insights, server: sqlite, tool: append_insight, action: hide}
default_policy: disabled
"""
NO_RULES = "version: 1\ndefault_policy: disabled\n"
NO_LIMIT = "Refused by mcpwrap (rule no-unbounded-select). Add a LIMIT. [E-CALL-BLOCKED]"

NO_DELETE = "Refused by mcpwrap (rule no-delete-of-everything). [E-CALL-BLOCKED]"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the rules above in force, with new counts."""
    begin(machine, POLICY)
    return machine


# ------------------------------------------------------------------------------------------ SQL
GROWING = "SELECT 0, '' UNION ALL SELECT n + 1, s || (SELECT name FROM t LIMIT 1 OFFSET n) FROM r"
UNBOUNDED = [
    "SELECT * FROM t",
    "select id from t",
    "SeLeCt/**/*/**/FROM t -- LIMIT 5",
    "SELECT * FROM t /* LIMIT 5 */",
    "WITH x AS (SELECT * FROM t LIMIT 5) SELECT * FROM t",
    "WITH x AS (SELECT * FROM t) SELECT * FROM x",
    "SELECT * FROM t LIMIT -1",
    "SELECT * FROM t LIMIT 5 UNION ALL SELECT * FROM t",
    "SELECT * FROM (SELECT * FROM t)",
    "\ufeffSELECT * FROM t",
    "\n\t;SELECT * FROM t",
    'SELECT * FROM "t"',
    "SELECT ' LIMIT 5' FROM t",
    f"WITH r(n, s) AS ({GROWING}) SELECT s FROM r ORDER BY n DESC LIMIT 1",
    "SELECT json_group_array(name) FROM t LIMIT 1",
]
BOUNDED = ["SELECT * FROM t LIMIT 5", "SELECT count(*) FROM t", "select 1 + 1"]


def test_an_unbounded_select_does_not_reach_the_server(machine: Machine) -> None:
    with opened(machine) as session:
        for query in UNBOUNDED:
            assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT, query
        for query in BOUNDED:
            assert call(session, "read_query", query=query).startswith("[{"), query


def test_escapes_of_json_hide_nothing(machine: Machine) -> None:
    r"""\u0053ELECT is SELECT, and so are its names and its tool; another key is not an argument."""
    with opened(machine) as session:
        for name, arguments in (
            ("read_query", '{"query":"\\u0053ELECT * FROM t"}'),
            ("\\u0072ead_query", '{"query":"SELECT\\u0020* FROM t"}'),
            ("read_query", '{"\\u0071uery":"SELECT * FROM t"}'),
            ("read_query", '{"Query":"SELECT * FROM t"}'),
            ("read_query", "{}"),
        ):
            assert session.process.stdin
            params = f'{{"name":"{name}","arguments":{arguments}}}'
            line = f'{{"jsonrpc":"2.0","id":99,"method":"tools\\/call","params":{params}}}\n'
            session.process.stdin.write(line.encode())
            session.process.stdin.flush()
            answer = session.answer_to(99)
            assert reason_of(answer["result"]["content"][0]["text"]) == NO_LIMIT, line


def test_nothing_is_deleted_without_where(machine: Machine) -> None:
    with opened(machine) as session:
        for query in ("DELETE FROM t", "delete from t where 1", "DELETE FROM t -- WHERE id = 1"):
            told = reason_of(call(session, "write_query", query=query))
            assert told == NO_DELETE, query
        assert call(session, "read_query", query="SELECT count(*) AS n FROM t") == "[{'n': 100}]"
        told = call(session, "write_query", query="DELETE FROM t WHERE id = 99")  # the twin
        assert told == "[{'affected_rows': 1}]"
        call(session, "write_query", query="INSERT INTO t VALUES (99, 'n99')")


def test_a_hidden_tool_is_neither_listed_nor_callable(machine: Machine) -> None:
    insight = {"name": "append_insight", "arguments": {"insight": "mine"}}
    with opened(machine) as session:
        listed = session.answer_to(session.request("tools/list"))["result"]["tools"]
        error = session.answer_to(session.request("tools/call", insight))["error"]
    assert "read_query" in {tool["name"] for tool in listed}
    assert "append_insight" not in {tool["name"] for tool in listed}
    assert error == {"code": -32602, "message": "Unknown tool: append_insight"}
    put(machine, NO_RULES)
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:  # the twin
        listed = session.answer_to(session.request("tools/list"))["result"]["tools"]
        assert "append_insight" in {tool["name"] for tool in listed}
        assert call(session, "append_insight", insight="mine") == "Insight added to memo"


@only_in_test_all("mutation twin: shows that what is refused above would arrive")
def test_without_the_judge_all_of_it_arrives(machine: Machine) -> None:
    """The mechanism taken away: the server would have done what is refused above."""
    refuses = "    if judgement.decision is Decision.BLOCK:\n"
    always = ("core/gate/from_agent", refuses, "    if False:\n")
    with machine.patched(*always), opened(machine) as session:
        for query in UNBOUNDED[:4]:
            assert call(session, "read_query", query=query).startswith("[{"), query


# --------------------------------------------------------------------------------------- limits
SAME = "this call had the same answer 3 times in 10 min"
OPEN = f"Refused by mcpwrap: {SAME}"  # and the seconds until a retry
TABLES = "[{'name': 't'}]"


def until_it_goes(session: Session) -> str:
    """Call until it is not refused any more; refused calls do not count."""
    while (told := call(session, "list_tables")).startswith("Refused"):
        assert SAME in told
    return told


def test_a_loop_in_one_session_is_broken_and_goes_on_after_the_cool_down(machine: Machine) -> None:
    put(machine, POLICY.replace("cool_down: 1h", f"cool_down: {math.ceil(pace.promised(2.0))}s"))
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:
        told = [call(session, "list_tables").split(";")[0] for _ in range(5)]
        assert told == [TABLES] * 3 + [OPEN] * 2
        assert until_it_goes(session) == TABLES
        assert until_it_goes(session) == TABLES  # once in a cool-down, while the answer is the same
        assert call(session, "list_tables").startswith(OPEN)
        assert call(session, "describe_table", table_name="t").startswith("[{")  # another call
        told = [call(session, "list_tables").split(";")[0] for _ in range(4)]
        assert told == [TABLES] * 3 + [OPEN]  # it ends the loop


def run(session: Session, code: str = "result = 'here'") -> str:
    """Have the probe run the same code as ever; return its result, or why it is refused."""
    session.ask(code)
    result = session.receive()["result"]
    return str(result.get("told") or result["content"][0]["text"].split(";")[0])


def test_a_poll_whose_answer_changes_is_no_loop(machine: Machine) -> None:
    with opened(machine, "other") as session:
        times = [run(session, "import time; result = str(time.time_ns())") for _ in range(9)]
        assert len(set(times)) == 9
        assert not any(map(OPEN.startswith, times))
        assert [run(session) for _ in range(4)] == ["here"] * 3 + [OPEN]  # the twin


def test_a_loop_over_16_sessions_is_one_loop(machine: Machine) -> None:
    sessions = [opened(machine, "other") for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(run, sessions))
        list(pool.map(Session.close, sessions))
    assert sorted(told) == [OPEN] * 13 + ["here"] * 3


def test_a_loop_of_reconnections_is_one_loop(machine: Machine) -> None:
    told = []
    for _ in range(5):
        with opened(machine, "other") as session:
            told.append(run(session))
    assert told == ["here"] * 3 + [OPEN] * 2


def test_a_rate_is_counted_for_each_agent_and_server(machine: Machine) -> None:
    def told(user: str, name: str) -> list[object]:
        with machine.session(name, user=user) as session:
            answers = []
            for n in range(4):
                session.ask(f"result = {n}")
                answers.append(session.receive()["result"])
            return [a.get("told", a.get("isError")) for a in answers]

    assert told("alice", "probe") == [0, 1, 2, True]
    assert told("alice", "probe") == [True] * 4  # a new session, and the same agent
    assert told("bob", "probe") == [0, 1, 2, True]
    assert told("alice", "other") == [0, 1, 2, 3]


# --------------------------------------------------------------------------------------- reload
def test_a_valid_policy_holds_from_the_next_message_and_a_broken_one_changes_nothing(
    machine: Machine,
) -> None:
    query = "SELECT * FROM t"
    with opened(machine) as session:
        assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT
        put(machine, POLICY.replace("action: block", "action: blok"))
        with pytest.raises(CommandFailedError):
            machine.as_root("systemctl reload mcpwrap-gate")
        machine.announce("Reload failed|Failed to reload")
        await_news(machine, "/etc/mcpwrap/policy.yaml:12:13", "nothing was changed")
        assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT
        put(machine, NO_RULES)
        machine.as_root("mkdir -m 700 /etc/mcpwrap/policy.d")  # the gate cannot read its content
        with pytest.raises(CommandFailedError):
            machine.as_root("systemctl reload mcpwrap-gate")
        machine.as_root("rmdir /etc/mcpwrap/policy.d")
        assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT
        put(machine, POLICY.replace("action: block", "action: blok"))
        machine.as_root("kill -HUP $(systemctl show -P MainPID mcpwrap-gate)")  # without a check
        await_news(machine, "/etc/mcpwrap/policy.yaml:12:13")
        assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT
        put(machine, POLICY.replace("Add a LIMIT.", "Ask for less."))
        machine.as_root("systemctl reload mcpwrap-gate")
        assert "Ask for less." in reason_of(call(session, "read_query", query=query))
        put(machine, NO_RULES)
        machine.as_root("systemctl reload mcpwrap-gate")
        assert call(session, "read_query", query=query).startswith("[{")
        put(machine, POLICY)
        machine.as_root("systemctl reload mcpwrap-gate")
        assert reason_of(call(session, "read_query", query=query)) == NO_LIMIT


def test_a_gate_that_starts_with_a_broken_policy_lets_nobody_in(machine: Machine) -> None:
    put(machine, "version: 1\nrules: [")
    machine.as_root("systemctl restart mcpwrap-gate")
    machine.announce("mcpwrap-gate")
    refused = machine.as_user("alice", "mcpwrap-connect sqlite", status=69).err
    assert "`mcpwrap policy check` lists them" in refused
    checked = json.loads(machine.as_user("alice", "mcpwrap policy check --json", status=2).out)
    assert checked
    put(machine, POLICY)
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:
        assert call(session, "read_query", query=BOUNDED[0]).startswith("[{")


GONE = "/etc/mcpwrap/policy.d/10-sqlite.yaml"
OF_SQLITE = """
version: 1
rules:
  - name: no-unbounded-select
    server: sqlite
    tool: read_query
    when: [{arg: query, sql: unbounded_select}]
    action: block
    message: Add a LIMIT.
"""
UNBOUNDED_SELECT = "SELECT * FROM t"


def test_a_policy_that_is_gone_is_no_empty_policy(machine: Machine) -> None:
    put(machine, NO_RULES)
    machine.write(GONE, OF_SQLITE)
    machine.apply()
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:
        assert reason_of(call(session, "read_query", query=UNBOUNDED_SELECT)) == NO_LIMIT
        machine.as_root(f"rm {GONE}")
        machine.announce("Reload failed|Failed to reload|mcpwrap-gate")
        with pytest.raises(CommandFailedError):
            machine.as_root("systemctl reload mcpwrap-gate")
        assert reason_of(call(session, "read_query", query=UNBOUNDED_SELECT)) == NO_LIMIT
        assert "the gate keeps the policy that it has read, or refuses" in status_of(machine)
    with opened(machine) as session:  # a new one too
        assert reason_of(call(session, "read_query", query=UNBOUNDED_SELECT)) == NO_LIMIT
    machine.as_root("systemctl restart mcpwrap-gate")
    refused = machine.as_user("alice", "mcpwrap-connect sqlite", status=69).err
    assert refused.startswith(f"mcpwrap-connect: its policy {GONE} is gone")
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")  # it never had one
    assert f"sqlite: its policy {GONE} is gone" in status_of(machine)
    assert f"its policy {GONE} is gone" in machine.as_user("alice", "mcpwrap plan", status=10).out
    checks = json.loads(machine.as_root("mcpwrap doctor probe --json", status=1).out)
    assert "sqlite: policy" in {c["what"] for c in checks if c["state"] == "failed"}
    assert f"its policy {GONE} is gone" in machine.apply()
    with opened(machine) as session:  # the twin: root has seen it
        assert call(session, "read_query", query=UNBOUNDED_SELECT).startswith("[{")
    machine.as_user("alice", "mcpwrap status")
    put(machine, POLICY)


def test_where_others_can_remove_a_policy_none_is_taken(machine: Machine) -> None:
    put(machine, NO_RULES)
    machine.write(GONE, OF_SQLITE)
    machine.as_root("chmod 777 /etc/mcpwrap/policy.d")
    machine.as_user("bob", f"rm -f {GONE}")
    machine.announce("mcpwrap-gate")
    machine.as_root("systemctl restart mcpwrap-gate")
    refused = machine.as_user("alice", "mcpwrap-connect sqlite", status=69).err
    why = "/etc/mcpwrap/policy.d: accounts other than root can change its content (mode 0777)"
    assert why in refused
    assert why in machine.as_root("mcpwrap apply", status=2).err
    assert why in status_of(machine)
    machine.as_root("chmod 755 /etc/mcpwrap/policy.d")
    machine.write(GONE, OF_SQLITE)
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:  # the twin
        assert reason_of(call(session, "read_query", query=UNBOUNDED_SELECT)) == NO_LIMIT
    machine.as_root(f"rm {GONE}; mcpwrap apply; systemctl reload mcpwrap-gate")
    put(machine, POLICY)


def status_of(machine: Machine) -> str:
    """Return the output of `mcpwrap status` for any account, besides the table."""
    return machine.as_user("alice", "mcpwrap status", status=1).err

"""Default policy of a machine whose operator wrote no policy, and of `mcpwrap run`."""

from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.default_policy import guarded
from tests.system.default_policy.guarded import (
    APPROVE,
    ARRIVED,
    DISABLED,
    NO_APPROVER,
    NOBODY,
    Call,
    Json,
    approver,
    arrived,
    await_call,
    call,
    fill,
    opened,
    put,
    rows,
    tour,
    tour_of_run,
)  # fmt: skip
from tests.system.default_policy.incidents import INCIDENTS, WITHOUT_RULE
from tests.system.support.approvers import decisions, meanwhile
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = guarded.booted
pytestmark = ON_ONE_RELEASE
BLOCKED = "E-CALL-BLOCKED"
META = "org.mcpwrap/refusal"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend it without a policy of the operator's, and with new counts and tables."""
    put(machine)
    fill(machine)
    return machine


# ------------------------------------------------------------------------------------------- SQL
def read(query: str) -> Call:
    return "read_query", {"query": query}


def write(query: str) -> Call:
    return "write_query", {"query": query}


# By the rule of each: calls of the seed's examples, and calls that look like these.
SQL: dict[str, tuple[Call, ...]] = {
    "unbounded-select": (
        read("SELECT * FROM t"),
        read("SELECT id, name FROM t WHERE name LIKE 'n%'"),
    ),
    "sql-delete": (
        write("DELETE FROM t WHERE id = 3"),
        write("WITH x AS (SELECT 4 AS id) DELETE FROM t WHERE id IN x"),
    ),
    "sql-drop": (write("DROP TABLE u"), write("TRUNCATE TABLE t")),
    "sql-alter": (write("ALTER TABLE t ADD COLUMN age INTEGER"),),
}
TWINS = (
    read("SELECT * FROM t LIMIT 5"),
    read("SELECT name FROM t WHERE id = 5"),
    read("SELECT count(*) FROM t"),
    read("SELECT name FROM sqlite_master WHERE type = 'table'"),
    write("INSERT INTO t VALUES (1000, 'deleted')"),
    write("UPDATE t SET name = 'dropped' WHERE id = 1"),
    write("REINDEX"),  # which no rule can judge
    ("create_table", {"query": "CREATE TABLE IF NOT EXISTS v (id INTEGER)"}),
    ("append_insight", {"insight": "delete from the shelf what is over, and drop the rest"}),
)
REFUSED = tuple((rule, each) for rule, calls in SQL.items() for each in calls)


def is_by(result: Json, rule: str, code: str) -> bool:
    """Return whether a result is a refusal by this rule of the default policy, with this code."""
    text, told = result["text"], result["meta"].get(META, {})
    says = text.startswith("Refused by mcpwrap (") and f"rule default.{rule})" in text
    has_both = (told.get("code"), told.get("rule")) == (code, f"default.{rule}")
    return bool(result["is_error"] and says and code in text and has_both)


def test_without_a_policy_file_a_database_is_guarded(machine: Machine) -> None:
    found = tour(machine, [each for _, each in REFUSED], server="sqlite")
    for (rule, each), result in zip(REFUSED, found, strict=True):
        code = BLOCKED if rule == "unbounded-select" else NOBODY
        assert is_by(result, rule, code), (each, result)
        if code == BLOCKED:
            assert "LIMIT" in result["text"]  # what would pass
        else:
            assert "sudo usermod -aG mcpwrap-approvers USER" in result["text"]
            assert "sudo mcpwrap approvals passwd alice" in result["text"]
    assert rows(machine, "SELECT count(*) FROM t") == [[100]]
    assert rows(machine, "SELECT count(*) FROM u") == [[0]]
    passed = tour(machine, TWINS, server="sqlite")
    assert [result["text"] for result in passed if "Refused" in result["text"]] == []
    assert [each for each, result in zip(TWINS, passed, strict=True) if result["is_error"]] == []
    assert rows(machine, "SELECT name FROM t WHERE id = 1") == [["dropped"]]


def test_a_refusal_has_its_code_for_programs_too(machine: Machine) -> None:
    """Not as the result of a tool with an output schema, which clients compare it with."""
    (held,) = tour(machine, [INCIDENTS[0].harmful])
    told = {"code": NOBODY, "rule": "default.delete-tools"}
    assert told.items() <= held["meta"][META].items()
    assert told.items() <= held["structured"]["mcpwrap"].items()
    drop: Call = ("run_report", {"sql": "DROP TABLE t"})
    count: Call = ("run_report", {"sql": "SELECT count(*) FROM t"})
    held, passed = tour(machine, [drop, count])
    assert held["meta"][META]["code"] == NOBODY
    assert held["structured"] == {}
    assert passed["structured"] == {"did": "run_report"}


def test_where_an_approver_is_set_up_it_waits_and_runs(machine: Machine) -> None:
    """By the command of the refusal, while the session goes on."""
    tool, arguments = write("DELETE FROM t WHERE id = 3")
    with opened(machine, "sqlite") as session:
        told = call(session, tool, arguments)
        assert NOBODY in told
        assert "sudo usermod -aG mcpwrap-approvers USER" in told
        with approver(machine), meanwhile(machine, APPROVE) as answered:
            told = await_call(session, tool, arguments, other_than=NOBODY)
        assert "'affected_rows': 1" in told
        assert answered[0].endswith(" is approved")
    assert rows(machine, "SELECT count(*) FROM t WHERE id = 3") == [[0]]
    said = [one["decision"] for one in decisions(machine, "--tool write_query")]
    assert said[-2:] == ["held", "approved"]


def test_with_the_default_policy_disabled_the_database_does_all_of_it(machine: Machine) -> None:
    """The mechanism taken away."""
    put(machine, DISABLED)
    found = tour(machine, [each for _, each in REFUSED], server="sqlite")
    assert [result["text"] for result in found if "Refused" in result["text"]] == []
    assert "n99" in found[0]["text"]
    assert rows(machine, "SELECT count(*) FROM t") == [[98]]
    assert rows(machine, "SELECT count(*) FROM sqlite_master WHERE name = 'u'") == [[0]]
    assert rows(machine, "SELECT count(age) FROM t") == [[0]]


# ------------------------------------------------------------------------------------- incidents
HARMFUL = [incident.harmful for incident in INCIDENTS]
ORDINARY = [incident.ordinary for incident in INCIDENTS]


def assert_held(found: list[Json], code: str = NOBODY) -> None:
    """Check the results of the harmful calls, and of `arrived` after them."""
    for incident, result in zip(INCIDENTS, found, strict=False):
        assert is_by(result, incident.rule, code), (incident, result)
    assert arrived(found[-1]) == []


def assert_arrived(found: list[Json], calls: list[Call]) -> None:
    """Check the results of calls, and of `arrived` after them."""
    assert [result["text"] for result in found if "Refused" in result["text"]] == []
    assert arrived(found[-1]) == calls


def test_what_happened_to_people_does_not_reach_the_server(machine: Machine) -> None:
    assert_held(tour(machine, [*HARMFUL, ARRIVED]))
    assert_arrived(tour(machine, [*ORDINARY, ARRIVED]), ORDINARY)


@only_in_test_all("mutation twin: shows that what is refused above would arrive")
def test_with_the_default_policy_disabled_all_of_it_arrives(machine: Machine) -> None:
    """The mechanism taken away."""
    put(machine, DISABLED)
    assert_arrived(tour(machine, [*HARMFUL, ARRIVED]), HARMFUL)


USERS = "/home/alice/.config/mcpwrap/policy.yaml"


def test_with_mcpwrap_run_it_does_not_reach_the_server_either(machine: Machine) -> None:
    assert_held(tour_of_run(machine, [*HARMFUL, ARRIVED]), NO_APPROVER)
    assert_arrived(tour_of_run(machine, [*ORDINARY, ARRIVED]), ORDINARY)
    machine.as_user("alice", f"mkdir -p $(dirname {USERS}); printf '{DISABLED}' > {USERS}")
    try:  # the mechanism taken away
        assert_arrived(tour_of_run(machine, [*HARMFUL, ARRIVED]), HARMFUL)
    finally:
        machine.as_root(f"rm {USERS}")


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_what_mcpwrap_run_refuses_says_how_its_user_permits_it(machine: Machine) -> None:
    push = next(each for each in INCIDENTS if each.rule == "force-push").harmful
    (refused,) = tour_of_run(machine, [push])
    command = "mcpwrap policy default disable force-push --server workshop --user"
    assert command in refused["text"]
    machine.as_user("alice", command)
    try:
        assert_arrived(tour_of_run(machine, [push, ARRIVED]), [push])
        destroy = next(each for each in INCIDENTS if each.rule == "infrastructure-destroy").harmful
        assert arrived(tour_of_run(machine, [destroy, ARRIVED])[-1]) == []  # another rule
    finally:
        machine.as_user("alice", command.replace("disable", "enable"))
    assert arrived(tour_of_run(machine, [push, ARRIVED])[-1]) == []


def test_two_incidents_have_no_rule(machine: Machine) -> None:
    """What the default policy does not hold: these look like ordinary calls."""
    calls: list[Any] = [*WITHOUT_RULE]
    assert_arrived(tour(machine, [*calls, ARRIVED]), calls)

"""Rules that ask for approval of a call, and the arguments that they are about."""

from typing import Final

import pytest

from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS
from mcpwrap.core.policy.compiled import CALL, compile_policy
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Equals,
    Matches,
    NegatedCondition,
    Policy,
    Rule,
    Shell,
    Sql,
)
from mcpwrap.core.protocol.json_value import Json

ASK: Final = "allow_with_approval"
ALL = Rule(name="all", tools=("*",), action=ASK)
FORCE = Rule(name="force", tools=("*",), action=ASK,
             when=(ArgumentCondition("force", Equals("true")),))  # fmt: skip
INNER = Rule(name="inner", tools=("*",), action=ASK,
             when=(ArgumentCondition("a.b[0]", Matches("x")),
                   NegatedCondition(ArgumentCondition("c", Equals("1")))))  # fmt: skip
DROP = Rule(name="drop", tools=("*",), action=ASK,
            when=(ArgumentCondition(SQL_ARGUMENTS, Sql("drop", "any")),))  # fmt: skip
DELETE = Rule(name="default.recursive-delete", tools=("*",), action=ASK,
              when=(ArgumentCondition(SHELL_ARGUMENTS, Shell("deletes_outside")),))  # fmt: skip
PUSH = Rule(name="push", tools=("*",), action=ASK,
            when=(ArgumentCondition(SHELL_ARGUMENTS, Shell("runs", ("git push",))),))  # fmt: skip
TABLE: list[tuple[tuple[Rule, ...], Json, AskingRules]] = [
    ((ALL,), {"id": 1}, AskingRules(rules=("all",))),
    ((FORCE,), {"force": False}, AskingRules()),
    ((FORCE, ALL), {"force": True}, AskingRules(rules=("force", "all"), deciding=("force",))),
    ((INNER,), {"a": {"b": ["x"]}, "c": 2},
     AskingRules(rules=("inner",), deciding=("a", "c"))),
    ((DROP,), {"sql": "DROP TABLE t", "db": "x"},
     AskingRules(rules=("drop",), deciding=("sql",), exact=("sql",))),
    ((DROP,), {"db": "x", "inner": {"sql": "DROP TABLE t"}},
     AskingRules(rules=("drop",), deciding=("inner",), exact=("inner",))),
    ((DROP,), {"sql query": "DROP TABLE t"},  # not a path
     AskingRules(rules=("drop",), deciding=("sql query",), exact=("sql query",))),
    ((PUSH,), {"command": "git", "args": ["push", "-f"], "cwd": "/"},
     AskingRules(rules=("push",), deciding=("command", "args"), exact=("command", "args"))),
    ((FORCE, DROP), {"force": True, "sql": "DROP TABLE t"},
     AskingRules(rules=("force", "drop"), deciding=("sql", "force"), exact=("sql",))),
    ((DELETE,), {"command": "rm -rf /etc", "cwd": "/"},
     AskingRules(rules=("default.recursive-delete",), deciding=("command",),
                 exact=("command", "cwd"))),
    ((DROP,), {"sql": 5}, AskingRules()),
    ((ALL,), "x", AskingRules(rules=("all",))),
    ((DROP,), ["DROP TABLE t"], AskingRules()),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "arguments", "asking"), TABLE)
def test_rules_that_ask(rules: tuple[Rule, ...], arguments: Json, asking: AskingRules) -> None:
    policy = compile_policy(Policy(rules=rules), "s")
    assert policy.asking(CALL, {"name": "execute_command", "arguments": arguments}) == asking


def test_rules_on_a_method_ask_about_params() -> None:
    rule = Rule(name="read", methods=("resources/read",), action=ASK,
                when=(ArgumentCondition("uri", Matches("secret")),))  # fmt: skip
    policy = compile_policy(Policy(rules=(rule,)), "s")
    assert policy.asking("resources/read", {"uri": "x://secret"}) == AskingRules(
        rules=("read",), deciding=("uri",)
    )
    assert policy.asking("resources/read", {"uri": "x://y"}) == AskingRules()

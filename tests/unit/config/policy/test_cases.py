"""Policy cases: parsed like a policy, and each error is reported with its place."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.core.policy.cases import Case, ExpectedResult
from mcpwrap.core.protocol.json_value import Json

RIGHT = """
- {name: one, server: s, tool: t, arguments: {a: 1}, expect: block, rule: r}
- {server: s, project: /a/b, tool: t, expect: hidden}
- {server: s, method: resources/read, params: {uri: x}, expect: needs-approval, rule: ""}
- {server: s, tool: t, result: [1], expect: allow}
- {server: s, tool: t, result: null, becomes: 5, expect: allow}
"""


def test_what_a_case_says() -> None:
    of_tool: dict[str, Json] = {"name": "t", "arguments": {}}
    assert parse_cases(SourceFile("f", RIGHT.encode())) == (
        Case(
            name="one",
            server="s",
            method="tools/call",
            params={"name": "t", "arguments": {"a": 1}},
            expect="block",
            rule="r",
        ),
        Case(
            name="line 3",
            server="s",
            project="/a/b",
            method="tools/call",
            params=of_tool,
            expect="hidden",
        ),
        Case(
            name="line 4",
            server="s",
            method="resources/read",
            params={"uri": "x"},
            expect="needs-approval",
            rule="",
        ),
        Case(
            name="line 5",
            server="s",
            method="tools/call",
            params=of_tool,
            expect="allow",
            result=ExpectedResult(value=[1], becomes=[1]),
        ),
        Case(
            name="line 6",
            server="s",
            method="tools/call",
            params=of_tool,
            expect="allow",
            result=ExpectedResult(value=None, becomes=5),
        ),
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "the file is empty"),
        ("a: 1", 1, 1, "not a list of cases"),
        ("- 5", 1, 3, "a single value where a case belongs"),
        ("- {tool: t, expect: allow}", 1, 3, "without `server`"),
        ("- {server: s, tool: t}", 1, 3, "without `expect`"),
        ("- {server: s, expect: allow}", 1, 3, "needs either `tool` or `method`"),
        ("- {server: s, tool: t, expect: maybe}", 1, 32, "is not an outcome"),
        ("- {server: s, tool: t, expect: allow, becomes: 1}", 1, 39, "`becomes` without `result`"),
        ("- {server: s, method: a/b, params: 5, expect: allow}", 1, 28, "`params` is not a table"),
        ("- {server: s, tool: t, args: {}, expect: allow}", 1, 24, "has no key 'args'"),
        ("- {server: s, tool: no, expect: allow}", 1, 21, "to some readers"),
    ],
)
def test_what_is_wrong(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_cases(SourceFile("f", text.encode()))
    [flaw] = caught.value.flaws
    assert (flaw.mark.line, flaw.mark.column) == (line, column)
    assert problem in flaw.problem

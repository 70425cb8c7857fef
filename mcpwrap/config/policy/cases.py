"""Parser of the test cases of a policy, from YAML."""

from collections.abc import Sequence
from typing import cast

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import Flaw, PolicyError
from mcpwrap.config.policy.value_parsers import word
from mcpwrap.config.policy.yaml_table import YamlTableReader
from mcpwrap.config.policy.yaml_tree import Items, Node, read_tree
from mcpwrap.config.value_parsers import absolute_path
from mcpwrap.core.policy.cases import Case, Expected, ExpectedResult
from mcpwrap.core.policy.compiled import CALL
from mcpwrap.core.protocol.json_value import Json

KEYS = (
    "name", "server", "project", "tool", "arguments", "method", "params", "result", "becomes",
    "expect", "rule",
)  # fmt: skip


def parse_cases(file: SourceFile) -> tuple[Case, ...]:
    """Return the cases of a file.

    Raises:
        PolicyError: with every flaw of the file.
    """
    flaws: list[Flaw] = []
    tree = read_tree(file.name, file.content, flaws)
    cases = [_case(node, flaws) for node in _items(tree, flaws)]
    if flaws:
        raise PolicyError(sorted(flaws, key=lambda flaw: (flaw.mark.line, flaw.mark.column)))
    return tuple(case for case in cases if case is not None)


def _items(tree: Node | None, flaws: list[Flaw]) -> Sequence[Node]:
    if isinstance(tree, Items):
        return tree.items
    if tree is not None:
        flaws.append(
            Flaw(
                tree.mark, "not a list of cases", "write `- server: …` lines", code="E-POLICY-CASES"
            )
        )
    return ()


def _case(node: Node, flaws: list[Flaw]) -> Case | None:
    fields = YamlTableReader(node, "a case", flaws)
    if not fields.is_table:
        return None
    _expect_whole(fields)
    tool, method = fields.text("tool", str), fields.text("method", str)
    given = fields.json("params" if method else "arguments") or ({},)
    case = Case(
        name=fields.text("name", str) or f"line {node.mark.line}",
        server=fields.text("server", str) or "",
        project=fields.text("project", absolute_path) or "",
        method=method or CALL,
        params=_object(given[0], fields) if method else {"name": tool, "arguments": given[0]},
        result=_result(fields),
        expect=cast(Expected, fields.text("expect", word(Expected, "an outcome")) or "allow"),
        rule=fields.text("rule", str),
    )
    fields.finish(KEYS)
    return case


def _expect_whole(fields: YamlTableReader) -> None:
    for key in ("server", "expect"):
        if not fields.has(key):
            fields.note(
                "", f"a case without `{key}`", f"write `{key}: …`", code="E-POLICY-CASE-INCOMPLETE"
            )
    if fields.has("tool") == fields.has("method"):
        fields.note(
            "method",
            "needs either `tool` or `method`, not both",
            "write `tool: …` or `method: …`",
            code="E-POLICY-TOOL-OR-METHOD",
        )
    if fields.has("becomes") and not fields.has("result"):
        fields.note(
            "becomes",
            "`becomes` without `result`",
            "write `result: …`, the result that the server sends",
            code="E-POLICY-CASE-INCOMPLETE",
        )


def _object(value: Json, fields: YamlTableReader) -> dict[str, Json]:
    if isinstance(value, dict):
        return value
    fields.note(
        "params", "`params` is not a table", "write `params: {uri: …}`", code="E-POLICY-TYPE"
    )
    return {}


def _result(fields: YamlTableReader) -> ExpectedResult | None:
    result, becomes = fields.json("result"), fields.json("becomes")
    if result is None:
        return None
    return ExpectedResult(value=result[0], becomes=result[0] if becomes is None else becomes[0])

"""Approval question for tests."""

from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_value import Json


def question(params: dict[str, Json]) -> Question:
    return Question(
        agent_uid=1000,
        server="sqlite",
        method="tools/call",
        target="t",
        definition="",
        params=params,
        policy="12ab",
    )

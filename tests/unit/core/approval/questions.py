"""Approval questions and rules for tests."""

from hypothesis import strategies as st

from mcpwrap.core.approval.approval_rule import ApprovalRule, TickedArgument
from mcpwrap.core.approval.document import Question, document
from mcpwrap.core.protocol.json_value import Json

SNEAKY = "\u202e\u2066\u200b\u200d\u2060\ufeff\u00ad\u3164\u034f\ufe0f\U000e0041\u2028\u00a0\u3000"
SNEAKY += "\x00\x07\x1b\x7f\x9b\r\n\t\\\"'/nux0a e\u0301é😀"
texts = st.text(st.sampled_from(SNEAKY)) | st.text()
values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
all_params = st.fixed_dictionaries(
    {"name": st.just("t"), "arguments": st.dictionaries(texts, values, max_size=4)},
    optional={"requestState": texts, "_meta": values},
)
RULES = ("deleting", "default.delete")
ITEM: Json = {"list": "groceries", "id": 5}
Ticked = dict[str, str]


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


def call(arguments: Json, **others: Json) -> Question:
    return question({"name": "t", "arguments": arguments, **others})


def rule(approved: Question, ticked: Ticked) -> ApprovalRule:
    return ApprovalRule(
        id="7f3a",
        agent_uid=1000,
        server="sqlite",
        method="tools/call",
        target="t",
        answers=RULES,
        approved=document(approved).decode(),
        ticked=tuple(TickedArgument(name, glob) for name, glob in ticked.items()),
        by="bob (command)",
        made_at=1.0,
        until=0.0,
        times=0,
        session="",
    )

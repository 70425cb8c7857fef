"""Previews of held calls: requests of the gate to a read-only tool of the same server.

Root names the tool (`PreviewRule`). The request is judged by the policy and audited as the gate's
own; its response goes to no agent, but to the approval question.
"""

import json
from collections.abc import Mapping

from mcpwrap.core.approval.views.open_previews import OpenPreview
from mcpwrap.core.approval.views.preview import MAX_COUNT_BYTES, MAX_TEXT_BYTES, Preview
from mcpwrap.core.gate.pending_approvals import PendingApproval
from mcpwrap.core.gate.ports import AuditedDecision
from mcpwrap.core.gate.session import MessageOutcome, SessionState
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.sql.row_count import counting_query
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Failure, Id, Result, without
from mcpwrap.core.protocol.methods import CANCELLED, TOOLS_CALL, PolicyScope
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.wire.server_files import PreviewRule

ANSWER_S = 2.0
MAX_OPEN = 32
_ID_PREFIX = "mcpwrap-preview-"


class NoPreviewError(Exception):
    """Reason for which there is no preview of a call."""


def may_be_ours(request_id: Id | None) -> bool:
    """Return whether an id could be that of a preview request; neither side may use such an id."""
    return isinstance(request_id, str) and request_id.startswith(_ID_PREFIX)


def begin(session: SessionState, pending: PendingApproval) -> list[MessageOutcome]:
    """Return the preview request for a held call, to be forwarded; nothing if it has none."""
    rule = session.previews.rule_by_tool.get(pending.asked.target)
    if rule is None or pending.asked.method != TOOLS_CALL:
        return []
    preview = Preview(tool=rule.tool, compare=rule.compare)
    try:
        params, count = _params(pending, rule)
        id_ = _permitted(session, params)
    except NoPreviewError as error:
        session.approvals.show(pending.number, _failed(preview, str(error)))
        return []
    preview = Preview(tool=rule.tool, compare=rule.compare, count=count)
    until_s = session.now_s + ANSWER_S
    session.previews.open[id_] = OpenPreview(pending.number, preview, until_s)
    message: Json = {"jsonrpc": "2.0", "id": id_, "method": TOOLS_CALL, "params": params}
    return [MessageOutcome(forward=encode(message))]


def _params(pending: PendingApproval, rule: PreviewRule) -> tuple[dict[str, Json], str]:
    """Return the params of the preview request, and the query that counts rows, if it has one.

    Raises:
        NoPreviewError: the call has not the arguments, or its rows cannot be counted.
    """
    given = pending.request.params.get("arguments")
    arguments: dict[str, Json] = {}
    count = ""
    for name, source in rule.arguments.items():
        if not isinstance(given, dict) or source not in given:
            raise NoPreviewError(f"the call has no argument {source!a}")
        value = given[source]
        if source == rule.count:
            value = count = _count(value)
        arguments[name] = value
    params: dict[str, Json] = {"name": rule.tool, "arguments": arguments}
    meta = pending.request.params.get("_meta")
    if isinstance(meta, dict):
        params["_meta"] = without(meta, "progressToken")
    return params, count


def _count(untrusted_sql: Json) -> str:
    """Return the query that counts the rows of a statement.

    Raises:
        NoPreviewError: none is certain, or it is too long to be shown.
    """
    query = counting_query(untrusted_sql) if isinstance(untrusted_sql, str) else None
    if query is None:
        raise NoPreviewError("its rows cannot be counted with certainty")
    if len(query.encode()) > MAX_COUNT_BYTES:
        raise NoPreviewError(f"the query of its rows takes over {MAX_COUNT_BYTES // 1024} KiB")
    return query


def _permitted(session: SessionState, params: dict[str, Json]) -> str:
    """Return the id of a preview request that the policy allows, and that is audited.

    Raises:
        NoPreviewError: it may not be sent.
    """
    tool = str(params["name"])
    if len(session.previews.open) >= MAX_OPEN:
        raise NoPreviewError(f"{MAX_OPEN} previews are being read")
    judgement = session.judge(PolicyScope.JUDGE, TOOLS_CALL, params)
    if judgement.decision is not Decision.ALLOW or session.policy.hides(tool):
        by = f", rule {judgement.rule}" if judgement.rule else ""
        raise NoPreviewError(f"the policy does not let {tool!a} pass{by}")
    if session.pins is not None and session.pins.refusal(TOOLS_CALL, params) is not None:
        raise NoPreviewError(f"{tool!a} is not accepted: `mcpwrap tools diff` shows why")
    id_ = f"{_ID_PREFIX}{next(session.previews.numbers)}"
    decided = AuditedDecision(
        sender="gate", method=TOOLS_CALL, target=tool, id=id_, decision="allowed",
        rule=judgement.rule, watched=judgement.notes, params=params,
    )  # fmt: skip
    if not session.audit.write(decided):
        raise NoPreviewError("the audit cannot be written")
    return id_


def take(session: SessionState, answer: Result | Failure) -> None:
    """Take the response to a preview request. One that comes too late is dropped."""
    opened = session.previews.open.pop(answer.id, None)
    if opened is None:
        return
    session.approvals.show(opened.hold, _read(session, opened.preview, answer))


def tick(session: SessionState) -> list[MessageOutcome]:
    """Give up the previews that the server has not answered in time; return cancellations."""
    outcomes = []
    for id_, opened in list(session.previews.open.items()):
        if session.now_s >= opened.until_s:
            del session.previews.open[id_]
            why = f"no answer in {ANSWER_S:.0f} s"
            session.approvals.show(opened.hold, _failed(opened.preview, why))
            params: Json = {"requestId": id_, "reason": why}
            cancelled = encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params})
            outcomes.append(MessageOutcome(forward=cancelled))
    return outcomes


def due_in_s(session: SessionState) -> float | None:
    """Return the seconds until `tick` has something to do; None if no preview is open."""
    ends = [opened.until_s for opened in session.previews.open.values()]
    return max(0.0, min(ends) - session.now_s) if ends else None


def _read(session: SessionState, preview: Preview, answer: Result | Failure) -> Preview:
    """Return what the server answered, by the policy's rules on results."""
    if isinstance(answer, Failure):
        return _failed(preview, "the server answered with an error")
    try:
        text = _permitted_text(session, preview.tool, answer)
    except NoPreviewError as error:
        return _failed(preview, str(error))
    return Preview(tool=preview.tool, text=text, compare=preview.compare, count=preview.count)


def _permitted_text(session: SessionState, tool: str, answer: Result) -> str:
    """Return the text of a result that the policy lets pass.

    Raises:
        NoPreviewError: it does not, or there is none.
    """
    judged = session.policy.judge_result(TOOLS_CALL, tool, answer.result)
    if judged.refusal is not None:
        raise NoPreviewError(f"rule {judged.refusal.rule} refuses the result")
    value = judged.value
    if not isinstance(value, dict) or value.get("isError"):
        raise NoPreviewError("the tool reported an error")
    text = _text(value)
    if text is None:
        raise NoPreviewError("the tool returned no text")
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise NoPreviewError(f"the tool returned over {MAX_TEXT_BYTES // 1024} KiB")
    return text


def _text(result: Mapping[str, Json]) -> str | None:
    """Return the text of a result; None if it has none."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    if texts:
        return "\n".join(map(str, texts))
    structured = result.get("structuredContent")
    if structured is None:
        return None
    return json.dumps(structured, indent=2, ensure_ascii=False, sort_keys=True)


def _failed(preview: Preview, why: str) -> Preview:
    return Preview(tool=preview.tool, problem=why)

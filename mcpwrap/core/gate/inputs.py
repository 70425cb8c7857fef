"""Policy check of input requests within a response, each judged as the request it stands for.

Since 2026-07-28 these are `inputRequests` of a result; in 2025-11-25 the URLs of error -32042.
"""

from collections.abc import Iterator

from mcpwrap.core.gate.session import ALLOWED, SessionState, is_refused
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant, has_case_variant_in_result
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import PolicyScope

CASE_VARIANT = Judgement(Decision.BLOCK, message="A key is in other letters than MCP has it in.")
_NO_INPUT = Judgement(Decision.BLOCK, message="The server asks for an input that MCP has not.")


def judge_inputs(session: SessionState, requests: Json) -> Judgement:
    """Judge the `inputRequests` of a result; the first that is refused speaks for all."""
    if not isinstance(requests, dict):
        return _NO_INPUT
    return _judge_all(session, (_input(request) for request in requests.values()))


def judge_error(session: SessionState, error: dict[str, Json]) -> Judgement:
    """Judge an error, which may have URLs for the agent's user to open."""
    if error["code"] != methods.URL_ELICITATION_REQUIRED:
        return ALLOWED
    data = error.get("data")
    if isinstance(data, dict) and has_case_variant_in_result(data):
        return CASE_VARIANT
    urls = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(urls, list):
        return _NO_INPUT
    return _judge_all(session, (_input({"method": methods.ELICITATION, "params": p}) for p in urls))


def _input(request: Json) -> tuple[str, dict[str, Json]] | None:
    if not isinstance(request, dict) or has_case_variant(request):
        return None
    method, params = request.get("method"), request.get("params", {})
    if not isinstance(method, str) or method not in methods.INPUT_REQUESTS:
        return None
    return (method, params) if isinstance(params, dict) else None


def _judge_one(session: SessionState, wanted: tuple[str, dict[str, Json]] | None) -> Judgement:
    if wanted is None:
        return _NO_INPUT
    method, params = wanted
    return (
        CASE_VARIANT
        if has_case_variant(params)
        else session.judge(PolicyScope.JUDGE, method, params)
    )


def _judge_all(
    session: SessionState, inputs: Iterator[tuple[str, dict[str, Json]] | None]
) -> Judgement:
    notes: tuple[str, ...] = ()
    for wanted in inputs:
        judgement = _judge_one(session, wanted)
        notes += judgement.notes
        if is_refused(judgement):
            return Judgement(judgement.decision, judgement.rule, judgement.message, notes)
    return Judgement(Decision.ALLOW, notes=notes)

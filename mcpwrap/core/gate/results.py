"""Checks of a server's result or error: policy rules, deceptive names, input requests.

Each input request within a response is judged as the request it stands for. Since 2026-07-28 these
are `inputRequests` of a result; in 2025-11-25 the URLs of error -32042.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from mcpwrap.core.gate.definitions.filtering import CASE_VARIANT, filter_description
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import PinnedResult
from mcpwrap.core.gate.session import ALLOWED, SessionState, is_refused
from mcpwrap.core.policy.decision import Decision, Judgement, ResultJudgement
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant, has_case_variant_in_result
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra

_NO_INPUT = Judgement(Decision.BLOCK, message="The server requests input that MCP does not define.")
_UNCACHED: Mapping[str, Json] = {"cacheScope": "private", "ttlMs": 0}
# The agent sends `requestState` back byte for byte; `inputRequests` are judged by themselves.
_OPAQUE = frozenset({"requestState", "inputRequests"})


def judge_result(session: SessionState, context: RequestContext, value: Json) -> ResultJudgement:
    """Judge the result of a request; return the same `value` object if it is forwarded unchanged.

    Its keys and its input requests are checked last, because result rules change keys too.
    """
    if not isinstance(value, dict):
        return _judge_content(session, context, value)
    pinned = _take_definitions(session, context, value)
    judged = _judge_kind(session, context, pinned.value)
    if pinned.left_out:
        judged = _without_held(judged, pinned.left_out)
    after = judged.value
    if judged.refusal is not None or not isinstance(after, dict):
        return judged
    if context.method not in methods.DESCRIPTIONS and has_case_variant_in_result(after):
        return replace(judged, refusal=CASE_VARIANT)
    is_of_a_handshake = session.has_handshake and context.era is ProtocolEra.HANDSHAKE
    if is_of_a_handshake or "inputRequests" not in after:
        return judged
    return _with(judged, _judge_input_requests(session, after["inputRequests"]))


def _take_definitions(
    session: SessionState, context: RequestContext, value: dict[str, Json]
) -> PinnedResult:
    """Keep and compare what the server lists; return the result without what is held back."""
    if session.collector is not None:
        session.collector.take_result(context, value)
    if session.pins is not None:
        pinned = session.pins.take_result(context, value)
        if context.method == methods.TOOLS_LIST:
            session.remember_definitions(pinned.listed)
        return pinned
    if context.method == methods.TOOLS_LIST:
        session.remember_tools(value.get("tools"))
    return PinnedResult(value)


def judge_failure(
    session: SessionState, context: RequestContext, error: dict[str, Json]
) -> ResultJudgement:
    """Judge an error of any method in the same way: a third party may have written its text."""
    if session.collector is not None:
        session.collector.take_failure(context, error["code"])
    texts = {key: error[key] for key in error if key != "code"}
    judged = _judge_by_rules(session, context, texts)
    if judged.refusal is not None or not isinstance(judged.value, dict):
        return judged
    after = error if judged.value is texts else {**judged.value, "code": error["code"]}
    judged = replace(judged, value=after)
    if has_case_variant_in_result(after):
        return replace(judged, refusal=CASE_VARIANT)
    return _with(judged, _judge_error_urls(session, after))


def _without_held(judged: ResultJudgement, left_out: str) -> ResultJudgement:
    """Return a judgement that also names what was held back.

    That depends on the agent's account, and ends when a person accepts it: so the result must not
    be cached. Source: 2026-07-28, caching.
    """
    value = judged.value
    if isinstance(value, dict):
        value = {**value, **{key: kept for key, kept in _UNCACHED.items() if key in value}}
    all_left_out = ", ".join(filter(None, (left_out, judged.left_out)))
    return replace(judged, value=value, left_out=all_left_out)


def _with(judged: ResultJudgement, inputs: Judgement) -> ResultJudgement:
    if is_refused(inputs):
        return replace(judged, refusal=inputs)
    return replace(judged, notes=(*judged.notes, *inputs.notes)) if inputs.notes else judged


def _judge_kind(
    session: SessionState, context: RequestContext, value: dict[str, Json]
) -> ResultJudgement:
    if context.method != methods.DISCOVER:  # it lists revisions: the agent may choose another
        session.version = session.version or context.revision or ""
    if context.method == methods.INITIALIZE:
        version = value.get("protocolVersion")
        session.version = version if isinstance(version, str) else ""
        capabilities = value.get("capabilities")
        session.has_logging = isinstance(capabilities, dict) and "logging" in capabilities
    if context.method in methods.DESCRIPTIONS:
        return filter_description(session.policy, context.method, value)
    return _judge_content(session, context, value)


def _judge_content(session: SessionState, context: RequestContext, value: Json) -> ResultJudgement:
    """Judge content that a third party may have written; a tool's result by the tool's rules."""
    if context.method not in methods.JUDGED_RESULTS:
        return ResultJudgement(value)
    return _judge_by_rules(session, context, value)


def _judge_by_rules(session: SessionState, context: RequestContext, value: Json) -> ResultJudgement:
    method = methods.TOOLS_CALL if context.method in methods.TASK_RESULTS else context.method
    kept: dict[str, Json] = {}
    rest = value
    if (
        isinstance(value, dict)
        and context.era is ProtocolEra.MODERN
        and not value.keys().isdisjoint(_OPAQUE)
    ):
        kept = {key: value[key] for key in value if key in _OPAQUE}
        rest = {key: value[key] for key in value if key not in _OPAQUE}
    judged = session.policy.judge_result(method, context.target, rest)
    if judged.value is rest:
        return judged if rest is value else replace(judged, value=value)
    if isinstance(judged.value, dict):
        return replace(judged, value={**judged.value, **kept})
    return judged


def _judge_input_requests(session: SessionState, requests: Json) -> Judgement:
    """Judge the `inputRequests` of a result; the first refusal counts for all."""
    if not isinstance(requests, dict):
        return _NO_INPUT
    return _judge_all(session, (_input_request(request) for request in requests.values()))


def _judge_error_urls(session: SessionState, error: dict[str, Json]) -> Judgement:
    """Judge an error, which may have URLs for the agent's user to open."""
    if error["code"] != methods.URL_ELICITATION_REQUIRED:
        return ALLOWED
    data = error.get("data")
    if isinstance(data, dict) and has_case_variant_in_result(data):
        return CASE_VARIANT
    urls = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(urls, list):
        return _NO_INPUT
    return _judge_all(
        session, (_input_request({"method": methods.ELICITATION, "params": p}) for p in urls)
    )


def _input_request(request: Json) -> tuple[str, dict[str, Json]] | None:
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

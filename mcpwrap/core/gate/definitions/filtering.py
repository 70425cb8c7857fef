"""Filter of a server's lists and of its description of itself, by one agent's policy.

A session filters by it what the server answers, and the catalogue of a hub what the server answered
last: so a hub lists what its agent may call, and nothing else.
"""

import msgspec
from msgspec.structs import replace

from mcpwrap.core.gate.session import is_refused, judged
from mcpwrap.core.policy.decision import Decision, Judgement, ResultJudgement, ServerPolicy
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant_in_result
from mcpwrap.core.protocol.confusable_names import why_deceptive
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire.hub.hub_catalogue import LISTS, Definitions

CASE_VARIANT = Judgement(Decision.BLOCK, message="A key is a variant spelling of an MCP key.")
# Lists whose entries the agent calls by name.
_NAMED = {methods.TOOLS_LIST: "tools", methods.PROMPTS_LIST: "prompts"}
_MAX_NAMED = 10  # names in the note on what was left out
_DECODER = msgspec.json.Decoder()


def filter_description(
    policy: ServerPolicy, method: str, value: dict[str, Json]
) -> ResultJudgement:
    """Judge a list, or a server's description of itself; the same `value` passes unchanged."""
    listed = _filter_named(policy, method, value)
    if listed.refusal is not None or not isinstance(listed.value, dict):
        return listed
    result = policy.judge_description(method, listed.value)
    after = result.value
    if result.refusal is None and isinstance(after, dict) and has_case_variant_in_result(after):
        return replace(result, refusal=CASE_VARIANT)
    if after is not value and isinstance(after, dict) and "cacheScope" in after:
        # The list for one agent must not be cached for another. Source: 2026-07-28, caching.
        after = {**after, "cacheScope": "private"}
    return replace(result, value=after, left_out=listed.left_out)


def filter_definitions(policy: ServerPolicy, definitions: Definitions) -> Definitions:
    """Return what a session under this policy would list of a server's definitions."""
    about: dict[str, Json] = {
        "capabilities": _DECODER.decode(definitions.capabilities),
        "instructions": definitions.instructions,
    }
    described = _passed(policy, methods.INITIALIZE, about)
    instructions = described.get("instructions", "")
    lists = {
        kind.field: _filter_list(policy, method, kind.key, getattr(definitions, kind.field))
        for method, kind in LISTS.items()
    }
    filtered = Definitions(
        capabilities=definitions.capabilities if described else msgspec.Raw(b"{}"),
        instructions=instructions if isinstance(instructions, str) else "",
    )
    return replace(filtered, **lists)


def _filter_list(
    policy: ServerPolicy, method: str, key: str, entries: tuple[msgspec.Raw, ...]
) -> tuple[msgspec.Raw, ...]:
    """Return the entries that pass; one that is unchanged keeps its text."""
    values: list[Json] = [_DECODER.decode(entry) for entry in entries]
    listed: dict[str, Json] = {key: values}
    after = _passed(policy, method, listed)
    if after is listed:
        return entries
    passed = after.get(key, [])
    return tuple(msgspec.Raw(encode(one)) for one in passed) if isinstance(passed, list) else ()


def _passed(policy: ServerPolicy, method: str, value: dict[str, Json]) -> dict[str, Json]:
    """Return what an agent would get of a result; an empty one if it is refused."""
    way = methods.agent_request(method, ProtocolEra.HANDSHAKE)
    if way is None or is_refused(judged(policy, way, method, {})):
        return {}
    result = filter_description(policy, method, value)
    if result.refusal is not None or not isinstance(result.value, dict):
        return {}
    return result.value


def _filter_named(policy: ServerPolicy, method: str, value: dict[str, Json]) -> ResultJudgement:
    """Leave out tools that the policy hides, and tools and prompts with a deceptive name."""
    key = _NAMED.get(method, "")
    entries = value.get(key)
    if not isinstance(entries, list):
        return ResultJudgement(value)
    if any(isinstance(entry, dict) and has_case_variant_in_result(entry) for entry in entries):
        return ResultJudgement(value, CASE_VARIANT)
    names = [_name(entry) for entry in entries]
    why = {name: reason for name in names if (reason := why_deceptive(name))}
    hidden = set(filter(policy.hides, names)) if method == methods.TOOLS_LIST else set()
    unlisted = why.keys() | hidden
    if unlisted.isdisjoint(names):
        return ResultJudgement(value)
    listed = [one for one, name in zip(entries, names, strict=True) if name not in unlisted]
    return ResultJudgement({**value, key: listed}, left_out=left_out_text(why))


def _name(entry: Json) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""


def left_out_text(why_by_name: dict[str, str]) -> str:
    """Return the names that were left out, each with its reason, in printable ASCII."""
    named = [f"{shown(name)} ({why})" for name, why in why_by_name.items()]
    more = [f"{len(named) - _MAX_NAMED} more"] if len(named) > _MAX_NAMED else []
    return ", ".join([*named[:_MAX_NAMED], *more])

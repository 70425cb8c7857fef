"""Table of MCP methods: sender, protocol generation, and scope of policy rules.

Sources: schema.ts of the revisions 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25, where a
session begins with a handshake, and of 2026-07-28, where each request carries its revision; the
extensions io.modelcontextprotocol/tasks and /skills. /ui has resources, and no methods of its own.
"""

from collections.abc import Mapping
from enum import Enum

from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"  # a key of `params._meta`
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"  # a key of `params._meta`
_VERSION_FOLDED = folded(PROTOCOL_VERSION)
BATCHES_IN = "2025-03-26"  # the one revision that has them
URL_ELICITATION_REQUIRED = -32042  # error of 2025-11-25, with URLs that the agent is to open

INITIALIZE = "initialize"
DISCOVER = "server/discover"
TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
PROMPTS_LIST = "prompts/list"
TASKS_GET = "tasks/get"
TASKS_RESULT = "tasks/result"
ELICITATION = "elicitation/create"
LISTEN = "subscriptions/listen"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG = "notifications/message"
SET_LOG_LEVEL = "logging/setLevel"
TASK_STATE = "notifications/tasks"
TASK_STATUS = "notifications/tasks/status"  # its name until 2025-11-25; it has no results


class ProtocolEra(Enum):
    """Protocol generation: a handshake sets the revision, or each request carries its own."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


class PolicyScope(Enum):
    """Scope of the policy on a method."""

    FORWARD = "forward"  # not at all: no session works without the method
    BY_RULE = "by rule"  # only by a rule; `default: block` is for methods that do something
    JUDGE = "judge"  # by rules and the default


_BOTH = frozenset(ProtocolEra)
_HANDSHAKE = frozenset({ProtocolEra.HANDSHAKE})
_MODERN = frozenset({ProtocolEra.MODERN})

_AGENT_REQUESTS: Mapping[str, tuple[frozenset[ProtocolEra], PolicyScope]] = {
    INITIALIZE: (_BOTH, PolicyScope.FORWARD),  # a modern server refuses it itself
    "ping": (_HANDSHAKE, PolicyScope.FORWARD),
    DISCOVER: (_BOTH, PolicyScope.FORWARD),  # a server reports itself which envelope it requires
    TOOLS_LIST: (_BOTH, PolicyScope.BY_RULE),
    TOOLS_CALL: (_BOTH, PolicyScope.JUDGE),
    PROMPTS_LIST: (_BOTH, PolicyScope.BY_RULE),
    "prompts/get": (_BOTH, PolicyScope.JUDGE),
    "resources/list": (_BOTH, PolicyScope.BY_RULE),
    "resources/templates/list": (_BOTH, PolicyScope.BY_RULE),
    "resources/read": (_BOTH, PolicyScope.JUDGE),
    "resources/subscribe": (_HANDSHAKE, PolicyScope.JUDGE),
    "resources/unsubscribe": (_HANDSHAKE, PolicyScope.BY_RULE),
    "completion/complete": (_BOTH, PolicyScope.JUDGE),
    SET_LOG_LEVEL: (_HANDSHAKE, PolicyScope.BY_RULE),
    LISTEN: (_MODERN, PolicyScope.BY_RULE),
    # The call that made the task was judged.
    TASKS_GET: (_BOTH, PolicyScope.BY_RULE),
    "tasks/cancel": (_BOTH, PolicyScope.BY_RULE),
    TASKS_RESULT: (_HANDSHAKE, PolicyScope.BY_RULE),
    "tasks/list": (_HANDSHAKE, PolicyScope.BY_RULE),
    "tasks/update": (_MODERN, PolicyScope.BY_RULE),
    # Agents offer this extension in the handshake too.
    "skills/list": (_BOTH, PolicyScope.BY_RULE),
    "skills/get": (_BOTH, PolicyScope.JUDGE),
    "resources/directory/read": (_BOTH, PolicyScope.JUDGE),
}
# A notification need not carry its revision, so it has no era.
_AGENT_NOTIFICATIONS: Mapping[str, PolicyScope] = {
    "notifications/initialized": PolicyScope.FORWARD,
    CANCELLED: PolicyScope.FORWARD,
    PROGRESS: PolicyScope.FORWARD,
    "notifications/roots/list_changed": PolicyScope.BY_RULE,
    TASK_STATUS: PolicyScope.BY_RULE,  # of a task that the server gave to the agent
}
# In the handshake era only; since 2026-07-28 they travel within results.
_SERVER_REQUESTS: Mapping[str, PolicyScope] = {
    "ping": PolicyScope.FORWARD,
    "sampling/createMessage": PolicyScope.JUDGE,
    ELICITATION: PolicyScope.JUDGE,
    "roots/list": PolicyScope.JUDGE,
    TASKS_GET: PolicyScope.BY_RULE,
    TASKS_RESULT: PolicyScope.BY_RULE,
    "tasks/list": PolicyScope.BY_RULE,
    "tasks/cancel": PolicyScope.BY_RULE,
}
_SERVER_NOTIFICATIONS: Mapping[str, PolicyScope] = {
    CANCELLED: PolicyScope.FORWARD,
    PROGRESS: PolicyScope.FORWARD,
    "notifications/subscriptions/acknowledged": PolicyScope.FORWARD,
    LOG: PolicyScope.BY_RULE,
    "notifications/tools/list_changed": PolicyScope.BY_RULE,
    "notifications/prompts/list_changed": PolicyScope.BY_RULE,
    "notifications/resources/list_changed": PolicyScope.BY_RULE,
    "notifications/resources/updated": PolicyScope.BY_RULE,
    "notifications/elicitation/complete": PolicyScope.BY_RULE,
    TASK_STATUS: PolicyScope.BY_RULE,
    TASK_STATE: PolicyScope.BY_RULE,
}
# Requests that a server may embed in a result (`inputRequests`).
INPUT_REQUESTS = frozenset({"sampling/createMessage", ELICITATION, "roots/list"})
# Requests that a server may answer with input requests, to be retried with the responses (MRTR of
# 2026-07-28).
IN_ROUNDS = frozenset({TOOLS_CALL, "prompts/get", "resources/read"})
# Methods whose results may hold text of a third party, so that the policy judges them.
CONTENT = frozenset(
    {
        TOOLS_CALL, "resources/read", "prompts/get", "skills/get", "completion/complete",
        "tasks/cancel", TASKS_GET, TASKS_RESULT,
    }
)  # fmt: skip
# Methods whose results describe the server and what it has; agents put that before their model.
DESCRIPTIONS = frozenset(
    {
        INITIALIZE, DISCOVER, TOOLS_LIST, PROMPTS_LIST, "resources/list",
        "resources/templates/list", "resources/directory/read", "skills/list", "tasks/list",
    }
)  # fmt: skip
# Lists of whose changes a server notifies: by `notifications/tools/list_changed` and so on.
CHANGING_LISTS = ("tools", "prompts", "resources")
TEXT_NOTIFICATIONS = frozenset({LOG, PROGRESS})  # judged as results, but unrequested
JUDGED_RESULTS = CONTENT | DESCRIPTIONS | TEXT_NOTIFICATIONS
TASK_RESULTS = frozenset({TASKS_GET, TASKS_RESULT})  # of a tool that was called before
CALL_RESULTS = frozenset({TOOLS_CALL, TASKS_RESULT})  # with a result in the form of a tool's
# The param with the target of a request; it must be a string, or the request is refused.
TARGET_KEY: Mapping[str, str] = {
    TOOLS_CALL: "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "resources/directory/read": "uri",
    TASKS_GET: "taskId",
    TASKS_RESULT: "taskId",
}

_REQUESTS = _AGENT_REQUESTS.keys() | _SERVER_REQUESTS.keys()
_NOTIFICATIONS = _AGENT_NOTIFICATIONS.keys() | _SERVER_NOTIFICATIONS.keys()


def era_of(params: Mapping[str, Json]) -> ProtocolEra:
    """Return the era of a request by its envelope: a client of before 2026-07-28 sends none."""
    return ProtocolEra.HANDSHAKE if revision_of(params) is None else ProtocolEra.MODERN


def listens_to(params: Mapping[str, Json]) -> frozenset[str]:
    """Return the changes of lists of which a `subscriptions/listen` wants to be notified."""
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        return frozenset()
    return frozenset(list_ for list_ in CHANGING_LISTS if wanted.get(f"{list_}ListChanged") is True)


def revision_of(params: Mapping[str, Json]) -> str | None:
    """Return the revision in the envelope of a request; None if it has none."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return None
    revision = meta.get(PROTOCOL_VERSION)
    return revision if isinstance(revision, str) else None


def has_odd_envelope(params: Mapping[str, Json]) -> bool:
    """Return whether a server may find a revision in an envelope that `revision_of` does not."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return False
    return any(
        folded(key) == _VERSION_FOLDED
        and not (key == PROTOCOL_VERSION and isinstance(meta[key], str))
        for key in meta
    )


def agent_request(method: str, era: ProtocolEra) -> PolicyScope | None:
    """Return the policy scope of an agent's request; None if MCP has no such request in its era."""
    eras, way = _AGENT_REQUESTS.get(method, (_BOTH, None))
    return way if era in eras else None


def agent_notification(method: str) -> PolicyScope | None:
    """Return the policy scope of an agent's notification; None if MCP has no such one."""
    return _AGENT_NOTIFICATIONS.get(method)


def server_request(method: str) -> PolicyScope | None:
    """Return the policy scope of a server's request; None if MCP has no such one."""
    return _SERVER_REQUESTS.get(method)


def server_notification(method: str) -> PolicyScope | None:
    """Return the policy scope of a server's notification; None if MCP has no such one."""
    return _SERVER_NOTIFICATIONS.get(method)


def is_known(method: str) -> bool:
    """Return whether MCP has the method, in either direction."""
    return method in _REQUESTS or method in _NOTIFICATIONS


def is_request(method: str) -> bool:
    """Return whether the method requires a response, so that it is malformed without an id."""
    return method in _REQUESTS


def is_notification(method: str) -> bool:
    """Return whether the method has no response, so that it is malformed with an id."""
    return method in _NOTIFICATIONS

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
_VERSION_FOLDED = folded(PROTOCOL_VERSION)
BATCHES_IN = "2025-03-26"  # the one revision that has them
URL_ELICITATION_REQUIRED = -32042  # an error of 2025-11-25, with URLs that the agent is to open

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
TASK_STATE = "notifications/tasks"
TASK_STATUS = "notifications/tasks/status"  # its name until 2025-11-25, without results


class ProtocolEra(Enum):
    """Protocol generation: a handshake sets the revision, or each request carries its own."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


class PolicyScope(Enum):
    """Scope of the policy on a method."""

    FORWARD = "forward"  # nothing: no session lives without it
    BY_RULE = "by rule"  # only what a rule says; `default: block` is about what does something
    JUDGE = "judge"  # its default too


_BOTH = frozenset(ProtocolEra)
_HANDSHAKE = frozenset({ProtocolEra.HANDSHAKE})
_MODERN = frozenset({ProtocolEra.MODERN})

_AGENT_REQUESTS: Mapping[str, tuple[frozenset[ProtocolEra], PolicyScope]] = {
    INITIALIZE: (_BOTH, PolicyScope.FORWARD),  # a modern server says itself that it has none
    "ping": (_HANDSHAKE, PolicyScope.FORWARD),
    DISCOVER: (_BOTH, PolicyScope.FORWARD),  # a server says itself which envelope it wants
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
    "logging/setLevel": (_HANDSHAKE, PolicyScope.BY_RULE),
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
    TASK_STATUS: PolicyScope.BY_RULE,  # of a task that the server made the agent do
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
# What a server may have the agent do from within a result (`inputRequests`).
INPUT_REQUESTS = frozenset({"sampling/createMessage", ELICITATION, "roots/list"})
# What may come back with a question first, and come again with the answer (MRTR of 2026-07-28).
IN_ROUNDS = frozenset({TOOLS_CALL, "prompts/get", "resources/read"})
# The results that hold what somebody else may have written, so that the policy sees them.
CONTENT = frozenset(
    {
        TOOLS_CALL, "resources/read", "prompts/get", "skills/get", "completion/complete",
        "tasks/cancel", TASKS_GET, TASKS_RESULT,
    }
)  # fmt: skip
# Those in which the server says what it is and has; agents put it before their model.
DESCRIPTIONS = frozenset(
    {
        INITIALIZE, DISCOVER, TOOLS_LIST, PROMPTS_LIST, "resources/list",
        "resources/templates/list", "resources/directory/read", "skills/list", "tasks/list",
    }
)  # fmt: skip
TEXT_NOTIFICATIONS = frozenset({LOG, PROGRESS})  # judged as results, as nobody asked for them
JUDGED_RESULTS = CONTENT | DESCRIPTIONS | TEXT_NOTIFICATIONS
TASK_RESULTS = frozenset({TASKS_GET, TASKS_RESULT})  # of a tool that was called before
CALL_RESULTS = frozenset({TOOLS_CALL, TASKS_RESULT})  # in the form that a tool's has
# Where a request says what it is about; a text, or the request is refused.
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
    """Return the era of a request by its envelope: a client of before 2026-07-28 has none."""
    return ProtocolEra.HANDSHAKE if revision_of(params) is None else ProtocolEra.MODERN


def revision_of(params: Mapping[str, Json]) -> str | None:
    """Return the revision in the envelope of a request; None if it has none."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return None
    revision = meta.get(PROTOCOL_VERSION)
    return revision if isinstance(revision, str) else None


def has_odd_envelope(params: Mapping[str, Json]) -> bool:
    """Say whether a server may find another revision in an envelope than `revision_of`, or one."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return False
    return any(
        folded(key) == _VERSION_FOLDED
        and not (key == PROTOCOL_VERSION and isinstance(meta[key], str))
        for key in meta
    )


def agent_request(method: str, era: ProtocolEra) -> PolicyScope | None:
    """Return what to do with a request of the agent's; None if there is none such."""
    eras, way = _AGENT_REQUESTS.get(method, (_BOTH, None))
    return way if era in eras else None


def agent_notification(method: str) -> PolicyScope | None:
    """Return what to do with a notification of the agent's; None if there is none such."""
    return _AGENT_NOTIFICATIONS.get(method)


def server_request(method: str) -> PolicyScope | None:
    """Return what to do with a request of the server's; None if there is none such."""
    return _SERVER_REQUESTS.get(method)


def server_notification(method: str) -> PolicyScope | None:
    """Return what to do with a notification of the server's; None if there is none such."""
    return _SERVER_NOTIFICATIONS.get(method)


def is_known(method: str) -> bool:
    """Say whether MCP has it, in whichever direction."""
    return method in _REQUESTS or method in _NOTIFICATIONS


def is_request(method: str) -> bool:
    """Say whether somebody must answer this, so that without an id it is nothing."""
    return method in _REQUESTS


def is_notification(method: str) -> bool:
    """Say whether nobody answers this, so that with an id it is nothing."""
    return method in _NOTIFICATIONS
